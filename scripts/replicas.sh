#!/usr/bin/env bash
# A private primary on this machine, with replicas that acknowledge its commits (semi-synchronous) and can take its
# place. Everything lies under var/replicas and listens on 127.0.0.0/8 only. docs/scale-out.md explains it.
#
# usage: scripts/replicas.sh up             make them, or start again those that are away, and show what is where
#        scripts/replicas.sh status         who is the primary, who follows it, how far each is
#        scripts/replicas.sh sql [SERVER]   a client of the primary, or of another one
#        scripts/replicas.sh kill [SERVER]  SIGKILL for the primary, or another one
#        scripts/replicas.sh promote        a replica takes over, by scripts/promote.sh
#        scripts/replicas.sh down           stop all; data stay
#
# TEAK_REPLICAS (var/replicas) is the directory, TEAK_REPLICAS_PORT (3340) the port before that of server 1.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"
# shellcheck source=scripts/lib/apt.sh
. "$ROOT/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/server.sh
. "$ROOT/scripts/lib/server.sh"
# shellcheck source=scripts/lib/members.sh
. "$ROOT/scripts/lib/members.sh"
# shellcheck source=scripts/job/input.sh
. "$ROOT/scripts/job/input.sh"

MEMBERS=${TEAK_REPLICAS:-$ROOT/var/replicas}
BASE_PORT=${TEAK_REPLICAS_PORT:-3340}
DATABASE=catalogue

need_set() { [ -d "$MEMBERS/1" ] || die "there are no servers under $MEMBERS." "Make them: make replicas"; }

# The number of the one that can be written, or nothing.
primary() {
    local number
    for number in $(member_numbers); do
        if is_up "$number" && [ "$(member_sql "$number" -e 'SELECT @@read_only + 0')" = 0 ]; then
            echo "$number"
            return
        fi
    done
}

need_primary() {
    local number
    need_set
    number=$(primary)
    [ -n "$number" ] || die "no server is the primary." "A replica takes over: make replicas-promote" "All of them again: make replicas"
    echo "$number"
}

# Settings of its own for each, until somebody changes them.
write_options() {
    local directory
    directory=$(directory_of "$1")
    mkdir -p "$directory"
    [ ! -e "$directory/local.cnf" ] || return 0
    {
        printf '# Written by scripts/replicas.sh once: yours to change.\n[mariadbd]\nserver-id = %s\n' "$1"
        printf 'innodb-buffer-pool-size = 16M\ninnodb-log-file-size = 16M\nloose-performance-schema = OFF\nexpire-logs-days = 1\n'
        printf '!include %s/scripts/replicas/set.cnf\n' "$ROOT"
    } >"$directory/local.cnf"
}

# Whoever is the primary has the account by which the others follow it.
create_account() {
    member_sql "$1" <<END
SET sql_log_bin = 0;
CREATE USER IF NOT EXISTS replica@127.0.0.1 IDENTIFIED BY '$(password)';
GRANT REPLICATION SLAVE ON *.* TO replica@127.0.0.1;
END
}

# promote: of several that have the same the one that was the primary before stays it.
promote() {
    local number known status=0
    local -a servers=()
    known=$(cat "$MEMBERS/primary" 2>/dev/null || echo 1)
    password >/dev/null
    for number in "$known" $(member_numbers | grep -vxF "$known"); do
        servers+=("$(address_of "$number"):$(port_of "$number")=$(directory_of "$number")/run/teak.sock")
    done
    "$ROOT/scripts/promote.sh" --defaults-file "$MEMBERS/1/my.cnf" --replica-user replica \
        --replica-password-file "$MEMBERS/password" "${servers[@]}" || status=$?
    number=$(primary)
    [ -z "$number" ] || echo "$number" >"$MEMBERS/primary"
    return "$status"
}

load_catalogue() {
    prepare_input
    member_sql "$1" -e "CREATE DATABASE $DATABASE"
    member_sql "$1" "$DATABASE" <"$JOB/catalogue.sql"
    member_sql "$1" "$DATABASE" -e "LOAD DATA INFILE '$INPUT/packages.tsv' INTO TABLE packages CHARACTER SET utf8mb4
        FIELDS TERMINATED BY '\t' ESCAPED BY '\\\\' LINES TERMINATED BY '\n'
        (package, version, architecture, section, priority, maintainer, installed_size, size, filename, @sha256,
         homepage, depends, description) SET sha256 = UNHEX(@sha256)"
}

