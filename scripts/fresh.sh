#!/usr/bin/env bash
# Tries README's commands as a new user would: in a minimal Debian, made by debootstrap in build/fresh, with a clone of
# HEAD. What is not committed is not in it. Needs root. The system is removed again unless a command failed, or with
# --keep.
#
# usage: scripts/fresh.sh [--keep] [--release RELEASE] [TARGET...]
#     targets of make, without any: up down test; RELEASE is bookworm, trixie, ..., without it this machine's own
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"
# shellcheck source=scripts/lib/apt.sh
. "$ROOT/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/root.sh
. "$ROOT/scripts/lib/root.sh"

SYSTEM=$BUILD/fresh/root

main() {
    local keep=no release targets=() target status=0
    release=$(debian_release)
    while [ "$#" -gt 0 ]; do
        case $1 in
            --keep) keep=yes ;;
            --release)
                shift
                release=${1:?--release needs a name}
                ;;
            -*) die "unknown option '$1'" "usage: scripts/fresh.sh [--keep] [--release RELEASE] [TARGET...]" ;;
            *) targets+=("$1") ;;
        esac
        shift
    done
    [ "${#targets[@]}" -gt 0 ] || targets=(up down test)
    [ -n "$release" ] || die "this machine is no Debian, so it has no release of its own." "Give one: --release bookworm"
    make_root "$release" "$SYSTEM"
    git clone -q --no-local "$ROOT" "$SYSTEM/root/teak"
    for target in "${targets[@]}"; do
        say "in the fresh system ($release): make $target"
        in_root "$SYSTEM" -- make --no-print-directory -C /root/teak "$target" </dev/null || {
            status=$?
            warn "make $target failed with $status; the system stays in $SYSTEM"
            return "$status"
        }
    done
    [ "$keep" = yes ] || rm -rf --one-file-system "$SYSTEM"
    say "all went well in a fresh system ($release): make ${targets[*]}"
}

main "$@"
