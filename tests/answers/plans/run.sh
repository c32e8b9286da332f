#!/usr/bin/env bash
# The plans of queries over tables that are in memory, that nobody has read since the start, and that do not fit, beside
# InnoDB's: by rows that the server asks for.
#
# usage: tests/answers/plans/run.sh [OPTION...]     options go to plans.py: --queries 100; TEAK_SEED for other numbers
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
exec /usr/bin/python3 "$ROOT/tests/answers/plans/plans.py" --seed "${TEAK_SEED:-1}" --plugin-dir "$PLUGIN_DIR" \
    --directory "$BUILD/plans" "$@"
