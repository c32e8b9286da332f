#!/usr/bin/env bash
# Starts and stops the private server under ./var. Never touches the system's own MariaDB.
#
# usage: scripts/server.sh {start|stop|status|wait|sql}
#
# TEAK_PORT (3310) is the TCP port on TEAK_ADDRESS (127.0.0.1), TEAK_VAR (./var) the directory, TEAK_CACHE_SIZE (512M)
# the cache.
# TEAK_MALLOC is a library whose malloc the server gets in place of the C library's (make heap-demo).
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"
# shellcheck source=scripts/lib/server.sh
. "$ROOT/scripts/lib/server.sh"

# Recovery of a large log is a legitimate reason for a slow start.
START_SECONDS=${TEAK_START_SECONDS:-120}
STOP_SECONDS=${TEAK_STOP_SECONDS:-120}

# Where in the error log this run begins, so that a failure shows no older one.
LOG_LINES_BEFORE=0

show_log_and_die() {
    printf -- '--- the end of %s\n' "$ERROR_LOG" >&2
    tail -n "+$((LOG_LINES_BEFORE + 1))" "$ERROR_LOG" | tail -n 30 >&2 || true
    die "$@"
}

wait_until_it_answers() {
    local deadline=$((SECONDS + START_SECONDS)) pid=$1
    until server_answers; do
        kill -0 "$pid" 2>/dev/null || show_log_and_die "the server ended while starting."
        if [ "$SECONDS" -ge "$deadline" ]; then
            kill -KILL "$pid" 2>/dev/null || true
            show_log_and_die "the server did not answer within $START_SECONDS s and was killed." \
                "A longer limit: TEAK_START_SECONDS=600 make up"
        fi
        sleep 0.1
    done
}

start() {
    local pid
    pid=$(server_pid)
    if [ -n "$pid" ]; then
        wait_until_it_answers "$pid"
        say "the server runs already (process $pid)"
        return
    fi
    have mariadbd || die "mariadbd is not installed." "Run scripts/setup.sh"
    need_built "$BUILD/plugin/ha_teak.so"
    # A socket's path has to fit into 108 bytes; the server would cut it off silently.
    [ "${#SOCKET}" -lt 108 ] || die "the path $SOCKET is too long for a socket." \
        "Move the clone to a shorter path, or set TEAK_VAR to a short directory."
    port_is_taken && die "port $PORT on $ADDRESS is taken by another program." \
        "Choose another: TEAK_PORT=3311 make up"
    mkdir -p "$VAR/run" "$VAR/log" "$VAR/tmp"
    [ -d "$VAR/data" ] || install_data
    need_space "$VAR/data" 200 "the running server"
    write_config
    rm -f "$PID_FILE"
    [ ! -e "$ERROR_LOG" ] || LOG_LINES_BEFORE=$(wc -l <"$ERROR_LOG")
    # By its full path, or the backtrace of a crash could not find the server's symbols.
    setsid env ${TEAK_MALLOC:+"LD_PRELOAD=$TEAK_MALLOC"} "$(command -v mariadbd)" --defaults-file="$CONFIG" >>"$ERROR_LOG" 2>&1 </dev/null &
    wait_until_it_answers $!
    say "the server answers on $SOCKET and $ADDRESS:$PORT"
}

stop() {
    local pid deadline=$((SECONDS + STOP_SECONDS))
    pid=$(server_pid)
    if [ -z "$pid" ]; then
        say "no server runs"
        return
    fi
    kill -TERM "$pid"
    while kill -0 "$pid" 2>/dev/null; do
        [ "$SECONDS" -lt "$deadline" ] || show_log_and_die \
            "the server (process $pid) did not stop within $STOP_SECONDS s." \
            "To kill it: kill -9 $pid; its data survives that."
        sleep 0.1
    done
    say "the server has stopped"
}

status() {
    local pid
    pid=$(server_pid)
    [ -n "$pid" ] || die "no server runs in $VAR." "Start it: make up"
    server_answers || die "the server (process $pid) runs but does not answer." "See $ERROR_LOG"
    say "the server runs (process $pid, $SOCKET, $ADDRESS:$PORT)"
}

wait_for_server() {
    local pid
    pid=$(server_pid)
    [ -n "$pid" ] || die "no server runs in $VAR." "Start it: make up"
    wait_until_it_answers "$pid"
}

case ${1-} in
    start) start ;;
    stop) stop ;;
    status) status ;;
    wait) wait_for_server ;;
    sql)
        shift
        status >/dev/null
        exec mariadb --defaults-file="$CONFIG" "$@"
        ;;
    *) die "unknown command '${1-}'" "usage: scripts/server.sh {start|stop|status|wait|sql}" ;;
esac
