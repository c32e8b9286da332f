#!/usr/bin/env bash
# CREATE TEMPORARY TABLE: nothing is logged, more than memory has room for works, and a killed server leaves nothing.
#
# usage: tests/servers/temporary/run.sh [NAME...]    names of the tests in temporary.py; default: all. TEAK_SEED to
# repeat a run's choices Leaves the server's error log in build/temporary/error.log.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so" "$BUILD/bin/teak"
work_in temporary
TEAK_SEED=${TEAK_SEED:-$RANDOM} /usr/bin/python3 "$ROOT/tests/servers/temporary/temporary.py" "$work/server" "$PLUGIN_DIR" \
    "$BUILD/bin/teak" "$@"
