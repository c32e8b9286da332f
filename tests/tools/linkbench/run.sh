#!/usr/bin/env bash
# `teak-bench` against a private server, Teak and InnoDB: a tiny graph is loaded, run with a snapshot in the middle
# phase and verified; results are well-formed; errors of the server and wrong counts are noticed; hot row and queue; a
# store of texts is filled and read. Half a minute.
#
# usage: tests/tools/linkbench/run.sh       TEAK_PLUGIN_DIR and TEAK_BINARY are tested instead of build/plugin and
# build/bin/teak-bench
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

binary=${TEAK_BINARY:-$BUILD/bin/teak-bench}
need_built "$PLUGIN_DIR/ha_teak.so" "$binary"
exec /usr/bin/python3 "$ROOT/tests/tools/linkbench/linkbench.py" --plugin-dir "$PLUGIN_DIR" --binary "$binary" \
    --directory "$BUILD/linkbench-test"
