#!/usr/bin/env bash
# Changes of tables under backups, old snapshots and prepared XA transactions, and what a kill right after them leaves.
#
# usage: tests/beside/definitions/run.sh [NAME...]       names of the tests in definitions.py; default: all
# Leaves the server's error log in build/definitions/error.log.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
work_in definitions
/usr/bin/python3 "$ROOT/tests/beside/definitions/definitions.py" "$work/server" "$PLUGIN_DIR" "$@"
