#!/usr/bin/env bash
# Teak's tables in the server's query cache: what it serves is what the session would read. One case after the other
# (cases.py), a replica (replica.py), then several sessions that choose what they do (sessions.py).
#
# usage: tests/answers/query_cache/run.sh [NAME...]     of cases, without the others; default: all.
# TEAK_QUERY_CACHE_SECONDS: how long the sessions go on; TEAK_SEED to repeat their choices
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
/usr/bin/python3 -B "$ROOT/tests/answers/query_cache/cases.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/query-cache" "$@"
[ $# -eq 0 ] || exit 0
/usr/bin/python3 -B "$ROOT/tests/answers/query_cache/replica.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/query-cache-replica"
exec /usr/bin/python3 -B "$ROOT/tests/answers/query_cache/sessions.py" --seconds "${TEAK_QUERY_CACHE_SECONDS:-15}" \
    --seed "${TEAK_SEED:-$RANDOM}" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/query-cache-sessions"
