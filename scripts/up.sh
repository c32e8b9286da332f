#!/usr/bin/env bash
# From a fresh clone to a running server with Teak: sets up, builds, starts, runs the main job once, and says how
# to connect. A second run finds all that done.
#
# usage: scripts/up.sh
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"
# shellcheck source=scripts/lib/server.sh
. "$ROOT/scripts/lib/server.sh"

"$ROOT/scripts/setup.sh"
"$ROOT/scripts/build.sh"

was_running=$(server_pid)
if [ -n "$was_running" ] && [ "$BUILD/plugin/ha_teak.so" -nt "$PID_FILE" ]; then
    say "the plugin is newer than the running server: restarting it"
    "$ROOT/scripts/server.sh" stop
    was_running=''
fi
stop_what_we_started() {
    local status=$?
    if [ "$status" -ne 0 ] && [ -z "$was_running" ] && [ -n "$(server_pid)" ]; then
        warn "stopping the server, because this run failed"
        "$ROOT/scripts/server.sh" stop >&2 || true
    fi
    exit "$status"
}
trap stop_what_we_started EXIT

"$ROOT/scripts/server.sh" start
"$ROOT/scripts/job/run.sh"

cat <<END

The server runs as user $(id -un) under $VAR, with Teak as its default engine. To connect:
    make sql                                    a client as $(id -un), through the socket
    mariadb --defaults-file=$CONFIG catalogue_teak
    127.0.0.1:$PORT                              for programs; make a user for them first:
                                                CREATE USER app@127.0.0.1 IDENTIFIED BY 'secret'; GRANT ALL ON app.* TO app@127.0.0.1;
    make down                                   stops it; its data stays in $VAR/data
    make heap-demo                              starts it so that its memory can be looked into from SQL (docs/heap.md)
END
