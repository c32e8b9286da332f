#!/usr/bin/env bash
# Loads dumps serially by `mariadb` and on several connections by `teak load`, into Teak and InnoDB, and compares the
# results; kills loader and server and resumes; feeds hostile input.
#
# usage: tests/tools/load/run.sh [CASE...]     TEAK_SEED to repeat a run's choices
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
exec /usr/bin/python3 "$ROOT/tests/tools/load/load.py" --seed "${TEAK_SEED:-$RANDOM}" --teak "$BUILD/bin/teak" \
    --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/load" "$@"
