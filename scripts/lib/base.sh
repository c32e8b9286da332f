# shellcheck shell=bash
# What every script shares: where things are, how to speak, how to become root.
# Sourced, never run. The repository root is found from this file, so that scripts work from any directory.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=$ROOT/build
# What tests load the engine from; scripts/debug-server.sh sets it.
PLUGIN_DIR=${TEAK_PLUGIN_DIR:-$BUILD/plugin}
# Shared between clones of one user, because the private headers cost a 115 MB download.
CACHE=${TEAK_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/teak}
export ROOT BUILD PLUGIN_DIR CACHE
# Benchmarks and tests share tests/kit.
export PYTHONPATH=$ROOT/tests
# A login of a plain user has no sbin in its PATH, and rustup is not always in it.
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin

say() { printf 'teak: %s\n' "$*"; }
warn() { printf 'teak: %s\n' "$*" >&2; }

# As sysexits.h has it: what the network does not offer today, so that nothing can be said of the rest.
UNAVAILABLE=69

# end_with STATUS WHAT [WHAT TO DO...]: each further argument is a line of its own.
end_with() {
    local status=$1 line
    printf 'teak: error: %s\n' "$2" >&2
    shift 2
    for line in "$@"; do printf '             %s\n' "$line" >&2; done
    exit "$status"
}
die() { end_with 1 "$@"; }
unavailable() { end_with "$UNAVAILABLE" "$@"; }

have() { command -v "$1" >/dev/null 2>&1; }

# need_root: dies unless packages can be installed. Before output is sent to a log, where nobody would see why.
need_root() {
    [ "$(id -u)" -eq 0 ] || have sudo || die "installing packages needs root, and there is no sudo for user $(id -un)." \
        "Have an administrator run this as root: cd $ROOT && scripts/setup.sh" "or install sudo, then run this again."
    [ "$(id -u)" -eq 0 ] || sudo -v || die "installing packages needs root, and sudo refuses user $(id -un)." \
        "Have an administrator run this as root: cd $ROOT && scripts/setup.sh"
}

# as_root COMMAND...: directly when we are root, otherwise through sudo.
as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi; }

# need_built FILE...
need_built() {
    local file
    for file in "$@"; do
        [ -e "$file" ] || die "${file#"$ROOT"/} is missing." "Run make build"
    done
}

# need_space DIRECTORY MEBIBYTES PURPOSE
need_space() {
    local free
    mkdir -p "$1" || die "cannot create $1 for $3." "Check that the directory above it is writable by $(id -un)."
    free=$(df -Pm "$1" | awk 'NR == 2 { print $4 }')
    [ "$free" -ge "$2" ] || die "$1 has $free MiB free, but $3 needs about $2 MiB." \
        "Make room there (df -h $1), or move the clone to a larger disk."
}
