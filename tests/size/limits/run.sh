#!/usr/bin/env bash
# The limits that can be tried in some seconds; the others are in soak.sh.
#
# usage: tests/size/limits/run.sh
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so" "$BUILD/bin/teak"
trap 'rm -rf "$BUILD/limits/short/data"' EXIT
# Ten times the cache, and much more than the allowance.
/usr/bin/python3 "$ROOT/tests/size/limits/large_values.py" --cache-mib 16 --texts-mib 160 --allowance-mib 190 --single-mib 30 \
    --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/limits/short"
# Many locks of one transaction: no cost that grows with the square, and memory that is bounded.
/usr/bin/python3 "$ROOT/tests/size/limits/locks.py" --check --missing 20000 --rows 100000 \
    --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/limits/short"
# Resident memory in every kind of work.
/usr/bin/python3 "$ROOT/tests/size/limits/bound.py" --cache-mib 32 --rows 60000 --seconds 1 --sessions 100 \
    --plugin-dir "$PLUGIN_DIR" --teak "$BUILD/bin/teak" --directory "$BUILD/limits/short"
# Few file descriptors: statements are refused, and the engine goes on.
/usr/bin/python3 "$ROOT/tests/size/limits/descriptors.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/limits/short"
# Index entries that are written late, and those who lock ranges meanwhile.
/usr/bin/python3 "$ROOT/tests/size/limits/gathered.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/limits/short"
