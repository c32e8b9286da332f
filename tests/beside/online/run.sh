#!/usr/bin/env bash
# ALTER TABLE ... ADD INDEX, and what writes all rows anew, with LOCK=NONE, while others write to the table in every
# way.
#
# usage: tests/beside/online/run.sh [NAME...]       names of the tests in online.py and rebuilds.py; default: all.
# TEAK_SEED to repeat a run's choices Leaves the server's error log in build/online/error.log.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
work_in online
export TEAK_SEED=${TEAK_SEED:-$RANDOM}
for file in online rebuilds; do
    rm -rf "$work/server"
    /usr/bin/python3 "$ROOT/tests/beside/online/$file.py" "$work/server" "$PLUGIN_DIR" "$@"
done
