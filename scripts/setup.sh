#!/usr/bin/env bash
# Installs what a fresh Debian 12 or 13 lacks to build and run Teak; a second run finds everything there and takes
# less than a second. With --test also what only the tests need.
#
# usage: scripts/setup.sh [--test]
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"
# shellcheck source=scripts/lib/apt.sh
. "$ROOT/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/mariadb.sh
. "$ROOT/scripts/lib/mariadb.sh"

build_packages=(g++ make gcc libc6-dev python3 tzdata perl xz-utils)
test_packages=(clang-format shellcheck sysbench patch python3-pymysql zstd openssl prometheus prometheus-mysqld-exporter
    libjemalloc2 libjemalloc-dev google-perftools binutils tmux procps litmus cadaver rclone
    davfs2)
# Debian 13 came without mydumper (tests/kit/debian.py); its libraries say that their time_t has 64 bits.
if [ "$(debian_release)" = bookworm ]; then
    test_packages+=(mydumper libgoogle-perftools4)
else
    test_packages+=(libgoogle-perftools4t64)
fi
RUST_MINIMUM=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml")

check_distribution() {
    local name=unknown
    [ ! -r /etc/os-release ] || name=$(. /etc/os-release && printf '%s' "${PRETTY_NAME:-unknown}")
    [ -n "$MARIADB_SERIES" ] || die "this is $name; Teak's set-up knows Debian 12 (bookworm) and 13 (trixie)." \
        "Use such a machine or container, for example: docker run -it -v \"\$PWD\":/teak -w /teak debian:12"
    [ "$(dpkg --print-architecture)" = amd64 ] ||
        warn "only amd64 is tested; this machine is $(dpkg --print-architecture)"
}

# missing_of PACKAGE...: those that are not installed.
missing_of() {
    local package
    for package in "$@"; do
        [ -n "$(installed_version "$package")" ] || printf '%s\n' "$package"
    done
}

rust_is_new_enough() {
    local version
    have cargo && version=$(rustc --version 2>/dev/null | awk '{ print $2 }') || return 1
    [ "$(printf '%s\n%s\n' "$RUST_MINIMUM" "$version" | sort -V | head -n 1)" = "$RUST_MINIMUM" ]
}

# refuse_foreign_server: mariadb-test pulls in the package mariadb-server, whose set-up would take over what lies there.
refuse_foreign_server() {
    local running
    [ -z "$(installed_version mariadb-server)" ] || return 0
    if [ -d /var/lib/mysql ] && [ -n "$(as_root ls -A /var/lib/mysql)" ]; then
        die "/var/lib/mysql is not empty although mariadb-server is not installed." \
            "The package mariadb-test needs mariadb-server, whose installation would touch that data." \
            "Move it away first, or run the tests on another machine. 'make up' is not concerned."
    fi
    # By /proc: a minimal Debian has no pgrep.
    running=$(grep -lxE 'mariadbd|mysqld' /proc/[0-9]*/comm 2>/dev/null | head -n 1 || true)
    if [ -n "$running" ]; then
        die "a MariaDB server is running, and the package mariadb-server refuses to be installed meanwhile." \
            "Stop it first (Teak's own: make down). Running: $(tr '\0' ' ' <"${running%/comm}/cmdline")"
    fi
}

main() {
    local for_tests=no version packages=() name
    case ${1-} in
        '') ;;
        --test) for_tests=yes ;;
        *) die "unknown argument '$1'" "usage: scripts/setup.sh [--test]" ;;
    esac
    check_distribution
    mkdir -p "$CACHE" || die "cannot create $CACHE." "Set TEAK_CACHE to a directory that $(id -un) can write."
    # Two clones that are set up at once would install and fetch the same things.
    exec 9>"$CACHE/lock"
    flock 9

    mapfile -t packages < <(missing_of "${build_packages[@]}")
    rust_is_new_enough || packages+=(rustc-web cargo-web)
    if [ "$for_tests" = yes ]; then
        mapfile -t -O "${#packages[@]}" packages < <(missing_of "${test_packages[@]}")
        have rustfmt || packages+=(rustfmt-web)
    fi

    version=$(mariadb_installed)
    if [ -z "$version" ] || { [ ! -e "$(headers_dir "$version")/complete" ] && ! headers_cached "$version"; }; then
        apt_refresh
        version=$(mariadb_choose)
    fi
    if [ "$(mariadb_installed)" != "$version" ]; then
        for name in "${mariadb_packages[@]}" mariadb-backup; do packages+=("$name=$version"); done
    elif [ "$for_tests" = yes ] && [ "$(installed_version mariadb-backup)" != "$version" ]; then
        packages+=("mariadb-backup=$version")
    fi
    if [ "$for_tests" = yes ] && [ "$(installed_version mariadb-test)" != "$version" ]; then
        refuse_foreign_server
        for name in mariadb-server mariadb-test mariadb-test-data; do packages+=("$name=$version"); done
    fi
    if [ "${#packages[@]}" -gt 0 ]; then
        apt_refresh
        apt_install "${packages[@]}"
    fi
    [ -e "$(headers_dir "$version")/complete" ] || fetch_headers "$version"
    mkdir -p "$BUILD"
    printf '%s\n' "$(mariadb_upstream "$version")" >"$BUILD/mariadb-version"
    say "MariaDB $(mariadb_upstream "$version"), headers in build/headers/$(mariadb_upstream "$version")"
}

main "$@"
