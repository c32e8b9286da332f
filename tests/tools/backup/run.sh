#!/usr/bin/env bash
# Copies of a server that works, started by another: snapshots of its file system, and what teak backup makes.
#
# usage: tests/tools/backup/run.sh [NAME...]   names of tests in backup.py, binlogs.py, partial.py, frozen.py and of
# set-ups
#        in matrix.py; default: all but most of the set-ups. matrix: those of TEAK_BACKUP_MATRIX, which is few (default)
#        or all
#        TEAK_SEED to repeat a run's choices, TEAK_BACKUP_ROUNDS for more or fewer copies in each test
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so" "$BUILD/bin/teak"
if [ "$(id -u)" -ne 0 ]; then
    echo "only root can mount a small disk to fill"
    exit 77
fi
work=$(mktemp -d /tmp/teak-backup.XXXXXX)
trap 'rm -rf "$work"' EXIT
seed=${TEAK_SEED:-$RANDOM}
status=0
# In a mount space of their own: whatever ends this, no mount is left.
tests() {
    unshare --mount /usr/bin/python3 "$ROOT/tests/tools/backup/$1" "$work/files" "$PLUGIN_DIR" "$BUILD/bin/teak" "${@:3}" --seed "$seed" --rounds "$2" || status=1
}
matrix() {
    [ "${TEAK_BACKUP_MATRIX:-few}" = all ] && rounds=1 || rounds=0
    tests matrix.py "$rounds" "$@"
}
if [ "$*" = matrix ]; then
    matrix
    exit "$status"
fi
tests backup.py "${TEAK_BACKUP_ROUNDS:-6}" "$@"
tests binlogs.py 1 "$@"
tests partial.py "${TEAK_BACKUP_ROUNDS:-3}" "$@"
tests frozen.py "${TEAK_BACKUP_ROUNDS:-3}" "$@"
matrix "$@"
exit "$status"
