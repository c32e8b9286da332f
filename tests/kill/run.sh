#!/usr/bin/env bash
# Kills a private mariadbd with SIGKILL under load, again and again, and checks after each restart that nothing
# acknowledged is missing and nothing else is there.
#
# usage: tests/kill/run.sh            TEAK_KILL_ROUNDS (20) rounds, TEAK_SEED to repeat a run's choices
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../scripts/lib/base.sh"

need_built "$BUILD/plugin/ha_teak.so" "$BUILD/bin/teak"
exec /usr/bin/python3 "$ROOT/tests/kill/kill.py" --rounds "${TEAK_KILL_ROUNDS:-20}" --seed "${TEAK_SEED:-$RANDOM}" \
    --plugin-dir "$BUILD/plugin" --teak "$BUILD/bin/teak" --directory "$BUILD/kill"
