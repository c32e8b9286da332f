#!/usr/bin/env bash
# MariaDB's own suite atomic: DDL killed at named points of the server, on its debug server (scripts/debug-server.sh).
# Each test is recorded with InnoDB and with Teak in the place of the engines that it names, and the two outputs are
# compared (tests/answers/mtr/compare.py). More than the originals, the tests check each table that they show, and list
# at the end which tables the engine itself still has; extra/ has some of our own. It takes 20 minutes, and the first
# time as long again for the server.
#
# usage: tests/run atomic [--accept] [TEST...]   such as tests/run atomic create_table rename_table
#
# --accept records the differences of the tests listed in expected-differences.txt as the expected ones. InnoDB's
# outputs are kept in build/atomic/InnoDB-<version>. left-out.txt has the tests that are not run, with the reason.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"
# shellcheck source=scripts/lib/mtr.sh
. "$ROOT/scripts/lib/mtr.sh"

HERE=$ROOT/tests/crash/atomic
REFERENCE=InnoDB
TESTED=Teak

server_options() {
    echo --innodb --innodb-sys-tables --innodb-snapshot-isolation=ON --default-storage-engine="$1"
    [ "$1" != Teak ] || echo "--plugin-dir=$PLUGIN_DIR" --plugin-load-add=ha_teak
}

# engine_tables ENGINE: a query for the tables of the tests' databases that the engine has.
engine_tables() {
    local names
    case $1 in
        InnoDB) names='name from information_schema.innodb_sys_tables' ;;
        Teak) names="concat(table_schema, '/', table_name) as name from information_schema.teak_tables" ;;
    esac
    echo "select $names having name rlike '^test2?/' order by 1"
}

# in_place_of_others DIRECTORY ENGINE: the engine in the place of all that the tests run with. Most go over a list of
# engines: of five one is left; of two there is the same twice (create_table: with the other format of the binary log).
in_place_of_others() {
    local files format name binlog
    mapfile -t files < <(find "$1" -name '*.test' -o -name '*.inc')
    # These dollars are of mysqltest, not of the shell.
    # shellcheck disable=SC2016
    sed -i -E -e 's/^(let \$engine_count=)5;/\11;/' -e "s/^(let \\\$default_engine=)InnoDB;/\\1$2;/" \
        -e '/call mtr.add_suppression/d' \
        -e 's/^( *)show create table ([a-z0-9.]+);/&\n\1check table \2 extended;/' "${files[@]}"
    # So that extra/ can have other statements.
    # shellcheck disable=SC2016
    sed -i -e 's/^let $statement_count=16;/if ($statement_count == "")\n{\n&/' \
        -e "s/ALTER TABLE t1 DROP INDEX a';/&\n}/" "$1/alter_table.inc"
    # From another engine to this one: the suite has only the other direction.
    sed -i -E "s/^(let \\\$extra_engine=)myisam;/\\1$2;/" "$1/alter_table_aria.test"
    for name in "${files[@]}"; do
        [ "${name##*/}" = alter_table_aria.test ] ||
            sed -i -E "/^ *let \\\$engines=/s/'[a-z_]+'/'$2'/g" "$name"
    done
    # Combinations would all record into one file.
    rm "$1/alter_partition.combinations"
    for format in row stmt; do
        binlog="--source include/have_log_bin.inc\\nlet \$MTR_COMBINATION_${format^^}=1;"
        sed "s|^--source include/binlog_combinations.inc|$binlog|" "$1/alter_partition.test" \
            >"$1/alter_partition_$format.test"
        echo "--binlog-format=${format/stmt/statement}" >"$1/alter_partition_$format.opt"
    done
    rm "$1/alter_partition.test"
    for name in "$1"/*.test; do
        printf -- '--echo # Tables that the engine still has\n--disable_query_log\n%s;\n--enable_query_log\n' \
            "$(engine_tables "$2")" >>"$name"
    done
}

left_out() { sed -nE 's/^([a-z_0-9]+):.*/\1/p' "$HERE/left-out.txt"; }

make_tree() {
    local suite=$1/$MTR_TESTS/suite/atomic name
    make_mtr_tree "$1"
    cp -r "$MTR_STOCK/suite/atomic" "$suite"
    find "$suite" \( -name '*.result' -o -name '*.rdiff' -o -name disabled.def \) -delete
    for name in $(left_out); do rm "$suite/$name.test"; done
    cp "$HERE"/extra/*.test "$suite/"
    in_place_of_others "$suite" "$2"
    server_options "$2" >"$suite/suite.opt"
}

# run_engine ENGINE TREE [TEST...]: leaves recorded outputs in the tree.
run_engine() {
    local engine=$1 tree=$2 tests
    shift 2
    make_tree "$tree" "$engine"
    # To record, mysql-test-run.pl wants the tests' names.
    [ "$#" -gt 0 ] || mapfile -t tests < <(find "$tree/$MTR_TESTS/suite/atomic" -name '*.test' -printf '%f\n' | sort)
    [ "$#" -eq 0 ] || tests=("$@")
    say "${#tests[@]} tests with $engine"
    record_tests "$tree" --testcase-timeout=60 --suite-timeout=180 --suite=atomic "${tests[@]%.test}"
    rm -rf "${tree:?}/var"
}

[ "${TEAK_PLUGIN_DIR-}" = "$BUILD/debug-server/plugin" ] || exec "$ROOT/scripts/debug-server.sh" "$0" "$@"
need_space "$BUILD" 2000 "the suite's data"

accept=()
if [ "${1-}" = --accept ]; then
    accept=(--accept)
    shift
fi
reference=$BUILD/atomic/$REFERENCE-$(cat "$BUILD/mariadb-version")
tested=$BUILD/atomic/$TESTED
if [ "$#" -gt 0 ]; then
    reference=$BUILD/atomic/$REFERENCE-some
    tested=$tested-some
    run_engine "$REFERENCE" "$reference" "$@"
elif [ ! -e "$reference/complete" ]; then
    run_engine "$REFERENCE" "$reference"
    touch "$reference/complete"
fi
run_engine "$TESTED" "$tested" "$@"
# InnoDB has a file for each table, Teak has its own in teak_data_home_dir.
/usr/bin/python3 "$ROOT/tests/answers/mtr/compare.py" --suite atomic --reference "$REFERENCE" --tested "$TESTED" \
    --without '.*\.ibd' "${accept[@]}" "$reference" "$tested"
