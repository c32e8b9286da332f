#!/usr/bin/env bash
# Random tables, random statements, in Teak and in InnoDB side by side: what they give and what is in the tables must be
# the same (tests/answers/differential/differential.py).
#
# usage: tests/answers/differential/run.sh [OPTION...]     TEAK_SEED (1) is the first history's seed; options go to
# differential.py, such as --seconds 3600 --keep-going --kinds foreign --histories 1; without any: 150 histories
# Leaves the server's error log in build/differential/error.log.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
[ "$#" -gt 0 ] || set -- --histories 150 --seconds 1200 --keep-going
exec /usr/bin/python3 "$ROOT/tests/answers/differential/differential.py" --seed "${TEAK_SEED:-1}" --plugin-dir "$PLUGIN_DIR" \
    --directory "$BUILD/differential" "$@"
