#!/usr/bin/env bash
# Fills a small disk (a tmpfs, so this needs root) and looks what still works.
#
# usage: tests/crash/full_disk/run.sh [CASE...]
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
if [ "$(id -u)" -ne 0 ]; then
    echo "only root can mount a small disk to fill"
    exit 77
fi
work=$BUILD/full_disk
# In a mount space of its own: whatever ends this, no mount is left.
exec unshare --mount /usr/bin/python3 -B "$ROOT/tests/crash/full_disk/full_disk.py" --plugin-dir "$PLUGIN_DIR" --directory "$work" "$@"
