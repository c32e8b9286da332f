#!/usr/bin/env bash
# sysbench 1.0.20, all its oltp_* and select_* workloads, Teak and InnoDB in turn on one private server under
# build/bench. Prints a table; leaves build/bench/sysbench.md and sysbench.json. How to read them: benches/README.md.
#
# usage: benches/sysbench.sh [quick] [OPTION...]    options: benches/sysbench.sh --help
#        quick: one run of 5 s each, 1 and 8 threads
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../scripts/lib/base.sh"

have sysbench || die "sysbench is not installed." "apt-get install sysbench"
need_built "$BUILD/plugin/ha_teak.so"
need_space "$BUILD" 8000 "the benchmark's data"
mode=()
if [ "${1-}" = quick ]; then
    mode=(--runs 1 --seconds 5 --threads "1,8")
    shift
fi
exec /usr/bin/python3 "$ROOT/benches/sysbench.py" --plugin-dir "$BUILD/plugin" --directory "$BUILD/bench" "${mode[@]}" "$@"
