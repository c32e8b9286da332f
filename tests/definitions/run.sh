#!/usr/bin/env bash
# Changes of tables under backups, old snapshots and prepared XA transactions, and what a kill right after them leaves.
#
# usage: tests/definitions/run.sh [NAME...]       names of the tests in definitions.py; default: all
# Leaves the server's error log in build/definitions/error.log.
set -euo pipefail
cd "$(dirname "$0")/../.."

plugin_dir=${TEAK_PLUGIN_DIR:-$PWD/build/plugin}
[ -e "$plugin_dir/ha_teak.so" ] || { echo "tests/definitions: $plugin_dir/ha_teak.so is missing: run make build" >&2; exit 1; }
work=$(mktemp -d /tmp/teak-definitions.XXXXXX)
keep() {
    mkdir -p build/definitions
    cp -f "$work/server/error.log" build/definitions/ 2>/dev/null || true
    rm -rf "$work"
}
trap keep EXIT
/usr/bin/python3 tests/definitions/definitions.py "$work/server" "$plugin_dir" "$@"
