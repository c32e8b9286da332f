# shellcheck shell=bash
# Which MariaDB: the version, its packages, and its private headers. Sourced after base.sh and apt.sh.
#
# A storage engine fits exactly one server version, and is compiled with headers that only the source package has.
# So the version is the newest of this Debian's series for which there are both the binaries and the headers: a source
# that can be fetched, or what was fetched before.

MARIADB_SERIES=$(mariadb_series "$(debian_release)")
# The server comes from mariadb-server-core: the same mariadbd, but no service, no /var/lib/mysql, no user.
# mariadb-backup, which teak backup runs, is installed with them but not needed here: where it is missing and the
# archive has only a newer one by now, a server that is set up works on without it.
mariadb_packages=(
    mariadb-common mariadb-server-core mariadb-client mariadb-client-core
    libmariadb3 libmariadb-dev libmariadbd-dev
)
# Since Debian 13 the name says that its time_t has 64 bits.
case $MARIADB_SERIES in
    10.11) mariadb_packages+=(libmariadbd19) ;;
    *) mariadb_packages+=(libmariadbd19t64) ;;
esac

# The version (with Debian's epoch and revision) at which all packages are installed, or nothing.
mariadb_installed() {
    local package version first=''
    for package in "${mariadb_packages[@]}"; do
        version=$(installed_version "$package")
        [ -n "$version" ] || return 0
        [ -z "$first" ] || [ "$first" = "$version" ] || return 0
        first=$version
    done
    case $first in *:"$MARIADB_SERIES".*) printf '%s\n' "$first" ;; esac
}

# 1:10.11.18-0+deb12u1 -> 10.11.18; 1:11.8.9+ds-0+deb13u1, a source without what Debian cannot ship -> 11.8.9
mariadb_upstream() {
    local version=${1#*:}
    version=${version%%-*}
    printf '%s\n' "${version%%+*}"
}

headers_dir() { printf '%s/headers/%s\n' "$BUILD" "$(mariadb_upstream "$1")"; }

# headers_cached VERSION: fetched before, by this clone or another one.
headers_cached() { [ -e "$CACHE/headers/$(mariadb_upstream "$1")/complete" ]; }

# mariadb_source_exists VERSION: an index can list a source that no mirror has, so fetch its smallest file.
mariadb_source_exists() {
    local uri file
    read -r uri file _ < <(private_apt_get source --print-uris --only-source "mariadb=$1" 2>/dev/null |
        tr -d "'" | grep '\.dsc ') || return 1
    private_apt_helper download-file "$uri" "$APT_DIR/$file" >/dev/null 2>&1 || return 1
    rm -f "$APT_DIR/$file"
}

mariadb_choose() {
    local version binaries system
    binaries=$(private_apt_cache madison mariadb-server-core | awk -F' *[|] *' '/Packages/ { print $2 }')
    system=$(installed_version mariadb-server)
    if [ -n "$system" ]; then
        if headers_cached "$system" || mariadb_source_exists "$system"; then
            printf '%s\n' "$system"
            return
        fi
        unavailable "this machine has the package mariadb-server $system, for which Debian offers no source to build against." \
            "Teak will not up- or downgrade a server that may be in use. Either remove that package" \
            "(apt-get remove mariadb-server), or wait until its source is published, or use another machine."
    fi
    while read -r version; do
        case $version in *:"$MARIADB_SERIES".*) ;; *) continue ;; esac
        if headers_cached "$version" || mariadb_source_exists "$version"; then
            printf '%s\n' "$version"
            return
        fi
        warn "MariaDB $version has binaries but no source that can be fetched: trying the one before"
    done <<<"$binaries"
    unavailable "found no MariaDB $MARIADB_SERIES with both binaries and source. Binaries offered: ${binaries//$'\n'/, }" \
        "See the mirrors in $APT_DIR/sources.list."
}

# unpack_headers TARBALL TARGET
unpack_headers() {
    mkdir "$2" && tar -xf "$1" -C "$2" --strip-components=1 --no-wildcards-match-slash --wildcards \
        '*/include' '*/wsrep-lib/include' '*/wsrep-lib/wsrep-API/v26' '*/sql/*.h' &&
        mkdir "$2/generated" &&
        cp "$2/include/probes_mysql_nodtrace.h.in" "$2/generated/probes_mysql_nodtrace.h" &&
        touch "$2/complete"
}

# fetch_source VERSION DIRECTORY: the source package's tarball into the directory, which is removed if that fails.
fetch_source() {
    say "fetching MariaDB's source package $1 (up to 115 MB)"
    (cd "$2" && private_apt_get -q source --download-only --tar-only --only-source "mariadb=$1" >fetch.log 2>&1) &&
        return
    tail -n 5 "$2/fetch.log" >&2
    rm -rf "$2"
    unavailable "cannot fetch the source package mariadb $1." "Is there a network, and room in $2?"
}

# source_in DIRECTORY: the tarball that fetch_source has put there, or nothing.
source_in() { find "$1" -maxdepth 1 -name 'mariadb_*.orig.tar.*' ! -name '*.asc' -print -quit; }

# fetch_headers VERSION: into the cache once for a machine, and from there into build/.
fetch_headers() {
    local version=$1 upstream work cached
    upstream=$(mariadb_upstream "$version")
    cached=$CACHE/headers/$upstream
    if ! headers_cached "$version"; then
        need_space "$CACHE/headers" 400 "MariaDB's source package"
        rm -rf "$cached"
        work=$(mktemp -d "$CACHE/headers/fetch.XXXXXX")
        fetch_source "$version" "$work"
        if ! unpack_headers "$(source_in "$work")" "$work/tree"; then
            rm -rf "$work"
            die "cannot unpack the headers of MariaDB $upstream in $CACHE/headers." \
                "Is the disk full? (df -h $CACHE)"
        fi
        mv -T "$work/tree" "$cached"
        rm -rf "$work"
    fi
    mkdir -p "$BUILD/headers"
    rm -rf "$BUILD/headers/$upstream"
    cp -a "$cached" "$BUILD/headers/$upstream"
}
