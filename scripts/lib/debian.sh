# shellcheck shell=bash
# Which Debian this is, and what each Debian has. Sourced by apt.sh.

# debian_release: bookworm, trixie, ...; nothing on another distribution.
debian_release() {
    [ -r /etc/os-release ] || return 0
    # shellcheck disable=SC1091
    (. /etc/os-release && [ "${ID-}" = debian ] && printf '%s\n' "${VERSION_CODENAME:-sid}") || true
}

# mariadb_series RELEASE: the series of MariaDB in it, or nothing where Teak is not built.
mariadb_series() {
    case $1 in
        bookworm) echo 10.11 ;;
        trixie) echo 11.8 ;;
    esac
}

# debian_suites RELEASE: where its packages are, without the mirror. Unstable has neither updates nor security.
debian_suites() {
    printf '%s\n' "debian $1"
    [ "$1" = sid ] || printf '%s\n' "debian $1-updates" "debian-security $1-security"
}
