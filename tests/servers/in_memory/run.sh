#!/usr/bin/env bash
# Tables with IN_MEMORY=YES over kills, restarts and replication: empty, with their definitions, and nothing written.
#
# usage: tests/servers/in_memory/run.sh [NAME...]    names of the tests in in_memory.py and replicas.py; default: all.
# TEAK_SEED to repeat a run's choices Leaves the server's error log in build/in_memory/error.log.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
work_in in_memory
export TEAK_SEED=${TEAK_SEED:-$RANDOM}
in_memory=() replicas=()
for name in "$@"; do
    if grep -q "^def $name(" "$ROOT/tests/servers/in_memory/replicas.py"; then replicas+=("$name"); else in_memory+=("$name"); fi
done
if [ $# -eq 0 ] || [ ${#in_memory[@]} -gt 0 ]; then
    /usr/bin/python3 "$ROOT/tests/servers/in_memory/in_memory.py" "$work/server" "$PLUGIN_DIR" "${in_memory[@]}"
fi
if [ $# -eq 0 ] || [ ${#replicas[@]} -gt 0 ]; then
    /usr/bin/python3 "$ROOT/tests/servers/in_memory/replicas.py" "$work/chain" "$PLUGIN_DIR" "${replicas[@]}"
fi
