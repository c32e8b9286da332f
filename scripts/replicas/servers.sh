# shellcheck shell=bash
# What scripts/promote.sh knows of the servers that it was given, each called by the address at which the others reach
# it. Sourced after base.sh and gtids.sh.

declare -A SOCKET_OF ANSWERS WRITABLE SOURCE HAS APPLIED RECEIVES APPLIES ACKNOWLEDGES DELAY LOGS APPLY_ERROR FRESH WAITS

# Options of the client: of the account that asks.
CLIENT=(mariadb)

# client SERVER [OPTION...]: statements come from standard input, not in arguments, where others could read passwords.
client() {
    local server=$1
    shift
    local -a where=(--protocol=tcp "--host=${server%:*}" "--port=${server##*:}")
    [ -z "${SOCKET_OF[$server]}" ] || where=("--socket=${SOCKET_OF[$server]}")
    "${CLIENT[@]}" "${where[@]}" --connect-timeout=5 --batch "$@"
}

# must SERVER STATEMENT [OPTION...]: a statement without which it makes no sense to go on; its rows, without names.
must() {
    local server=$1 statement=$2 said
    shift 2
    said=$(client "$server" "${@:---skip-column-names}" <<<"$statement" 2>&1) ||
        die "$server refuses a statement: $said" "The statement: ${statement%%, MASTER_USER*}"
    [ -z "$said" ] || printf '%s\n' "$said"
}

status_field() { sed -n "s/^ *$2: //p" <<<"$1"; }

# learn SERVER: all that is known of it, anew.
# shellcheck disable=SC2034 # choose.sh reads it
learn() {
    local server=$1 told status binlog_position slave_position read_only log_bin log_updates acknowledges waits acknowledged why
    ANSWERS[$server]='' WRITABLE[$server]='' SOURCE[$server]='' FRESH[$server]=''
    if ! told=$(client "$server" --skip-column-names 2>&1 <<<"SELECT CONCAT_WS('|', @@gtid_binlog_pos, @@gtid_slave_pos, @@read_only + 0, @@log_bin + 0,
            @@log_slave_updates + 0, @@rpl_semi_sync_slave_enabled + 0, @@rpl_semi_sync_master_enabled + 0, (SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS
            WHERE VARIABLE_NAME = 'Rpl_semi_sync_slave_send_ack'))"); then
        why=${told##*$'\n'}
        # Somebody who is there, and does not let us in, is not gone.
        case $why in
            *'ERROR 2002'* | *'ERROR 2003'* | *'ERROR 2013'*) return 0 ;;
            *) die "$server does not answer: $why" ;;
        esac
    fi
    ANSWERS[$server]=yes
    IFS='|' read -r binlog_position slave_position read_only log_bin log_updates acknowledges waits acknowledged <<<"$told"
    [ "$read_only" != 0 ] || WRITABLE[$server]=yes
    LOGS[$server]=$((log_bin && log_updates))
    ACKNOWLEDGES[$server]=$acknowledges
    WAITS[$server]=$waits
    status=$(must "$server" 'SHOW SLAVE STATUS' --vertical)
    APPLIED[$server]=$(later_of "$binlog_position" "$slave_position")
    HAS[$server]=${APPLIED[$server]}
    [ -n "$status" ] || return 0
    SOURCE[$server]=$(status_field "$status" Master_Host):$(status_field "$status" Master_Port)
    RECEIVES[$server]=$(status_field "$status" Slave_IO_Running)
    APPLIES[$server]=$(status_field "$status" Slave_SQL_Running)
    APPLY_ERROR[$server]=$(status_field "$status" Last_SQL_Error)
    DELAY[$server]=$(status_field "$status" SQL_Delay)
    HAS[$server]=$(later_of "${HAS[$server]}" "$(status_field "$status" Gtid_IO_Pos)")
    # A start throws away what was received and not applied. It has nothing else yet if it did not reach its primary.
    if [ "$acknowledged" = 0 ] && [ "$(status_field "$status" Relay_Log_Pos)" = 4 ] && [ "${RECEIVES[$server]}" != Yes ]; then
        FRESH[$server]=yes
    fi
}

is_replica() { [ -n "${SOURCE[$1]}" ]; }

# describe SERVER
describe() {
    local what='not a replica'
    [ -n "${ANSWERS[$1]}" ] || { printf '    %-22s does not answer\n' "$1"; return; }
    ! is_replica "$1" || what="replica of ${SOURCE[$1]}"
    printf '    %-22s %-30s %-10s has %s, applied %s\n' "$1" "$what" "$([ -n "${WRITABLE[$1]}" ] && echo writable || echo read-only)" \
        "${HAS[$1]:-nothing}" "${APPLIED[$1]:-nothing}"
}
