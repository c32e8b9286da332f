#!/usr/bin/env bash
# LinkBench on two private servers at the same time, under build/bench-side-by-side: the processor time that two
# engines, or two builds of Teak, take for an operation, whatever else the machine is doing. How to read it:
# benches/README.md.
#
# usage: benches/side_by_side.sh [OPTION...]    options: benches/side_by_side.sh --help
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../scripts/lib/base.sh"

plugins=${TEAK_PLUGIN_DIR:-$BUILD/plugin}
need_built "$plugins/ha_teak.so" "$BUILD/bin/teak-bench"
need_space "$BUILD" 12000 "the benchmark's data"
exec /usr/bin/python3 "$ROOT/benches/side_by_side.py" --plugin-dir "$plugins" --program "$BUILD/bin/teak-bench" --directory "$BUILD/bench-side-by-side" "$@"
