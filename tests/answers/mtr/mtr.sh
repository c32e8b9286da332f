#!/usr/bin/env bash
# MariaDB's own suites storage_engine, storage_engine/parts and storage_engine/trx: each test is recorded with
# InnoDB and with Teak on the same server version, and the two outputs are compared (compare.py). The results that
# come with the suites have aged with the server, so they judge nobody. Tests of our own are in extra/: plans compares
# the optimizer's plans over tables that are not tiny.
#
# usage: tests/run mtr [--accept] [TEST...]        for example: tests/run mtr trx.insert type_blob
#
# --accept records the differences of the tests listed in expected-differences.txt as the expected ones. InnoDB's
# outputs are kept in build/mtr/InnoDB-<version>. Tests in overlay/disabled.def are not run. TEAK_MTR_AGAINST (Teak) is
# the engine under test.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"
# shellcheck source=scripts/lib/mtr.sh
. "$ROOT/scripts/lib/mtr.sh"

HERE=$ROOT/tests/answers/mtr
REFERENCE=InnoDB
# Servers that one engine's run keeps busy: most tests wait for the disk or for a lock.
PARALLEL=${TEAK_MTR_PARALLEL:-4}
TESTED=${TEAK_MTR_AGAINST:-Teak}

# What an engine needs on mariadbd's command line, per suite (the part after storage_engine, or nothing).
server_options() {
    case $1 in
        InnoDB) echo --innodb --innodb-snapshot-isolation=ON --innodb-log-file-size=200M ;;
        Teak) echo --innodb --innodb-snapshot-isolation=ON "--plugin-dir=$PLUGIN_DIR" --plugin-load-add=ha_teak ;;
    esac
    [ "$2" = /trx ] || return 0
    echo "--loose-${1,,}-lock-wait-timeout=1"
}

# make_tree DIRECTORY ENGINE: a tree with these suites; mysql-test-run.pl records beside the tests.
make_tree() {
    local engine=$2 tests=$1/$MTR_TESTS part suite overlay
    make_mtr_tree "$1"
    suite=$tests/suite/storage_engine
    cp -r "$MTR_STOCK/suite/storage_engine" "$suite"
    # Disabled are the tests whose recorded results are wrong, which does not matter here.
    find "$suite" \( -name '*.result' -o -name disabled.def \) -delete
    cp "$HERE"/extra/*.test "$suite/"
    overlay=$tests/plugin/${engine,,}/storage_engine
    for part in '' /parts /trx; do
        mkdir -p "$overlay$part"
        server_options "$engine" "$part" >"$overlay$part/suite.opt"
    done
    cp "$HERE"/overlay/* "$overlay/"
}

# wanted_tests TREE ENGINE [TEST...]: names as mysql-test-run.pl takes them, one a line.
wanted_tests() {
    local base=$1/$MTR_TESTS/suite overlay=${2,,} file suite test name
    shift 2
    find "$base/storage_engine" -name '*.test' -printf '%P\n' | sort | while read -r file; do
        suite=storage_engine
        [ "$file" = "${file##*/}" ] || suite=storage_engine/${file%/*}
        test=$(basename "$file" .test)
        for name in "${@:-$test}"; do
            case $name in "$test" | "${suite#storage_engine/}.$test") echo "$suite-$overlay.$test" ;; esac
        done
    done
}

# run_engine ENGINE TREE [TEST...]: leaves recorded outputs in the tree, and mysql-test-run's own in mtr.log.
run_engine() {
    local engine=$1 tree=$2 tests
    shift 2
    make_tree "$tree" "$engine"
    mapfile -t tests < <(wanted_tests "$tree" "$engine" "$@")
    [ "${#tests[@]}" -gt 0 ] || die "no such test: $*"
    say "${#tests[@]} tests with $engine"
    TEAK_MTR_ENGINE=$engine record_tests "$tree" --parallel="$PARALLEL" --testcase-timeout=5 --suite-timeout=30 \
        --suite="$(printf "storage_engine%s-${engine,,}," '' /parts /trx)" "${tests[@]}"
}

compare() { /usr/bin/python3 "$HERE/compare.py" --reference "$REFERENCE" --tested "$TESTED" "$@"; }

[ "$TESTED" != Teak ] || need_built "$PLUGIN_DIR/ha_teak.so"
need_space "$BUILD" 1000 "the suites' data"

accept=()
if [ "${1-}" = --accept ]; then
    accept=(--accept)
    shift
fi
version=$(cat "$BUILD/mariadb-version")
trees=$BUILD/mtr
reference=$trees/$REFERENCE-$version
if [ "$#" -gt 0 ]; then
    reference=$trees/$REFERENCE-some
    run_engine "$REFERENCE" "$reference" "$@"
elif [ ! -e "$reference/complete" ]; then
    run_engine "$REFERENCE" "$reference"
    rm -rf "${reference:?}/var"
    touch "$reference/complete"
fi
run_engine "$TESTED" "$trees/$TESTED" "$@"

# Some tests wait for a second or two and print something else on a machine that is busy: a second chance for both.
mapfile -t again < <(compare --only-names "$reference" "$trees/$TESTED")
retried=()
if [ "${#again[@]}" -gt 0 ] && [ "${#again[@]}" -le 12 ]; then
    say "once more, with both engines: ${again[*]}"
    run_engine "$REFERENCE" "$trees/$REFERENCE-again" "${again[@]}"
    run_engine "$TESTED" "$trees/$TESTED-again" "${again[@]}"
    retried=(--again "$trees/$REFERENCE-again" "$trees/$TESTED-again")
fi
compare "${accept[@]}" "${retried[@]}" "$reference" "$trees/$TESTED"
