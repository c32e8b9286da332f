#!/usr/bin/env bash
# OPTIMIZE TABLE, which packs in place, while others write to the table in every way.
#
# usage: tests/optimize/run.sh [NAME...]       names of the tests in optimize.py; default: all. TEAK_SEED to repeat a
# run's choices
# Leaves the servers' error logs in build/optimize.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
work=$(mktemp -d /tmp/teak-optimize.XXXXXX)
keep() {
    mkdir -p "$BUILD/optimize"
    cp -f "$work/server/error.log" "$BUILD/optimize/" 2>/dev/null || true
    cp -f "$work/replica/error.log" "$BUILD/optimize/replica.log" 2>/dev/null || true
    rm -rf "$work"
}
trap keep EXIT
TEAK_SEED=${TEAK_SEED:-$RANDOM} /usr/bin/python3 "$ROOT/tests/optimize/optimize.py" "$work" "$PLUGIN_DIR" "$@"
