#!/usr/bin/env bash
# OPTIMIZE TABLE, which packs in place, while others write to the table in every way.
#
# usage: tests/beside/optimize/run.sh [NAME...]       names of the tests in optimize.py; default: all. TEAK_SEED to
# repeat a run's choices Leaves the servers' error logs in build/optimize.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
work_in optimize
TEAK_SEED=${TEAK_SEED:-$RANDOM} /usr/bin/python3 "$ROOT/tests/beside/optimize/optimize.py" "$work" "$PLUGIN_DIR" "$@"
