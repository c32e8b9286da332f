# shellcheck shell=bash
# A root directory with a minimal Debian in it, and commands that run there. Sourced after base.sh and apt.sh.

# What README tells a new user to install before anything else.
FIRST_PACKAGES=(git make ca-certificates)

# configure_root RELEASE ROOT: the suites that an installer writes; and of this machine's network how names are found,
# whom it trusts beyond Debian's own list, and whether its mirror may be an old one.
configure_root() {
    local release=$1 root=$2 mirror archive suite
    mirror=$(apt_mirror "$release")
    while read -r archive suite; do
        printf 'deb %s/%s %s main\n' "${mirror%/*}" "$archive" "$suite"
    done < <(debian_suites "$release") >"$root/etc/apt/sources.list"
    apt-config dump Acquire::Check-Valid-Until >"$root/etc/apt/apt.conf.d/90mirror"
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    mkdir -p "$root/usr/local/share/ca-certificates"
    find /usr/local/share/ca-certificates -name '*.crt' \
        -exec cp {} "$root/usr/local/share/ca-certificates/" \; 2>/dev/null || true
}

# make_root RELEASE ROOT: by debootstrap's smallest variant. Made beside its place, so that an interrupted run leaves
# nothing half made.
make_root() {
    local release=$1 root=$2 log=$2.log
    [ "$(id -u)" -eq 0 ] || die "making another Debian needs root: chroot and mounts." "Run it as root."
    have debootstrap || { apt_refresh && apt_install debootstrap; }
    mkdir -p "${root%/*}"
    need_space "${root%/*}" 8000 "a minimal Debian and what is built in it"
    say "making a minimal Debian ($release) in $root"
    rm -rf --one-file-system "$root.new" "$root"
    debootstrap --variant=minbase "$release" "$root.new" "$(apt_mirror "$release")" >"$log" 2>&1 ||
        unavailable "debootstrap failed for $release: $(tail -n 1 "$log")" "Its log: $log"
    configure_root "$release" "$root.new"
    # shellcheck disable=SC2016
    in_root "$root.new" -- bash -ec 'apt-get -q update; apt-get -q -y --no-install-recommends install "$@"' install \
        "${FIRST_PACKAGES[@]}" >>"$log" 2>&1 </dev/null ||
        unavailable "installing ${FIRST_PACKAGES[*]} in $release failed: $(tail -n 1 "$log")" "The log: $log"
    mv -T "$root.new" "$root"
}

# in_root ROOT BIND... -- COMMAND...: with the environment of somebody who has just logged in. A BIND is FROM:TO.
# In mount and process spaces of its own: when it ends, and whatever ends it, neither a mount nor a process is left.
# Of this environment it has CI and what tests can be told (TEAK_SEED and such), but no place.
in_root() {
    local root=$1
    shift
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child bash -ec '
        root=$1
        shift
        mount --bind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/dev/shm"
        mount -t proc proc "$root/proc"
        while [ "$1" != -- ]; do
            mkdir -p "${1%%:*}" "$root${1#*:}"
            mount --bind "${1%%:*}" "$root${1#*:}"
            shift
        done
        shift
        mapfile -t told < <(env | grep -E "^(CI|TEAK_[A-Z_]+)=" | grep -vE "^TEAK_(CACHE|VAR|PLUGIN_DIR|BINARY)=")
        exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM=dumb "${told[@]}" \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
    ' root "$root" "$@"
}
