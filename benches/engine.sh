#!/usr/bin/env bash
# Scans, look-ups and changes of many rows by statements that stay inside the server: Teak against InnoDB, MyRocks,
# MEMORY, MyISAM, and against other builds of Teak, on private servers under build/bench-engine. Prints a table; leaves
# build/bench-engine/engine.md and engine.json. How to read them: benches/README.md.
#
# usage: benches/engine.sh [OPTION...]    options: benches/engine.sh --help
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../scripts/lib/base.sh"

plugins=${TEAK_PLUGIN_DIR:-$BUILD/plugin}
need_built "$plugins/ha_teak.so"
need_space "$BUILD" 8000 "the benchmark's data"
exec /usr/bin/python3 "$ROOT/benches/engine.py" --plugin-dir "$plugins" --directory "$BUILD/bench-engine" "$@"
