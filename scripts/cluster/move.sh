# shellcheck shell=bash
# A partition moves to another shard beside whoever writes to it. Sourced after tables.sh.
#
#   lock at the head, snapshot of the old shard, unlock       milliseconds: no transaction is half done in the snapshot
#   mariadb-dump to teak load, then teak replicate            as long as it takes, beside writers
#   lock, the rest is applied, both are compared, switch      milliseconds
#
# Until the switch nothing has changed for anybody, and what was killed begins anew. After it the tables on the old
# shard are kept under other names.

# head_says STATEMENT: in the session that holds the lock, whose answers come one on a line.
head_says() {
    local line
    printf "%s;\nSELECT 'done';\n" "$1" >&"${HEAD[1]}"
    while read -r -t 120 line <&"${HEAD[0]}"; do
        case $line in
            done) return 0 ;;
            *ERROR*) die "the head refuses '$1': $line" ;;
        esac
    done
    die "the head did not carry out '$1' within two minutes."
}

# Of all tables, so that no transaction of the head is under way on any shard.
lock_tables() {
    local tables
    tables=$(printf '%s WRITE, ' "${SHARDED[@]}" time_zone_name)
    LOCKED=$(date +%s%N)
    head_says "LOCK TABLES ${tables%, }"
}

unlock_tables() {
    head_says 'UNLOCK TABLES'
    say "partition $1: $2; who writes waited for $((($(date +%s%N) - LOCKED) / 1000000)) ms"
}

names_of() {
    local table
    for table in "${SHARDED[@]}"; do printf '%s_%s\n' "$table" "$1"; done
}

# dump_partition NUMBER FROM: to move.sql; the lock is given up when its snapshot is made.
dump_partition() {
    local dump=$CLUSTER/move.sql position=''
    : >"$dump"
    lock_tables
    # shellcheck disable=SC2046 # names without spaces
    mariadb-dump --defaults-file="$(directory_of "$2")/my.cnf" --single-transaction --gtid --master-data=1 \
        --skip-add-drop-table "$DATABASE" $(names_of "$1") >"$dump" 2>"$CLUSTER/move.log" &
    while [ -z "$position" ]; do
        position=$(sed -n "s/^SET GLOBAL gtid_slave_pos='\(.*\)';/\1/p" "$dump")
        [ -n "$position" ] || kill -0 $! 2>/dev/null || wait $! || die "mariadb-dump failed; nothing was moved." "$(cat "$CLUSTER/move.log")"
        sleep 0.01
    done
    unlock_tables "$1" 'the snapshot is made'
    wait $! || die "mariadb-dump failed; nothing was moved." "$(cat "$CLUSTER/move.log")"
    POSITION=$position
}

# load_partition NUMBER TO: what a move that failed has left goes first.
load_partition() {
    local table
    for table in $(names_of "$1"); do member_sql "$2" "$DATABASE" -e "DROP TABLE IF EXISTS $table"; done
    member_sql "$2" -e "DELETE FROM teak_replicate.position WHERE source = 'move$1'" 2>/dev/null || true
    sed -i '/^SET GLOBAL gtid_slave_pos=/d; /^CHANGE MASTER TO/d' "$CLUSTER/move.sql"
    MYSQL_PWD=$(password) "$BUILD/bin/teak" load --no-defaults -D "$DATABASE" -h "$(address_of "$2")" \
        -P "$(port_of "$2")" -u mover "$CLUSTER/move.sql" >>"$CLUSTER/move.log" 2>&1 ||
        die "teak load failed; nothing was moved." "$(tail -n 5 "$CLUSTER/move.log")"
}

# follow_partition NUMBER FROM TO: begins to, in the background.
follow_partition() {
    local tables
    tables=$(names_of "$1" | sed "s/.*/\"$DATABASE.&\"/" | paste -sd,)
    cat >"$CLUSTER/move.toml" <<END
[target]
host = "$(address_of "$3")"
port = $(port_of "$3")
user = "mover"
password_file = "$MEMBERS/password"
engine = "Teak"

[[source]]
name = "move$1"
host = "$(address_of "$2")"
port = $(port_of "$2")
user = "mover"
password_file = "$MEMBERS/password"
start = "$POSITION"
databases = ["$DATABASE"]
tables = [$tables]
END
    "$BUILD/bin/teak" replicate --config "$CLUSTER/move.toml" >>"$CLUSTER/move.log" 2>&1 &
    MOVER=$!
}

# wait_until_applied NUMBER FROM TO: all that the old shard's log has by now.
wait_until_applied() {
    local position applied deadline=$((SECONDS + ${TEAK_MOVE_SECONDS:-600}))
    position=$(member_sql "$2" -e "SELECT SUBSTRING_INDEX(@@gtid_binlog_pos, '-', -1)")
    until applied=$(member_sql "$3" -e "SELECT SUBSTRING_INDEX(gtid, '-', -1) FROM teak_replicate.position
            WHERE source = 'move$1'" 2>/dev/null) && [ "${applied:-0}" -ge "$position" ]; do
        kill -0 "$MOVER" 2>/dev/null || die "teak replicate has ended; nothing was moved." "$(tail -n 5 "$CLUSTER/move.log")"
        [ "$SECONDS" -lt "$deadline" ] || die "shard $3 did not catch up with shard $2 in time; nothing was moved." \
            "See $CLUSTER/move.log; a longer limit: TEAK_MOVE_SECONDS"
        sleep 0.02
    done
}

sums_of() { member_sql "$1" "$DATABASE" -e "CHECKSUM TABLE $(names_of "$2" | paste -sd,)"; }

# move_partition NUMBER TO
move_partition() {
    local number=$1 to=$2 from table
    from=$(shard_of "part$number")
    [ -n "$from" ] || die "there is no partition '$number'." "There are: 0 to $((PARTITIONS - 1))"
    [ "$from" != "$to" ] || die "partition $number is on shard $to already."
    [ -d "$CLUSTER/$to" ] || die "there is no shard '$to'." "There are: $(shards | paste -sd' ')"
    coproc HEAD {
        exec mariadb --defaults-file="$(directory_of head)/my.cnf" --batch --skip-column-names --unbuffered --force \
            "$DATABASE" 2>&1
    }
    say "partition $number: from shard $from to shard $to"
    dump_partition "$number" "$from"
    load_partition "$number" "$to"
    follow_partition "$number" "$from" "$to"
    wait_until_applied "$number" "$from" "$to"

    lock_tables
    wait_until_applied "$number" "$from" "$to"
    [ "$(sums_of "$from" "$number")" = "$(sums_of "$to" "$number")" ] ||
        die "shards $from and $to differ in partition $number; nothing was moved." "$(sums_of "$from" "$number")" \
            "$(sums_of "$to" "$number")"
    member_sql head -e "ALTER SERVER part$number OPTIONS (HOST '$(address_of "$to")', PORT $(port_of "$to"))"
    # It opens them again, at the new place, before anybody else can.
    head_says "FLUSH TABLES $(IFS=,; printf '%s' "${SHARDED[*]}")"
    unlock_tables "$number" "it is on shard $to now"

    kill "$MOVER"
    wait "$MOVER" || true
    MOVER=''
    printf 'exit\n' >&"${HEAD[1]}"
    for table in $(names_of "$number"); do
        member_sql "$from" "$DATABASE" -e "RENAME TABLE $table TO before_$table"
    done
    rm -f "$CLUSTER/move.sql"
    say "partition $number: shard $from keeps what it had as before_$(names_of "$number" | head -n 1) and so on: drop it some day"
}
