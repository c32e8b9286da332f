#!/usr/bin/env bash
# LinkBench with a long-running snapshot, then a hot row and a queue under an old snapshot: InnoDB, Teak and MyRocks on
# one private server under build/bench-linkbench. Prints a table with goals; leaves linkbench.md, linkbench.json and
# linkbench.html there, with the JSON of every run. How to read them: benches/README.md.
#
# usage: benches/linkbench.sh [quick] [OPTION...]    options: benches/linkbench.sh --help
#        quick: everything very small, two minutes; its figures mean nothing
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../scripts/lib/base.sh"

plugins=${TEAK_PLUGIN_DIR:-$BUILD/plugin}
need_built "$plugins/ha_teak.so" "$BUILD/bin/teak-bench"
mode=()
space=20000
if [ "${1-}" = quick ]; then
    mode=(--maxid 20000 --warmup 2 --phase 5 --hotrow 3 --queue 20000 --cache "256M" --settle 3)
    space=4000
    shift
fi
need_space "$BUILD" "$space" "the benchmark's data"
exec /usr/bin/python3 "$ROOT/benches/linkbench.py" --plugin-dir "$plugins" --program "$BUILD/bin/teak-bench" --directory "$BUILD/bench-linkbench" \
    "${mode[@]}" "$@"
