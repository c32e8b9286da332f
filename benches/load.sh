#!/usr/bin/env bash
# Import of a dump (mariadb < dump.sql) of forum articles into BLACKHOLE, InnoDB, Teak, MyISAM and MyRocks, on a private
# server under build/bench-load. Prints a table; leaves load.md and load.json there. How to read them:
# benches/README.md.
#
# usage: benches/load.sh [OPTION...]    options: benches/load.sh --help    e.g. --size 100 for a quick look (MB)
#        TEAK_PLUGIN_DIR is the directory of ha_teak.so, if not build/plugin
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../scripts/lib/base.sh"

plugins=${TEAK_PLUGIN_DIR:-$BUILD/plugin}
need_built "$plugins/ha_teak.so"
size=1000
previous=
for argument in "$@"; do
    [ "$previous" != --size ] || size=$argument
    previous=$argument
    case $argument in --size=*) size=${argument#--size=} ;; esac
done
case $size in '' | *[!0-9]*) die "--size wants a number of MB, not '$size'." ;; esac
# Every engine's tables at once, the dump and its copy, logs and sorting.
need_space "$BUILD" "$((size * 15 + 4000))" "the benchmark's data"
exec /usr/bin/python3 "$ROOT/benches/load.py" --plugin-dir "$plugins" --directory "$BUILD/bench-load" "$@"
