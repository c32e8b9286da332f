#!/usr/bin/env bash
# Builds build/plugin/ha_teak.so, build/bin/teak and build/bin/teak-bench, in release mode, only what changed.
#
# usage: scripts/build.sh
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"
cd "$ROOT"

target=${CARGO_TARGET_DIR:-$ROOT/target}

[ -s "$BUILD/mariadb-version" ] || scripts/setup.sh
version=$(cat "$BUILD/mariadb-version")
headers=build/headers/$version
[ -e "$headers/complete" ] || die "the private headers of MariaDB $version are missing in $headers." \
    "Run scripts/setup.sh"
need_space "$BUILD" 1500 "the build"

cargo build --release --quiet --workspace || die "cargo build failed (see above)." \
    "Crates come from crates.io on the first build: is there a network?"

mkdir -p "$BUILD/bin" "$BUILD/plugin"
# By rename: a running program or a server that has the plugin mapped keeps its old file.
for program in teak teak-bench; do
    install -m 755 "$target/release/$program" "$BUILD/bin/$program.new"
    mv -f "$BUILD/bin/$program.new" "$BUILD/bin/$program"
done

if compgen -G 'crates/plugin/shim/*.cc' >/dev/null; then
    make --no-print-directory -s -j2 -f scripts/shim.mk HEADERS="$headers" \
        RUST_LIB="$target/release/libteak_plugin.a" OUT=build/plugin ||
        die "building the plugin's C++ side failed (see above)."
else
    warn "crates/plugin/shim has no C++ files yet: no plugin was linked"
fi
