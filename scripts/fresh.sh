#!/usr/bin/env bash
# Tries README's commands as a new user would: in a minimal Debian 12, made by debootstrap in build/fresh, with a clone
# of HEAD. What is not committed is not in it. Needs root. The system is removed again unless a command failed, or with
# --keep.
#
# usage: scripts/fresh.sh [--keep] [TARGET...]     targets of make; without any: up down test
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"
# shellcheck source=scripts/lib/apt.sh
. "$ROOT/scripts/lib/apt.sh"

FRESH=$BUILD/fresh
SYSTEM=$FRESH/root
# What README tells a new user to install before anything else.
first_packages=(git make ca-certificates)

mounted=()
unmount_all() {
    local i
    for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do umount "${mounted[i]}"; done
    mounted=()
}

mount_into() {
    mount "$@"
    mounted+=("${*: -1}")
}

# inside COMMAND...: in the system, with the environment of somebody who has just logged in. In a process space of its
# own, so that nothing that it leaves behind outlives it.
inside() {
    # shellcheck disable=SC2016
    unshare --pid --fork --kill-child chroot "$SYSTEM" /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM=dumb \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c \
        'mount -t proc proc /proc && cd && "$@"; status=$?; umount /proc; exit "$status"' fresh "$@" </dev/null
}

make_system() {
    local mirror
    mirror=$(apt_mirrors | awk '$2 == "bookworm" { print $1; exit }')
    have debootstrap || { apt_refresh && apt_install debootstrap; }
    need_space "$BUILD" 8000 "a fresh Debian and its build"
    say "making a minimal Debian 12 in ${SYSTEM#"$ROOT"/}"
    mkdir -p "$FRESH"
    debootstrap --variant=minbase bookworm "$SYSTEM" "$mirror" >"$FRESH/debootstrap.log" 2>&1 ||
        die "debootstrap failed." "Its log: $FRESH/debootstrap.log"
    # Of the network: how names are found, and whom this machine trusts beyond Debian's own list.
    cp -L /etc/resolv.conf "$SYSTEM/etc/resolv.conf"
    mkdir -p "$SYSTEM/usr/local/share/ca-certificates"
    find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$SYSTEM/usr/local/share/ca-certificates/" \; 2>/dev/null || true
}

main() {
    local keep=no targets=() target status=0
    for target in "$@"; do
        case $target in
            --keep) keep=yes ;;
            -*) die "unknown option '$target'" "usage: scripts/fresh.sh [--keep] [TARGET...]" ;;
            *) targets+=("$target") ;;
        esac
    done
    [ "${#targets[@]}" -gt 0 ] || targets=(up down test)
    [ "$(id -u)" -eq 0 ] || die "making a system needs root." "Run it as root: make fresh"
    [ ! -e "$SYSTEM" ] || rm -rf --one-file-system "$SYSTEM"
    make_system
    trap unmount_all EXIT
    mount_into --bind /dev "$SYSTEM/dev"
    mount_into -t tmpfs tmpfs "$SYSTEM/dev/shm"
    inside apt-get -q -y --no-install-recommends install "${first_packages[@]}" >"$FRESH/apt.log" 2>&1 ||
        die "installing ${first_packages[*]} failed." "The log: $FRESH/apt.log"
    git clone -q --no-local "$ROOT" "$SYSTEM/root/teak"
    for target in "${targets[@]}"; do
        say "in the fresh system: make $target"
        inside make --no-print-directory -C teak "$target" || {
            status=$?
            warn "make $target failed with $status; the system stays in $SYSTEM"
            return "$status"
        }
    done
    unmount_all
    [ "$keep" = yes ] || rm -rf --one-file-system "$SYSTEM"
    say "all went well in a fresh system: make ${targets[*]}"
}

main "$@"
