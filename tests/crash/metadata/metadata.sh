#!/usr/bin/env bash
# What the plugin keeps with a table, and rows of older layouts, read from bytes that may be anything: decoder.h says
# what is decoded, attack.cc how. The sources are the plugin's, built with sanitizers; no server is started.
#
# usage: tests/run metadata           TEAK_MUTATIONS (20000) of each file in corpus/, from TEAK_SEED (1) on
#        tests/run metadata --write   writes what the plugin encodes today into corpus/
#        tests/run metadata --fuzz    libFuzzer goes on from corpus/ until it is stopped; needs clang++
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"
cd "$ROOT"

HERE=tests/crash/metadata
OUT=$BUILD/metadata
headers=build/headers/$(cat "$BUILD/mariadb-version")
need_built "$BUILD/shim/teak_ffi.h" "$headers/complete"
mkdir -p "$OUT"

# As scripts/shim.mk has them. What of the sources needs a server is left out when it is linked, as nothing calls it.
includes=(-I crates/plugin/shim -I "$BUILD/shim" -isystem "$headers/generated" -isystem /usr/include/mariadb/server
    -isystem "$headers/sql" -isystem "$headers/include" -isystem "$headers/wsrep-lib/include"
    -isystem "$headers/wsrep-lib/wsrep-API/v26")
# shellcheck disable=SC2054
flags=(-std=gnu++17 -g1 -O1 -Wall -Wextra -Wno-unused-parameter -ffunction-sections -fdata-sections
    -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined
    -DMYSQL_DYNAMIC_PLUGIN -DHAVE_CONFIG_H -DDBUG_OFF -D_GNU_SOURCE -DMYSQL_SERVER=1)
sources=("$HERE/decoder.cc" crates/plugin/shim/{row_layout,row_translation,row_codec,statistics_digest,table_meta}.cc)
# shellcheck disable=SC2054
libraries=(-Wl,--gc-sections -Wl,--unresolved-symbols=ignore-all)

if [ "${1-}" = --fuzz ]; then
    have clang++ || die "there is no clang++, which libFuzzer comes with."
    clang++ "${flags[@]}" -fsanitize=fuzzer "${includes[@]}" "${sources[@]}" "${libraries[@]}" -o "$OUT/fuzz"
    exec "$OUT/fuzz" "$OUT/found" "$HERE/corpus"
fi

objects=()
for source in "$HERE/attack.cc" "${sources[@]}"; do
    objects+=("$OUT/$(basename "$source" .cc).o")
    g++ "${flags[@]}" "${includes[@]}" -c "$source" -o "${objects[-1]}"
done
g++ "${flags[@]}" "${objects[@]}" "${libraries[@]}" -o "$OUT/attack"
# An address that nothing was given to is a decoder's fault; a size that nobody has memory for is no reason to end.
export ASAN_OPTIONS=abort_on_error=1:detect_leaks=0 UBSAN_OPTIONS=abort_on_error=1:print_stacktrace=1
if [ "${1-}" = --write ]; then exec "$OUT/attack" "$HERE/corpus" --write; fi
exec "$OUT/attack" "$HERE/corpus" "${TEAK_MUTATIONS:-20000}" "${TEAK_SEED:-1}"
