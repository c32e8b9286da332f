#!/usr/bin/env bash
# Runs a command of this checkout in another Debian: a root directory that is made once for a machine, and can be
# deleted at any time. What the command builds (build, target, var) is apart from the machine's own, in build/RELEASE.
# Needs root. Ends with the command's status, or with 69 where that Debian cannot be had.
#
# usage: scripts/root.sh RELEASE [COMMAND ARGUMENT...]     RELEASE is bookworm, trixie, sid; without a command it is
#     only made. What the command leaves running ends with it. For example: scripts/root.sh trixie make up
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"
# shellcheck source=scripts/lib/apt.sh
. "$ROOT/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/root.sh
. "$ROOT/scripts/lib/root.sh"

main() {
    local release=${1-} root own
    case $release in
        '' | -* | */*) die "which Debian?" "usage: scripts/root.sh RELEASE [COMMAND ARGUMENT...]" ;;
    esac
    shift
    root=$CACHE/roots/$release
    mkdir -p "$CACHE/roots"
    # Two that want the same root at once make it once.
    (
        flock 9
        [ -d "$root" ] || make_root "$release" "$root"
    ) 9>"$root.lock"
    [ "$#" -gt 0 ] || return 0
    own=$BUILD/$release
    mkdir -p "$own/build" "$own/target" "$own/var"
    # The checkout's files belong to somebody whom git there does not know.
    # shellcheck disable=SC2016
    in_root "$root" "$ROOT:$ROOT" "$own/build:$BUILD" "$own/target:$ROOT/target" "$own/var:$ROOT/var" -- \
        env GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' \
        bash -c 'cd "$0" && exec "$@"' "$ROOT" "$@"
}

main "$@"
