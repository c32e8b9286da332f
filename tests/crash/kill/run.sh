#!/usr/bin/env bash
# Kills a private mariadbd with SIGKILL under load, again and again, and checks after each restart that nothing
# acknowledged is missing and nothing else is there. Before that the same for values of sequences: none may come twice;
# and for transactions over two engines, right after they were acknowledged; and for large values that are put together.
#
# usage: tests/crash/kill/run.sh            TEAK_KILL_ROUNDS (20) rounds, TEAK_SEED to repeat a run's choices
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so" "$BUILD/bin/teak"
status=0
/usr/bin/python3 "$ROOT/tests/crash/kill/sequences.py" --rounds 4 --seed "${TEAK_SEED:-$RANDOM}" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/kill-sequences" || status=1
/usr/bin/python3 "$ROOT/tests/crash/kill/two_engines.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/kill-two-engines" || status=1
/usr/bin/python3 "$ROOT/tests/crash/kill/histories.py" --rounds 8 --seed "${TEAK_SEED:-$RANDOM}" --plugin-dir "$PLUGIN_DIR" --teak "$BUILD/bin/teak" --directory "$BUILD/kill-histories" || status=1
/usr/bin/python3 "$ROOT/tests/crash/kill/kill.py" --rounds "${TEAK_KILL_ROUNDS:-20}" --seed "${TEAK_SEED:-$RANDOM}" \
    --plugin-dir "$PLUGIN_DIR" --teak "$BUILD/bin/teak" --directory "$BUILD/kill" || status=1
exit "$status"
