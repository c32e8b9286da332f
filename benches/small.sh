#!/usr/bin/env bash
# What one small statement takes, counted and not timed: instructions, calls, allocations, locked instructions, cache
# lines, by layer, in Teak and in InnoDB, on private servers under build/bench-small. Fails where Teak takes more than
# 2 % more than benches/small.md says. How to read it: benches/README.md.
#
# usage: benches/small.sh [OPTION...]    options: benches/small.sh --help
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../scripts/lib/base.sh"

have valgrind || die "valgrind is not installed." "apt-get install valgrind"
plugins=${TEAK_PLUGIN_DIR:-$BUILD/plugin}
need_built "$plugins/ha_teak.so" "$BUILD/bin/teak-bench"
need_space "$BUILD" 3000 "the servers' data"
cc -O1 -Wall -Wextra -Werror -shared -fPIC -I/usr/include/mariadb/server -o "$BUILD/counting.so" "$ROOT/benches/counting.c"
exec /usr/bin/python3 "$ROOT/benches/small.py" --plugin-dir "$plugins" --teak-bench "$BUILD/bin/teak-bench" --counting "$BUILD/counting.so" \
    --directory "$BUILD/bench-small" "$@"
