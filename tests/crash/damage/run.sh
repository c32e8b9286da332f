#!/usr/bin/env bash
# Flips random bits in the files of a stopped engine and starts a server on them, again and again: every flip is told or
# harmless, the server lives, other tables are whole, and what is readable can be saved. Before that, files of tables
# are damaged while a server runs, each in another part, beside work on others: none of that fails; and its catalog:
# no constraint is passed over.
#
# usage: tests/crash/damage/run.sh [beside | catalog | flips]     default: all
#        TEAK_FLIP_ROUNDS (20) rounds of one to three flips, TEAK_BESIDE_SECONDS (0) of work beside tables that are
#        damaged, or for as long as it takes to damage them, TEAK_SEED to repeat a run's choices
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
need_built "$BUILD/bin/teak"
run() {
    /usr/bin/python3 "$ROOT/tests/crash/damage/$1.py" --seed "${TEAK_SEED:-$RANDOM}" --plugin-dir "$PLUGIN_DIR" \
        --teak "$BUILD/bin/teak" --directory "$BUILD/damage-$1" "${@:2}"
}
what=${1:-all}
case $what in all | beside) run beside --seconds "${TEAK_BESIDE_SECONDS:-0}" ;; esac
case $what in all | catalog) run catalog ;; esac
case $what in all | flips) run damage --rounds "${TEAK_FLIP_ROUNDS:-20}" ;; esac
