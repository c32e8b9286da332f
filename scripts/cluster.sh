#!/usr/bin/env bash
# A private cluster on this machine: a head with Spider, and shards with Teak over which the main job's tables are
# spread. Everything lies under var/cluster and listens on 127.0.0.0/8 only. docs/scale-out.md explains it.
#
# usage: scripts/cluster.sh up             make it, or start it again, and show what is where
#        scripts/cluster.sh status         servers, shards, rows, undecided transactions
#        scripts/cluster.sh sql            a client of the head
#        scripts/cluster.sh kill SHARD     SIGKILL for one of them, and what is to be seen then
#        scripts/cluster.sh add            one more shard, and a partition moves to it beside a writer
#        scripts/cluster.sh move N SHARD   partition N moves to a shard
#        scripts/cluster.sh down           stop all; data stay
#        scripts/cluster.sh plugin         fetch the plugin of Spider, which "up" does as well
#
# TEAK_SHARDS (3) are there at first; TEAK_CLUSTER (var/cluster) is the directory, TEAK_CLUSTER_PORT (3320) the head's
# port, and those behind it the shards'.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"
# shellcheck source=scripts/lib/apt.sh
. "$ROOT/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/mariadb.sh
. "$ROOT/scripts/lib/mariadb.sh"
# shellcheck source=scripts/lib/server.sh
. "$ROOT/scripts/lib/server.sh"
# shellcheck source=scripts/lib/members.sh
. "$ROOT/scripts/lib/members.sh"
# shellcheck source=scripts/job/input.sh
. "$ROOT/scripts/job/input.sh"
# shellcheck source=scripts/cluster/members.sh
. "$ROOT/scripts/cluster/members.sh"
# shellcheck source=scripts/cluster/tables.sh
. "$ROOT/scripts/cluster/tables.sh"
# shellcheck source=scripts/cluster/move.sh
. "$ROOT/scripts/cluster/move.sh"

# Whatever ends this, nothing goes on in the background.
MOVER=''
end_background() {
    rm -f "$CLUSTER/writing"
    [ -z "$MOVER" ] || kill "$MOVER" 2>/dev/null || true
}
trap end_background EXIT

need_cluster() { [ -d "$CLUSTER/head" ] || die "there is no cluster under $CLUSTER." "Make one: make cluster"; }

up() {
    local shard
    local -a all
    "$ROOT/scripts/setup.sh"
    "$ROOT/scripts/build.sh"
    mkdir -p "$CLUSTER"
    if ! is_up head; then need_memory 1200; fi
    prepare_spider
    if [ -z "$(shards)" ]; then
        for shard in $(seq "${TEAK_SHARDS:-3}"); do write_member_options "$shard"; done
    fi
    mapfile -t all < <(shards)
    need_ports TEAK_CLUSTER_PORT head "${all[@]}"
    for shard in $(shards); do start_member "$shard"; done
    start_member head
    if ! has_data; then
        say "loading the package catalogue and the time zones through the head"
        create_tables
        load_tables
    fi
    status
    show_queries
    cat <<END

    make cluster-sql                a client of the head; all tables are in $DATABASE
    make cluster-status             what is where, and what is undecided
    make cluster-kill SERVER=2      a shard is gone: see what the head says, then make cluster
    make cluster-add                one more shard, to which a partition moves beside a writer
    make cluster-down               stops all; data stay in $CLUSTER
END
}

# Three queries with the time that the head took for them.
show_queries() {
    local query
    {
        echo 'SET profiling_history_size = 100; SET profiling = 1;'
        sed -n 's/^[^|]*| \(.*\)/\1;/p' "$ROOT/scripts/cluster/queries.txt"
        echo "SELECT CONCAT('profile ', SUM(DURATION) * 1000) FROM information_schema.PROFILING GROUP BY QUERY_ID ORDER BY QUERY_ID;"
    } | member_sql head "$DATABASE" | sed -n 's/^profile //p' >"$CLUSTER/times"
    printf '\n'
    exec 4<"$CLUSTER/times"
    while IFS='|' read -r label query; do
        read -r -u 4 milliseconds
        printf '%-12s %8.1f ms  %s\n' "$label" "$milliseconds" "${query# }"
    done <"$ROOT/scripts/cluster/queries.txt"
    exec 4<&-
}

