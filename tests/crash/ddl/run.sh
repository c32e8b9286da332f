#!/usr/bin/env bash
# Kills a private mariadbd with SIGKILL in the middle of DDL, again and again, and checks after each restart that every
# table is as before the statement or as after it, and that nothing else is there.
#
# usage: tests/crash/ddl/run.sh            TEAK_DDL_ROUNDS (20) rounds, TEAK_SEED to repeat a run's choices,
# TEAK_DDL_ENGINE=InnoDB to compare
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
cc -O1 -Wall -Wextra -Werror -shared -fPIC -o "$BUILD/ddl-stopper.so" "$ROOT/tests/crash/ddl/stopper.c" -ldl
exec /usr/bin/python3 "$ROOT/tests/crash/ddl/ddl.py" --rounds "${TEAK_DDL_ROUNDS:-20}" --seed "${TEAK_SEED:-$RANDOM}" \
    --engine "${TEAK_DDL_ENGINE:-Teak}" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/ddl" \
    --stopper "$BUILD/ddl-stopper.so"
