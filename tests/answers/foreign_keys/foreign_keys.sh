#!/usr/bin/env bash
# MariaDB's own tests of foreign keys, of its suites innodb and main: each is recorded with InnoDB and with Teak in its
# place, and the two outputs are compared (tests/answers/mtr/compare.py). extra/ has some of our own. Two minutes.
#
# usage: tests/run foreign_keys [--accept] [TEST...]   such as tests/run foreign_keys foreign_key
#
# --accept records the differences of the tests listed in expected-differences.txt as the expected ones. InnoDB's
# outputs are kept in build/mtr/foreign-keys-InnoDB-<version>. left-out.txt has the tests that are not run, with the
# reason.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"
# shellcheck source=scripts/lib/mtr.sh
. "$ROOT/scripts/lib/mtr.sh"

HERE=$ROOT/tests/answers/foreign_keys
REFERENCE=InnoDB
TESTED=Teak
# The names of the tests in the suite innodb, and in main.
NAMES='*foreign*.test fk*.test *-fk*.test *_fk*.test'

server_options() {
    echo --innodb --innodb-snapshot-isolation=ON --default-storage-engine="$1" --loose-innodb-sys-foreign \
        --loose-innodb-sys-foreign-cols
    [ "$1" != Teak ] || echo "--plugin-dir=$PLUGIN_DIR" --plugin-load-add=ha_teak
}

left_out() { sed -nE 's/^([a-zA-Z_0-9-]+):.*/\1/p' "$HERE/left-out.txt"; }

# make_tree TREE ENGINE: a tree with one suite, whose tests name the engine.
make_tree() {
    local suite=$1/$MTR_TESTS/suite/foreign_keys name pattern
    make_mtr_tree "$1"
    # Tests include files by the names of the suites that they are from.
    ln -s "$MTR_STOCK/suite/innodb" "$1/$MTR_TESTS/suite/innodb"
    mkdir "$suite"
    ln -s "$MTR_STOCK/suite/innodb/include" "$suite/include"
    # The patterns are to be expanded there.
    for pattern in $NAMES; do
        find "$MTR_STOCK/suite/innodb/t" "$MTR_STOCK/main" -maxdepth 1 -name "$pattern" | while read -r name; do
            # compare.py knows tests by names without dashes.
            cp "$name" "$suite/$(basename "$name" | tr - _)"
        done
    done
    # What a test is called in both suites is that of innodb.
    mv "$suite/foreign_key.test" "$suite/foreign_key_of_main.test"
    cp "$MTR_STOCK/suite/innodb/t/foreign_key.test" "$suite/"
    cp "$HERE"/extra/*.test "$suite/"
    # Two values of a combination are two tests.
    cp "$MTR_STOCK"/suite/innodb/t/alter_sql_mode.inc "$suite/"
    for name in foreign_null foreign_sql_mode; do
        for pattern in COPY INPLACE; do
            sed "s/\$MTR_COMBINATIONS/$pattern/" "$suite/$name.test" >"$suite/${name}_${pattern,,}.test"
        done
        rm "$suite/$name.test"
    done
    # It looks at tables while another connection, without checks, may or may not have changed them.
    sed -i 's/^CHECK TABLE binaries, collections EXTENDED;/--connection con1\n--reap\n--connection default\n&/' \
        "$suite/foreign_key.test"
    for name in $(left_out); do rm "$suite/$name.test"; done
    if [ "$2" = Teak ]; then
        # Not the names of files and variables, which go on with an underscore.
        sed -i -E -e 's/\bInnoDB\b/Teak/Ig' -e 's/INNODB_SYS_(FOREIGN)/TEAK_\1/Ig' "$suite"/*.test
    fi
    server_options "$2" >"$suite/suite.opt"
}

# run_engine ENGINE TREE [TEST...]: leaves recorded outputs in the tree.
run_engine() {
    local engine=$1 tree=$2 tests name
    shift 2
    make_tree "$tree" "$engine"
    tests=()
    for name in "$tree/$MTR_TESTS/suite/foreign_keys"/*.test; do
        name=$(basename "$name" .test)
        [ "$#" -eq 0 ] || [[ " $* " = *" $name "* ]] || continue
        tests+=("foreign_keys.$name")
    done
    [ "${#tests[@]}" -gt 0 ] || die "no such test: $*"
    say "${#tests[@]} tests with $engine"
    # Forced twice, tests go on after an error that they do not expect.
    record_tests "$tree" --force --parallel=2 --testcase-timeout=5 --suite-timeout=30 --suite=foreign_keys "${tests[@]}"
}

compare() {
    /usr/bin/python3 "$ROOT/tests/answers/mtr/compare.py" --reference "$REFERENCE" --tested "$TESTED" --suite foreign_keys \
        --without '.*\b(INNODB_SYS|TEAK)_FOREIGN\b.*' "$@"
}

need_built "$PLUGIN_DIR/ha_teak.so"
need_space "$BUILD" 1000 "the suites' data"
accept=()
if [ "${1-}" = --accept ]; then
    accept=(--accept)
    shift
fi
# Another form of the tests has other outputs.
version=$(cat "$BUILD/mariadb-version")-$(cat "$HERE/foreign_keys.sh" "$HERE"/extra/*.test | sha256sum | cut -c1-8)
# compare.py masks what lies in a directory of this name.
trees=$BUILD/mtr
reference=$trees/foreign-keys-$REFERENCE-$version
if [ "$#" -gt 0 ]; then
    reference=$trees/foreign-keys-$REFERENCE-some
    run_engine "$REFERENCE" "$reference" "$@"
elif [ ! -e "$reference/complete" ]; then
    run_engine "$REFERENCE" "$reference"
    rm -rf "${reference:?}/var"
    touch "$reference/complete"
fi
run_engine "$TESTED" "$trees/foreign-keys-$TESTED" "$@"
compare "${accept[@]}" "$reference" "$trees/foreign-keys-$TESTED"
