#!/usr/bin/env bash
# Limits that need a lot of data: resident memory while three times the cache is loaded, and the time to restart after
# kill -9 with 1 GiB of log. Not part of `make test`, which runs each run.sh: this takes minutes; `bound`, an hour of
# all kinds of work in a memory group with a server that is killed now and then, is not among `all`.
#
# usage: tests/size/limits/soak.sh [memory|large_values|restart|bound]     TEAK_SEED to repeat a run's choices,
#        TEAK_SOAK_MINUTES
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so" "$BUILD/bin/teak"
need_space "$BUILD" 6000 "the limits' data"

passed=0
failed=0

# limit NAME [OPTION...]: runs a test, shows its output, adds up its last line.
limit() {
    local name=$1 log=$BUILD/limits/$1.log counts
    shift
    printf -- '--- %s\n' "$name"
    /usr/bin/python3 "$ROOT/tests/size/limits/$name.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/limits/$name" "$@" 2>&1 |
        tee "$log" | grep --line-buffered -v "^$name: [0-9]* passed" || true
    counts=$(sed -nE "s/^$name: ([0-9]+) passed, ([0-9]+) failed$/\1 \2/p" "$log")
    # A test that broke off before its last line failed.
    read -r -a counts <<<"${counts:-0 1}"
    passed=$((passed + counts[0]))
    failed=$((failed + counts[1]))
    rm -rf "$BUILD/limits/$name/data"
}

mkdir -p "$BUILD/limits"
case ${1-all} in
    memory) limit memory ;;
    large_values) limit large_values ;;
    restart) limit restart --seed "${TEAK_SEED:-$RANDOM}" ;;
    bound) limit bound --teak "$BUILD/bin/teak" --minutes "${TEAK_SOAK_MINUTES:-60}" --seed "${TEAK_SEED:-$RANDOM}" ;;
    all)
        limit memory
        limit large_values
        limit restart --seed "${TEAK_SEED:-$RANDOM}"
        ;;
    *) die "unknown limit '$1'" "usage: tests/size/limits/soak.sh [memory|large_values|restart|bound]" ;;
esac
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
