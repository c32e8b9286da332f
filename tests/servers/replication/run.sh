#!/usr/bin/env bash
# Kills a replica with SIGKILL while it applies transactions, again and again, and checks that its position and its rows
# always agree and that in the end it has what the primary has. Before that, small cases of parallel replication: an
# earlier transaction has to get past later ones, while the replica runs and while it shuts down; transactions over two
# engines; cascades of foreign keys; columns that get other types; row events without all columns.
#
# usage: tests/servers/replication/run.sh     TEAK_REPLICATION_ROUNDS (6) rounds, TEAK_SEED to repeat a run's choices
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
status=0
/usr/bin/python3 "$ROOT/tests/servers/replication/queue_deadlock.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/queue" || status=1
/usr/bin/python3 "$ROOT/tests/servers/replication/shutdown_deadlock.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/shutdown" || status=1
/usr/bin/python3 "$ROOT/tests/servers/replication/sequences.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/replicated-sequences" || status=1
/usr/bin/python3 "$ROOT/tests/servers/replication/two_engines.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/two-engines" || status=1
/usr/bin/python3 "$ROOT/tests/servers/replication/altered_types.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/altered-types" || status=1
/usr/bin/python3 "$ROOT/tests/servers/replication/row_images.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/row-images" || status=1
/usr/bin/python3 "$ROOT/tests/servers/replication/cascades.py" --seed "${TEAK_SEED:-$RANDOM}" --plugin-dir "$PLUGIN_DIR" \
    --directory "$BUILD/replicated-cascades" || status=1
/usr/bin/python3 "$ROOT/tests/servers/replication/replication.py" --rounds "${TEAK_REPLICATION_ROUNDS:-6}" \
    --seed "${TEAK_SEED:-$RANDOM}" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/replication" || status=1
exit "$status"
