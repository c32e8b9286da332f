#!/usr/bin/env bash
# Tables in memory: Teak's with IN_MEMORY=YES, MEMORY's with btree and with hash keys, beside InnoDB and Teak with all
# their rows in the cache. sysbench, bytes for a row, and the statements of engine.sh, on private servers under
# build/bench-memory. Prints charts; leaves memory.html, memory.md and memory.json there. How to read them:
# benches/README.md.
#
# usage: benches/memory.sh [OPTION...]    options: benches/memory.sh --help
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../scripts/lib/base.sh"

have sysbench || die "sysbench is not installed." "apt-get install sysbench"
plugins=${TEAK_PLUGIN_DIR:-$BUILD/plugin}
need_built "$plugins/ha_teak.so"
need_space "$BUILD" 8000 "the benchmark's data"
exec /usr/bin/python3 "$ROOT/benches/memory.py" --plugin-dir "$plugins" --directory "$BUILD/bench-memory" "$@"
