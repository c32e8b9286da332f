#!/usr/bin/env bash
# Flips random bits in the files of a stopped engine and starts a server on them, again and again: every flip is told or
# harmless, the server lives, other tables are whole, and what is readable can be saved.
#
# usage: tests/damage/run.sh          TEAK_FLIP_ROUNDS (20) rounds of one to three flips, TEAK_SEED to repeat a run's
# choices
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
need_built "$BUILD/bin/teak"
exec /usr/bin/python3 "$ROOT/tests/damage/damage.py" --rounds "${TEAK_FLIP_ROUNDS:-20}" --seed "${TEAK_SEED:-$RANDOM}" \
    --plugin-dir "$PLUGIN_DIR" --teak "$BUILD/bin/teak" --directory "$BUILD/damage"
