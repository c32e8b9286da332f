#!/usr/bin/env bash
# `teak bench` against a private server, Teak and InnoDB: a tiny graph is loaded, run with a snapshot in the middle
# phase and verified; results are well-formed; errors of the server and wrong counts are noticed; hot row and queue.
# Half a minute.
#
# usage: tests/linkbench/run.sh       TEAK_PLUGIN_DIR and TEAK_BINARY are tested instead of build/plugin and
# build/bin/teak
set -euo pipefail
cd "$(dirname "$0")/../.."
plugins=${TEAK_PLUGIN_DIR:-build/plugin}
binary=${TEAK_BINARY:-build/bin/teak}
for file in "$plugins/ha_teak.so" "$binary"; do
    [ -e "$file" ] || { echo "tests/linkbench: $file is missing: run make build" >&2; exit 1; }
done
exec /usr/bin/python3 tests/linkbench/linkbench.py --plugin-dir "$plugins" --binary "$binary" --directory build/linkbench-test
