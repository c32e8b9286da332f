#!/usr/bin/env bash
# Single tables from one server to another: FLUSH TABLES ... FOR EXPORT, DISCARD and IMPORT TABLESPACE, with kills in
# the middle, wrong definitions and damaged files.
#
# usage: tests/tools/exports/run.sh [NAME...]       names of the tests in exports.py; default: all
# TEAK_SEED repeats a run's kills. Leaves the servers' error logs in build/exports/.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
cc -O1 -Wall -Wextra -Werror -shared -fPIC -o "$BUILD/exports-stopper.so" "$ROOT/tests/crash/ddl/stopper.c" -ldl
work=$(mktemp -d /tmp/teak-exports.XXXXXX)
keep() {
    mkdir -p "$BUILD/exports"
    for name in source target; do
        cp -f "$work/$name/error.log" "$BUILD/exports/$name.log" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap keep EXIT
/usr/bin/python3 "$ROOT/tests/tools/exports/exports.py" "$work" "$PLUGIN_DIR" "$BUILD/exports-stopper.so" "$@"
