#!/usr/bin/env bash
# Who waits for whom: each pair of statements of two transactions, by isolation level, with Teak and with InnoDB on one
# server. Where the second waits with one engine and not with the other, or comes to another result, that is in
# expected-differences.txt with its reason, or a failure.
#
# usage: tests/answers/waits/run.sh [OPTION...]     of waits.py: --only TEXT, --write (shows the differences as they
# are)
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
exec /usr/bin/python3 -B "$ROOT/tests/answers/waits/waits.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/waits" "$@"