# What this run has started is stopped if the set does not come about.
STARTED=()
stop_started() { [ "${#STARTED[@]}" -eq 0 ] || stop_members "${STARTED[@]}"; }

up() {
    local number refused=0
    local -a all=(1 2 3)
    mkdir -p "$MEMBERS"
    need_ports TEAK_REPLICAS_PORT "${all[@]}"
    [ -n "$(member_pid 1)" ] || need_memory 800
    "$ROOT/scripts/setup.sh"
    "$ROOT/scripts/build.sh"
    trap stop_started EXIT
    for number in "${all[@]}"; do
        write_options "$number"
        [ -n "$(member_pid "$number")" ] || STARTED+=("$number")
        run_member "$number"
        create_account "$number"
    done
    promote || refused=$?
    # 3: it has a primary, and some server is left out.
    [ "$refused" = 0 ] || [ "$refused" = 3 ] || exit "$refused"
    STARTED=()
    number=$(need_primary)
    if [ -z "$(member_sql "$number" -e "SHOW DATABASES LIKE '$DATABASE'")" ]; then
        say "loading the package catalogue on server $number"
        load_catalogue "$number"
    fi
    status
    cat <<END

    make replicas-sql               a client of the primary; SERVER=2 for another one
    make replicas-status            who is the primary, who follows it, how far each is
    make replicas-kill              the primary is gone: then make replicas-promote has a replica take over
    make replicas                   starts what is away; an old primary becomes a replica
    make replicas-down              stops all; data stay in $MEMBERS
END
}

status() {
    local number role acknowledged told
    need_set
    printf '%-7s %-16s %-8s %-22s %-14s %-14s %s\n' server address process role received applied acknowledgements
    for number in $(member_numbers); do
        if ! is_up "$number"; then
            printf '%-7s %-16s %-8s\n' "$number" "$(address_of "$number"):$(port_of "$number")" away
            continue
        fi
        told=$(mariadb --defaults-file="$(directory_of "$number")/my.cnf" --batch --vertical -e 'SHOW SLAVE STATUS')
        field() { sed -n "s/^ *$1: //p" <<<"$told"; }
        acknowledged=$(member_sql "$number" -e "SELECT CONCAT_WS(' ', VARIABLE_VALUE, IF(VARIABLE_NAME LIKE '%SEND_ACK', 'sent', IF(VARIABLE_NAME LIKE '%YES_TX', 'got,', 'commits without')))
            FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME IN ($([ -n "$told" ] && echo "'RPL_SEMI_SYNC_SLAVE_SEND_ACK'" || echo "'RPL_SEMI_SYNC_MASTER_YES_TX', 'RPL_SEMI_SYNC_MASTER_NO_TX'"))
            ORDER BY VARIABLE_NAME DESC" | paste -sd' ')
        role='nobody follows'
        if [ -n "$told" ]; then
            role="follows $(($(field Master_Port) - BASE_PORT)): $(field Slave_IO_Running)/$(field Slave_SQL_Running)"
        elif [ "$(member_sql "$number" -e 'SELECT @@read_only + 0')" = 0 ]; then
            role="primary of $(member_sql "$number" -e "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'RPL_SEMI_SYNC_MASTER_CLIENTS'")"
        else
            role='left out, read-only'
        fi
        printf '%-7s %-16s %-8s %-22s %-14s %-14s %s\n' "$number" "$(address_of "$number"):$(port_of "$number")" "$(member_pid "$number")" "$role" \
            "$(field Gtid_IO_Pos)" "$(member_sql "$number" -e 'SELECT @@gtid_binlog_pos')" "$acknowledged"
    done
}

kill_server() {
    local number=${1:-}
    [ -n "$number" ] || number=$(need_primary)
    kill_member "$number"
    if [ -n "$(primary)" ]; then
        say "to have it again: make replicas"
    else
        say "no server is the primary: a replica takes over with make replicas-promote; make replicas starts all again"
    fi
}

case ${1-} in
    up) up ;;
    status) status ;;
    sql)
        number=${2:-$(need_primary)}
        member "$number" status >/dev/null
        exec mariadb --defaults-file="$(directory_of "$number")/my.cnf" "$DATABASE"
        ;;
    kill) kill_server "${2:-}" ;;
    promote) need_set; promote ;;
    down)
        mapfile -t all < <(member_numbers)
        stop_members "${all[@]}"
        ;;
    *) die "unknown command '${1-}'" "usage: scripts/replicas.sh {up|status|sql [SERVER]|kill [SERVER]|promote|down}" ;;
esac
