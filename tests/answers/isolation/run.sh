#!/usr/bin/env bash
# Searches histories of concurrent transactions for anomalies, level by level: a short look in CI, as long as you like
# in a soak. Before that, lost updates are counted (lost_updates.py), the greatest keys are looked at beside a writer
# (downwards.py), and what a transaction without snapshot isolation reads after its own writes is compared with what
# InnoDB shows (own_writes.py).
#
# usage: tests/answers/isolation/run.sh [OPTION...]     of isolation.py: --seconds N (of each run), --only NAME, --seed
# N
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
(cd "$ROOT/tests/answers/isolation" && /usr/bin/python3 -B test_anomalies.py)
/usr/bin/python3 -B "$ROOT/tests/answers/isolation/lost_updates.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/isolation-lost"
/usr/bin/python3 -B "$ROOT/tests/answers/isolation/downwards.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/isolation-downwards"
/usr/bin/python3 -B "$ROOT/tests/answers/isolation/own_writes.py" --seed "${TEAK_SEED:-$RANDOM}" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/isolation-own"
exec /usr/bin/python3 -B "$ROOT/tests/answers/isolation/isolation.py" --seed "${TEAK_SEED:-$RANDOM}" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/isolation" "$@"
