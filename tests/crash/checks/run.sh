#!/usr/bin/env bash
# CHECK TABLE and REPAIR TABLE on tables whose indexes or blocks were damaged on purpose, while the server was down.
#
# usage: tests/crash/checks/run.sh
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so" "$BUILD/bin/teak"
cargo build --release --quiet -p teak-core --example edit_tree
exec /usr/bin/python3 "$ROOT/tests/crash/checks/checks.py" --plugin-dir "$PLUGIN_DIR" --teak "$BUILD/bin/teak" \
    --edit "${CARGO_TARGET_DIR:-$ROOT/target}/release/examples/edit_tree" --directory "$BUILD/checks"
