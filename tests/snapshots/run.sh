#!/usr/bin/env bash
# Old snapshots on a server: they stay exact under load, cost others nothing, and give way when they hold too much.
#
# usage: tests/snapshots/run.sh [NAME...]       names of the tests in snapshots.py; default: all
# Leaves the server's error log in build/snapshots/error.log.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
work=$(mktemp -d /tmp/teak-snapshots.XXXXXX)
keep() {
    mkdir -p "$BUILD/snapshots"
    cp -f "$work/server/error.log" "$BUILD/snapshots/" 2>/dev/null || true
    rm -rf "$work"
}
trap keep EXIT
/usr/bin/python3 "$ROOT/tests/snapshots/snapshots.py" "$work/server" "$PLUGIN_DIR" "$@"
