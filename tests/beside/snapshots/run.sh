#!/usr/bin/env bash
# Old snapshots on a server: they stay exact under load, cost others nothing, and give way when they hold too much.
#
# usage: tests/beside/snapshots/run.sh [NAME...]       names of the tests in snapshots.py; default: all
# Leaves the server's error log in build/snapshots/error.log.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
work_in snapshots
/usr/bin/python3 "$ROOT/tests/beside/snapshots/snapshots.py" "$work/server" "$PLUGIN_DIR" "$@"
