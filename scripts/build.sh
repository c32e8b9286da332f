#!/usr/bin/env bash
# Builds build/plugin/ha_teak.so and teak_heap.so, build/bin/teak and teak-bench, in release mode, only what changed.
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

# link_plugin NAME CRATE LIBRARY OBJECTS: its C++ side compiled, and linked with its Rust side.
link_plugin() {
    make --no-print-directory -s -j2 -f scripts/shim.mk HEADERS="$headers" NAME="$1" CRATE="crates/$2" \
        RUST_LIB="$target/release/$3" OBJ="$4" OUT=build/plugin || die "building the C++ side of $1.so failed (see above)."
}
link_plugin ha_teak plugin libteak_plugin.a build/shim
link_plugin teak_heap heap libteak_heap.a build/heap-shim
