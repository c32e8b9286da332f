#!/usr/bin/env bash
# Old snapshots on a server: they stay exact under load, cost others nothing, and give way when they hold too much.
#
# usage: tests/snapshots/run.sh [NAME...]       names of the tests in snapshots.py; default: all
# Leaves the server's error log in build/snapshots/error.log.
set -euo pipefail
cd "$(dirname "$0")/../.."

plugin_dir=${TEAK_PLUGIN_DIR:-$PWD/build/plugin}
[ -e "$plugin_dir/ha_teak.so" ] || { echo "tests/snapshots: $plugin_dir/ha_teak.so is missing: run make build" >&2; exit 1; }
work=$(mktemp -d /tmp/teak-snapshots.XXXXXX)
keep() {
    mkdir -p build/snapshots
    cp -f "$work/server/error.log" build/snapshots/ 2>/dev/null || true
    rm -rf "$work"
}
trap keep EXIT
/usr/bin/python3 tests/snapshots/snapshots.py "$work/server" "$plugin_dir" "$@"
