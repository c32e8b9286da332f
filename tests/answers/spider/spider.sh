#!/usr/bin/env bash
# MariaDB's own tests of Spider: each is recorded with InnoDB and with Teak as the engine of the shards ("children"
# there), and the two outputs are compared (tests/answers/mtr/compare.py). Half an hour, so not a part of `make test`.
#
# usage: tests/run spider [--accept] [TEST...]   such as tests/run spider bugfix.mdev_29008 basic_sql
#
# --accept records the differences of the tests listed in expected-differences.txt as the expected ones. InnoDB's
# outputs are kept in build/mtr/spider-InnoDB-<version>.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"
# shellcheck source=scripts/lib/mtr.sh
. "$ROOT/scripts/lib/mtr.sh"

REFERENCE=InnoDB
TESTED=Teak

# make_tree TREE ENGINE: a tree with the suite and its parts, whose children have the engine.
make_tree() {
    local tree=$1 engine=$2 suite=$1/$MTR_TESTS/suite/spider
    make_mtr_tree "$tree"
    cp -r "$MTR_STOCK/plugin/spider/spider" "$suite"
    find "$suite" \( -name '*.result' -o -name '*.rdiff' -o -name disabled.def \) -delete
    mkdir "$tree/plugins"
    ln -s /usr/lib/mysql/plugin/*.so "$PLUGIN_DIR"/*.so "$tree/plugins/"
    ln -sf "$SPIDER" "$tree/plugins/"
    # The plugin's package is not installed where the tests look.
    find "$suite" -name suite.pm -exec sed -i '/HA_SPIDER_SO/d' {} +
    # shellcheck disable=SC2038 # names without spaces
    find "$suite" -name '*.cnf' | xargs sed -i -E -e "s|(\.\./)+mysql-test/suite/|$MTR_STOCK/suite/|" \
        -e "s/(ENGINE_TYPE=\s*|ENGINE=ENGINE=|ENGINE=\s*ENGINE=)InnoDB/\1$engine/"
    # shellcheck disable=SC2038
    [ "$engine" = InnoDB ] || find "$suite" -name '*.test' -o -name '*.inc' | xargs sed -i -E "s/(ENGINE ?= ?)InnoDB/\\1$engine/Ig"
    find "$suite" -name suite.opt -delete
    for part in '' /bg /bugfix /feature /regression/e1121 /regression/e112122; do
        [ ! -d "$suite$part" ] || printf '%s\n' --loose-innodb --loose-skip-performance-schema "--plugin-dir=$tree/plugins" \
            --plugin-load-add=ha_teak >"$suite$part/suite.opt"
    done
}

# wanted_tests TREE [TEST...]: names as mysql-test-run.pl takes them.
wanted_tests() {
    local base=$1/$MTR_TESTS/suite/spider file part test name
    shift
    find "$base" -name '*.test' -printf '%P\n' | sort | while read -r file; do
        part=${file%/t/*}
        [ "$part" != "$file" ] || part=''
        test=$(basename "$file" .test)
        for name in "${@:-$test}"; do
            case $name in "$test" | "$part.$test") echo "spider${part:+/$part}.$test" ;; esac
        done
    done
}

# run_engine ENGINE TREE [TEST...]: leaves recorded outputs in the tree.
run_engine() {
    local engine=$1 tree=$2 tests
    shift 2
    make_tree "$tree" "$engine"
    mapfile -t tests < <(wanted_tests "$tree" "$@")
    [ "${#tests[@]}" -gt 0 ] || die "no such test: $*"
    say "${#tests[@]} tests with shards of $engine"
    HA_SPIDER_SO=ha_spider.so record_tests "$tree" --parallel=2 --testcase-timeout=5 --suite-timeout=60 \
        --suite=spider,spider/bg,spider/bugfix,spider/feature,spider/regression/e1121,spider/regression/e112122 \
        "${tests[@]}"
}

TEAK_CLUSTER=$BUILD/mtr/spider-plugin "$ROOT/scripts/cluster.sh" plugin
SPIDER=$(readlink -f "$BUILD/mtr/spider-plugin/plugins/ha_spider.so")
accept=()
if [ "${1-}" = --accept ]; then
    accept=(--accept)
    shift
fi
reference=$BUILD/mtr/spider-$REFERENCE-$(cat "$BUILD/mariadb-version")
if [ "$#" -gt 0 ]; then
    reference=$BUILD/mtr/spider-$REFERENCE-some
    run_engine "$REFERENCE" "$reference" "$@"
elif [ ! -e "$reference/complete" ]; then
    run_engine "$REFERENCE" "$reference"
    rm -rf "${reference:?}/var"
    touch "$reference/complete"
fi
run_engine "$TESTED" "$BUILD/mtr/spider-$TESTED" "$@"
/usr/bin/python3 "$ROOT/tests/answers/mtr/compare.py" --suite spider --reference "$REFERENCE" --tested "$TESTED" \
    "${accept[@]}" "$reference" "$BUILD/mtr/spider-$TESTED"
