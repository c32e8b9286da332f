#!/usr/bin/env bash
# Changes of tables under backups, old snapshots and prepared XA transactions, and what a kill right after them leaves.
#
# usage: tests/definitions/run.sh [NAME...]       names of the tests in definitions.py; default: all
# Leaves the server's error log in build/definitions/error.log.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
work=$(mktemp -d /tmp/teak-definitions.XXXXXX)
keep() {
    mkdir -p "$BUILD/definitions"
    cp -f "$work/server/error.log" "$BUILD/definitions/" 2>/dev/null || true
    rm -rf "$work"
}
trap keep EXIT
/usr/bin/python3 "$ROOT/tests/definitions/definitions.py" "$work/server" "$PLUGIN_DIR" "$@"
