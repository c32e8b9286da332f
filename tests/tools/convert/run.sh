#!/usr/bin/env bash
# Converts tables between InnoDB and Teak by `teak convert` and compares rows and definitions; kills command and server
# on the way and goes on; watches what others can do meanwhile.
#
# usage: tests/tools/convert/run.sh [CASE...]     TEAK_SEED to repeat a run's choices
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
exec /usr/bin/python3 "$ROOT/tests/tools/convert/convert.py" --seed "${TEAK_SEED:-$RANDOM}" --teak "$BUILD/bin/teak" \
    --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/convert" "$@"
