#!/usr/bin/env bash
# Builds build/profiled/plugin/ha_teak.so, guided by a profile: a build that counts does the work of
# benches/training.py, and from what it has counted the compilers know what is run often, together, or never. Takes as
# long as three builds. What it gains, and why no profile is kept: docs/design/small-statements.md.
#
# usage: scripts/build-profiled.sh
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"
cd "$ROOT"

PROFILED=$BUILD/profiled
target=${CARGO_TARGET_DIR:-$ROOT/target}

# By rustc's own LLVM: another one's may not read what this has written. rustup and Debian have it in the same place.
profdata=$(rustc --print target-libdir)/../bin/llvm-profdata
[ -x "$profdata" ] || die "there is no llvm-profdata for $(rustc --version)." \
    "Of rustup: rustup component add llvm-tools" "Of Debian's rustc-web: apt-get install rust-web-llvm"
/usr/bin/python3 -c 'import pymysql' 2>/dev/null || die "the training needs pymysql." "apt-get install python3-pymysql"

# The training needs teak-bench, and what the set-up does.
scripts/build.sh
headers=build/headers/$(cat "$BUILD/mariadb-version")
need_space "$BUILD" 3000 "two more builds and the training's data"

# build_plugin STAGE RUST_FLAGS CXX_FLAGS LINK_FLAGS: build/profiled/STAGE/ha_teak.so, all of it compiled with these.
build_plugin() {
    local stage=$1
    say "profiled build: $stage"
    CARGO_TARGET_DIR=$target/profiled-$stage RUSTFLAGS="${RUSTFLAGS-} $2" cargo build --release --quiet -p teak-plugin ||
        die "cargo build failed (see above)."
    make --no-print-directory -s -j2 -f scripts/shim.mk HEADERS="$headers" \
        RUST_LIB="$target/profiled-$stage/release/libteak_plugin.a" OUT="$PROFILED/$stage" OBJ="$PROFILED/$stage/shim" \
        PROFILE="$3" PROFILE_LINK="$4" || die "building the plugin's C++ side failed (see above)."
}

raw=$PROFILED/raw
rm -f "$PROFILED/counting/ha_teak.so"
# The runtime that writes the counts has to be asked for, as g++ and not rustc does the linking.
build_plugin counting "-Cprofile-generate=$raw" "-fprofile-generate -fprofile-update=prefer-atomic" \
    "-fprofile-generate -Wl,-u,__llvm_profile_runtime"

# The programs that cargo ran for the build have counted, too.
rm -rf "$raw"
find "$PROFILED/counting/shim" -name '*.gcda' -delete
say "profiled build: training"
/usr/bin/python3 benches/training.py --plugin-dir "$PROFILED/counting" --teak-bench "$BUILD/bin/teak-bench" \
    --directory "$PROFILED/training" || die "the training failed (see above)."
"$profdata" merge -o "$PROFILED/teak.profdata" "$raw" || die "llvm-profdata cannot read what was counted in $raw."

# What the training left out is compiled as ever, and not for its size.
build_plugin plugin "-Cprofile-use=$PROFILED/teak.profdata" \
    "-fprofile-use=$PROFILED/counting/shim/\$(*F).gcda -fprofile-partial-training -Wno-missing-profile" ""
say "build/profiled/plugin/ha_teak.so is there"
