#!/usr/bin/env bash
# Builds what checks more than the server of the distribution: MariaDB's debug server of the very version in use, from
# its source package, with its assertions and its named points for tests (debug_dbug, DEBUG_SYNC), and the plugin
# against it, with the engine's own assertions. In build/debug-server, kept between runs: bin/mariadbd and
# plugin/ha_teak.so. The first time takes 20 minutes on two cores and 2 GB; everything else that a test needs (clients,
# messages, system tables) is the distribution's.
#
# usage: scripts/debug-server.sh [COMMAND...]     for example: scripts/debug-server.sh tests/run sql
#
# The command runs with that server first in PATH, and with TEAK_PLUGIN_DIR.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"
# shellcheck source=scripts/lib/apt.sh
. "$ROOT/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/mariadb.sh
. "$ROOT/scripts/lib/mariadb.sh"

DEBUG=$BUILD/debug-server
SOURCE=$DEBUG/source
TREE=$DEBUG/tree
packages=(cmake bison libncurses-dev zlib1g-dev libssl-dev libpcre2-dev libfmt-dev libaio-dev)

# What the server is not built with. Their sources are not even unpacked: without them configuring is much faster.
left_out=(storage/{columnstore,connect,mroonga,oqgraph,rocksdb,sphinx,spider} mysql-test/{main,plugin,suite})

unpack_source() {
    local version=$1 upstream work excluded=() path
    upstream=$(mariadb_upstream "$version")
    work=$DEBUG/fetch
    mkdir -p "$work" "$SOURCE.new"
    [ -n "$(source_in "$work")" ] || fetch_source "$version" "$work"
    for path in "${left_out[@]}"; do excluded+=("--exclude=mariadb-$upstream/$path"); done
    tar -xf "$(source_in "$work")" -C "$SOURCE.new" --strip-components=1 "${excluded[@]}" ||
        die "cannot unpack the source of MariaDB $upstream in $DEBUG." "Is the disk full? (df -h $DEBUG)"
    mv -T "$SOURCE.new" "$SOURCE"
    rm -rf "$work"
}

configure() {
    local options=(
        # Assertions and hooks cost enough time; symbols for a debugger would double that of the build.
        -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O1 -g0" "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g0"
        -Dhave_C__ggdb3=OFF -Dhave_CXX__ggdb3=OFF -DMYSQL_MAINTAINER_MODE=OFF
        # Where Debian has them, so that clients, messages and system tables of the packages serve.
        -DINSTALL_LAYOUT=DEB -DCMAKE_INSTALL_PREFIX=/usr
        -DWITH_NONE=ON -DWITH_WSREP=OFF -DWITH_UNIT_TESTS=OFF -DPLUGIN_FEEDBACK=NO
        -DWITH_SYSTEMD=no -DWITH_MARIABACKUP=OFF
        -DWITH_SSL=system -DWITH_ZLIB=system -DWITH_PCRE=system -DWITH_LIBFMT=system
    )
    local plugin
    for plugin in INNOBASE PARTITION SEQUENCE TYPE_INET TYPE_UUID AUTH_SOCKET BLACKHOLE ARCHIVE PERFSCHEMA; do
        options+=("-DPLUGIN_$plugin=STATIC")
    done
    if have ccache; then options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
    cmake -S "$SOURCE" -B "$TREE" "${options[@]}" >"$DEBUG/configure.log" 2>&1 || {
        tail -n 30 "$DEBUG/configure.log" >&2
        die "cmake could not configure MariaDB's debug server." "The whole log is in $DEBUG/configure.log"
    }
}

build_server() {
    local version=$1 missing=() package
    [ "$(cat "$DEBUG/complete" 2>/dev/null)" != "$version" ] || return 0
    need_space "$DEBUG" 4000 "MariaDB's debug server"
    for package in "${packages[@]}"; do
        [ -n "$(installed_version "$package")" ] || missing+=("$package")
    done
    apt_refresh
    [ "${#missing[@]}" -eq 0 ] || apt_install "${missing[@]}"
    if [ "$(cat "$DEBUG/version" 2>/dev/null)" != "$version" ]; then
        rm -rf "$SOURCE" "$SOURCE.new" "$TREE"
        unpack_source "$version"
        printf '%s\n' "$version" >"$DEBUG/version"
    fi
    say "building MariaDB's debug server $version"
    configure
    make -C "$TREE" -j"$(nproc)" mariadbd mysqlservices >"$DEBUG/build.log" 2>&1 || {
        grep -m 10 -E 'error|Error' "$DEBUG/build.log" >&2
        die "building MariaDB's debug server failed." "The whole log is in $DEBUG/build.log"
    }
    mkdir -p "$DEBUG/bin"
    ln -sf "$TREE/sql/mariadbd" "$DEBUG/bin/mariadbd"
    printf '%s\n' "$version" >"$DEBUG/complete"
}

# The plugin has to be of one mind with the server about the layout of its structures: the same -D.
build_plugin() {
    local defines headers plugin name crate target=${CARGO_TARGET_DIR:-$ROOT/target}
    headers=build/headers/$(cat "$BUILD/mariadb-version")
    defines=$(sed -n 's/^CXX_FLAGS = //p' "$TREE/sql/CMakeFiles/sql.dir/flags.make" |
        grep -oE -- '-D[A-Z_a-z0-9=]+' | paste -sd' ')
    [ -n "$defines" ] || die "cannot find the compiler's flags in $TREE/sql/CMakeFiles/sql.dir/flags.make."
    cargo build --profile checked --quiet -p teak-plugin -p teak-heap || die "cargo build failed (see above)."
    for plugin in "ha_teak plugin" "teak_heap heap"; do
        read -r name crate <<<"$plugin"
        make --no-print-directory -s -j2 -f scripts/shim.mk HEADERS="$headers" PUBLIC="$TREE/include" \
            SERVER_DEFINES="$defines" SERVICES="$TREE/libservices/libmysqlservices.a" NAME="$name" CRATE="crates/$crate" \
            RUST_LIB="$target/checked/libteak_$crate.a" OBJ="build/debug-server/$crate" OUT=build/debug-server/plugin ||
            die "building the C++ side of $name.so for the debug server failed (see above)."
    done
}

main() {
    local version
    cd "$ROOT"
    [ -s "$BUILD/mariadb-version" ] || scripts/setup.sh
    version=$(mariadb_installed)
    [ -n "$version" ] || die "MariaDB is not installed." "Run scripts/setup.sh"
    mkdir -p "$DEBUG"
    build_server "$version"
    export PATH="$DEBUG/bin:$PATH" TEAK_PLUGIN_DIR="$DEBUG/plugin"
    build_plugin
    [ "$#" -eq 0 ] || exec "$@"
}

main "$@"