places_on() {
    member_sql head -e "SELECT COALESCE(GROUP_CONCAT(REPLACE(Server_name, 'part', '') ORDER BY Server_name), '')
        FROM mysql.servers WHERE Port = $(port_of "$1")"
}

status() {
    local name places rows undecided
    need_cluster
    printf '%-8s %-16s %-8s %-28s %10s %10s\n' server address process partitions rows prepared
    for name in head $(shards); do
        if ! is_up "$name"; then
            printf '%-8s %-16s %-8s\n' "$name" "$(address_of "$name"):$(port_of "$name")" away
            continue
        fi
        places='' rows='' undecided=$(member_sql "$name" -e 'XA RECOVER' | wc -l)
        if [ "$name" = head ]; then
            undecided=$(member_sql head -e 'SELECT COUNT(*) FROM mysql.spider_xa')
        elif is_up head; then
            places=$(places_on "$name")
            rows=$(member_sql "$name" "$DATABASE" -e "SELECT COALESCE(SUM(TABLE_ROWS), 0) FROM information_schema.TABLES
                WHERE TABLE_SCHEMA = '$DATABASE' AND TABLE_NAME NOT LIKE 'before%'")
        fi
        printf '%-8s %-16s %-8s %-28s %10s %10s\n' "$name" "$(address_of "$name"):$(port_of "$name")" "$(member_pid "$name")" \
            "$places" "$rows" "$undecided"
    done
}

kill_shard() {
    need_cluster
    kill_member "$1"
    say "a query over all shards says:"
    member_sql head "$DATABASE" -e 'SELECT COUNT(*) FROM packages' 2>&1 | sed 's/^/    /' || true
    say "what needs it not goes on; once more, with all of them: make cluster"
}

# The writer beside which a partition moves: changes that can be counted.
write_until_told() {
    local count=0
    while [ -e "$CLUSTER/writing" ]; do
        count=$((count + 1))
        printf "INSERT INTO packages (package, version, architecture, size) VALUES ('zz-written-%s-%s', '1', 'all', 0);\n" $$ "$count"
    done | member_sql head "$DATABASE" >"$CLUSTER/writer.log" 2>&1
}

add() {
    local shard number before after writer
    need_cluster
    is_up head || die "the head does not run." "Start the cluster: make cluster"
    # One that a run which was ended has left without a partition will do.
    shard=$(shards | tail -n 1)
    [ -z "$(places_on "$shard")" ] || shard=$((shard + 1))
    need_memory 300
    say "shard $shard: starting it"
    start_member "$shard"
    # The last partition of the shard that has most of them.
    number=$(member_sql head -e "SELECT MAX(Server_name) FROM mysql.servers WHERE Server_name LIKE 'part%' GROUP BY Port
        ORDER BY COUNT(*) DESC, Port LIMIT 1")
    before=$(member_sql head "$DATABASE" -e 'SELECT COUNT(*) FROM packages')
    touch "$CLUSTER/writing"
    write_until_told &
    writer=$!
    move_partition "${number#part}" "$shard"
    rm "$CLUSTER/writing"
    wait "$writer" || die "the writer met an error:" "$(tail -n 3 "$CLUSTER/writer.log")"
    after=$(member_sql head "$DATABASE" -e 'SELECT COUNT(*) FROM packages')
    say "a writer put $((after - before)) rows into packages meanwhile, and met no error"
    status
}

case ${1-} in
    up) up ;;
    status) status ;;
    sql) need_cluster; exec mariadb --defaults-file="$CLUSTER/head/my.cnf" "$DATABASE" ;;
    kill) kill_shard "${2:?which shard: scripts/cluster.sh kill 2}" ;;
    add) add ;;
    move) need_cluster; move_partition "${2:?which partition}" "${3:?to which shard}" ;;
    down) mapfile -t all < <(shards); stop_members head "${all[@]}" ;;
    plugin) mkdir -p "$CLUSTER"; prepare_spider ;;
    *) die "unknown command '${1-}'" "usage: scripts/cluster.sh {up|status|sql|kill SHARD|add|move N SHARD|down|plugin}" ;;
esac
