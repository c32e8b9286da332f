#!/usr/bin/env bash
# A wiki's store of texts (`teak-bench external-store`) on MyISAM, InnoDB, MyRocks, ARCHIVE and Teak, each on a private
# server of its own under build/bench-external, whose memory is limited: gzipped texts and plain ones, cold and warm.
# Prints a table with ratios to InnoDB; leaves external.html, external.md, external.json and the JSON of every engine
# there. How to read them: benches/README.md.
#
# usage: benches/external.sh [--quick] [OPTION...]    options: benches/external.sh --help
#        --quick: everything very small, three minutes; its figures mean nothing
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../scripts/lib/base.sh"

plugins=${TEAK_PLUGIN_DIR:-$BUILD/plugin}
binary=${TEAK_BINARY:-$BUILD/bin/teak-bench}
need_built "$plugins/ha_teak.so" "$binary"
need_space "$BUILD" 8000 "the benchmark's data"
exec /usr/bin/python3 "$ROOT/benches/external.py" --plugin-dir "$plugins" --program "$binary" --directory "$BUILD/bench-external" "$@"
