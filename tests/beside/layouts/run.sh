#!/usr/bin/env bash
# Random changes of columns and rows, the same in Teak, at once, and in InnoDB, with kills and old snapshots in between;
# what is in the tables must be the same all the time.
#
# usage: tests/beside/layouts/run.sh            TEAK_LAYOUT_ROUNDS (6) rounds, TEAK_SEED to repeat a run's choices
# Leaves the server's error log in build/layouts/error.log.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
exec /usr/bin/python3 "$ROOT/tests/beside/layouts/layouts.py" --rounds "${TEAK_LAYOUT_ROUNDS:-6}" \
    --seed "${TEAK_SEED:-$RANDOM}" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/layouts"
