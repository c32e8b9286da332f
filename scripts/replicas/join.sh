# shellcheck shell=bash
# Servers that become replicas of the primary, and those that cannot. Sourced after servers.sh.

# How many GTIDs of a server that is refused are printed.
SHOWN=100

# unknown POSITION STATE: whether who has this state lacks the last transaction of some domain, behind all others of it.
unknown() { [ -n "$(tr ',' '\n' <<<"$1" | behind_known "$2")" ]; }

# only_on SERVER PRIMARY: the GTIDs that the server has and the primary has not, in the order of its log. Files of the
# log are read from the last one on, until one begins with what the primary has.
only_on() {
    local server=$1 state position files file events gtids='' before
    state=$(must "$2" 'SELECT CONCAT(@@gtid_binlog_state, ",", @@gtid_slave_pos)')
    position=$(must "$server" 'SELECT @@gtid_binlog_pos')
    unknown "$position" "$state" || return 0
    files=$(must "$server" 'SHOW BINARY LOGS' | cut -f 1 | tac)
    for file in $files; do
        events=$(must "$server" "SHOW BINLOG EVENTS IN '$file'" | cut -f 3,6)
        gtids=$(sed -nE 's/^Gtid\t.*GTID ([0-9-]+).*/\1/p' <<<"$events")$'\n'$gtids
        before=$(sed -nE 's/^Gtid_list\t\[(.*)\]/\1/p' <<<"$events")
        unknown "$(later_of "$before" '')" "$state" || break
    done
    behind_known "$state" <<<"$gtids"
}

# refuse SERVER PRIMARY GTIDS: it keeps what only it has.
refuse() {
    local count
    count=$(wc -l <<<"$3")
    warn "$1 is refused: it has $count transactions that $2 has not:"
    head -n "$SHOWN" <<<"$3" | sed 's/^/    /' >&2
    [ "$count" -le "$SHOWN" ] || printf '    and %s more\n' "$((count - SHOWN))" >&2
    cat >&2 <<END
    If it was a semi-synchronous primary, no client was told of them. Their rows are in its binary log (teak binlog);
    which rows differ by now is told, without a change anywhere, by
        teak replicate verify --config FILE
    where FILE has $1 as [target], and $2 as [[source]] with start = "now"
    (docs/scale-out.md, "The old primary comes back"). Then make it anew of a backup of $2.
END
}

# follows_already SERVER PRIMARY
follows_already() { [ "${SOURCE[$1]}" = "$2" ] && [ "${RECEIVES[$1]}" != No ] && [ "${APPLIES[$1]}" = Yes ]; }

# follow SERVER PRIMARY: what cannot is left out, and counted in LEFT_OUT.
follow() {
    local server=$1 primary=$2 own account='' demote=''
    own=$(only_on "$server" "$primary")
    if [ -n "$own" ]; then
        must "$server" 'STOP SLAVE'
        refuse "$server" "$primary" "$own"
        LEFT_OUT=$((LEFT_OUT + 1))
        return
    fi
    if ! is_replica "$server"; then
        if [ -z "$REPLICA_USER" ]; then
            warn "$server was no replica, and needs an account to follow $primary: --replica-user and --replica-password-file"
            LEFT_OUT=$((LEFT_OUT + 1))
            return
        fi
        # It begins at what it wrote as a primary.
        demote=', MASTER_DEMOTE_TO_SLAVE=1'
    fi
    [ -z "$REPLICA_USER" ] || account=", MASTER_USER='$REPLICA_USER', MASTER_PASSWORD='$REPLICA_PASSWORD'"
    must "$server" "SET GLOBAL read_only = ON;
        SET GLOBAL rpl_semi_sync_master_enabled = OFF, GLOBAL rpl_semi_sync_slave_enabled = ON;
        STOP SLAVE;
        CHANGE MASTER TO MASTER_HOST='${primary%:*}', MASTER_PORT=${primary##*:}, MASTER_USE_GTID=slave_pos$demote$account;
        START SLAVE"
    say "$server follows $primary"
}
