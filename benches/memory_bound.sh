#!/usr/bin/env bash
# Data larger than memory: sysbench's workloads and the Insert Benchmark on InnoDB, MyRocks and Teak, each on a private
# server of its own under build/bench-memory-bound, whose memory is limited. Prints a line for each step; leaves
# memory_bound.md and memory_bound.json there. How to read them: benches/README.md.
#
# usage: benches/memory_bound.sh [--quick] [OPTION...]    options: benches/memory_bound.sh --help
#        --quick: everything small, its figures mean nothing
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../scripts/lib/base.sh"

have sysbench || die "sysbench is not installed." "apt-get install sysbench"
plugins=${TEAK_PLUGIN_DIR:-$BUILD/plugin}
need_built "$plugins/ha_teak.so"
need_space "$BUILD" 8000 "the benchmark's data"
exec /usr/bin/python3 "$ROOT/benches/memory_bound.py" --plugin-dir "$plugins" --directory "$BUILD/bench-memory-bound" "$@"
