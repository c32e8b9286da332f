#!/usr/bin/env bash
# MariaDB's own tests of its suites main, innodb, gcol, vcol, versioning, period, parts, binlog, rpl, sql_sequence and
# others that are about behaviour: those in the lists of suites/, each recorded with InnoDB as the default engine and in
# all places where a test names it, then with Teak in its place; the outputs are compared (compare.py). The hour that it
# takes is too long for CI.
#
# usage: tests/run mtr suites [--accept] [SUITE... | TEST...]   such as tests/run mtr suites gcol main.xa
#
# A list has a test that prints the same by its name, and one that differs with the reasons (lists.py); the exact
# difference stands in suites/rdiff, and --accept writes those of the tests that have reasons. InnoDB's outputs of a
# whole run are kept in build/mtr/suites-InnoDB-<version>.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"
# shellcheck source=scripts/lib/mtr.sh
. "$ROOT/scripts/lib/mtr.sh"

HERE=$ROOT/tests/answers/mtr
LISTS=$HERE/suites
REFERENCE=InnoDB
TESTED=Teak
PARALLEL=${TEAK_MTR_PARALLEL:-2}
COPIED='innodb gcol vcol versioning period parts binlog rpl sql_sequence handler json multi_source'

# Variables that both engines have, by the same names behind their own.
VARIABLES='lock[-_]wait[-_]timeout|rollback[-_]on[-_]timeout|snapshot[-_]isolation'

# server_options ENGINE SUITE PLUGINS: the tests of innodb expect its snapshot isolation to be off.
server_options() {
    local isolation=ON
    [ "$2" != innodb ] || isolation=OFF
    echo --innodb "--innodb-snapshot-isolation=$isolation" "--default-storage-engine=$1" "--plugin-dir=$3"
    [ "$1" != Teak ] || echo --plugin-load-add=ha_teak "--teak-snapshot-isolation=$isolation"
}

# only FILE NAME: of the combinations in a file of a tree, this one is run, with InnoDB as it is.
only() { printf '[%s]\ndefault-storage-engine=innodb\n' "$2" >"$1"; }

# make_tree TREE ENGINE: a tree with the suites, whose tests name the engine.
make_tree() {
    local tests=$1/$MTR_TESTS suite
    make_mtr_tree "$1"
    rm "$tests"/{main,include,lib,mysql-test-run.pl}
    cp -r "$MTR_STOCK"/{main,include,lib,mysql-test-run.pl} "$tests/"
    for suite in "$MTR_STOCK"/suite/*; do
        if [[ " $COPIED " = *" ${suite##*/} "* ]]; then cp -r "$suite" "$tests/suite/"; else ln -s "$suite" "$tests/suite/"; fi
    done
    find "$tests"/main "$tests"/suite/ -type f \( -name '*.result' -o -name '*.rdiff' \) -delete
    # It records with one worker only, and in one file for all combinations of a test.
    # shellcheck disable=SC2016
    sed -i 's/^    \$opt_parallel= 1;$//' "$tests/mysql-test-run.pl"
    # shellcheck disable=SC2016
    sed -i 's|"/\$tname\.result"|"/" . join(",", $tname, @{$tinfo->{combinations} \|\| []}) . ".result"|' \
        "$tests/lib/mtr_cases.pm"
    sed -i '/^\[\(64k\|32k\|8k\|4k\)\]/,/^$/d' "$tests"/include/innodb_page_size*.combinations
    only "$tests/suite/versioning/engines.combinations" timestamp
    only "$tests/suite/versioning/innodb.combinations" timestamp
    for suite in period/engines parts/inc/engines parts/t/alter_table; do
        only "$tests/suite/$suite.combinations" innodb
    done
    [ "$2" = InnoDB ] || name_engine "$tests" "$2"
    # Some tests install plugins of the server.
    mkdir "$1/plugins"
    ln -s /usr/lib/mysql/plugin/*.so "$1/plugins/"
    [ "$2" = InnoDB ] || ln -sf "$PLUGIN_DIR"/*.so "$1/plugins/"
    for suite in main $COPIED; do
        [ "$suite" = main ] || suite=suite/$suite
        server_options "$2" "${suite##*/}" "$1/plugins" >>"$tests/$suite/suite.opt"
    done
}

# name_engine TESTS ENGINE: puts an engine's name in the place of InnoDB's, but not in the names of files and options,
# nor in what the server writes to its log.
name_engine() {
    # shellcheck disable=SC2016
    find "$1"/main "$1"/include "$1"/suite/ -type f -regextype posix-extended \
        -regex '.*\.(test|inc|opt|cnf|combinations|pre)' -print0 | xargs -0 grep -liZ innodb |
        ENGINE=$2 NAMES=$VARIABLES xargs -0 perl -pi -e '
            my $options = $ARGV =~ /\.(?:opt|cnf|combinations)$/;
            next if $options && /^\s*innodb\s*$/;
            s{(?<![/\w\-\$\[.])(?<!SHOW ENGINE )InnoDB(?![\w/\-:]|\.\w)}{$ENV{ENGINE}}ig;
            my $name = lc $ENV{ENGINE};
            if ($options) { s{(?:loose[-_])?innodb([-_])($ENV{NAMES})}{loose-$name$1$2}ig }
            else { s{(?<![^@]@)\binnodb([-_])($ENV{NAMES})}{$name$1$2}ig }'
}

# run_engine ENGINE TREE TEST...: leaves recorded outputs in the tree. Forced twice, tests go on after an error that
# they do not expect.
run_engine() {
    local engine=$1 tree=$2 suites
    shift 2
    make_tree "$tree" "$engine"
    suites=$(printf '%s\n' "${@%%.*}" | sort -u | paste -sd,)
    say "$# tests with $engine"
    record_tests "$tree" --force --parallel="$PARALLEL" --testcase-timeout=5 --suite-timeout=300 --suite="$suites" "$@"
    rm -rf "${tree:?}/var"
}

compare() {
    /usr/bin/python3 "$HERE/compare.py" --reference "$REFERENCE" --tested "$TESTED" --lists "$LISTS" "$@"
}

need_built "$PLUGIN_DIR/ha_teak.so"
need_space "$BUILD" 2000 "the suites' data"
accept=()
if [ "${1-}" = --accept ]; then
    accept=(--accept)
    shift
fi
trees=$BUILD/mtr
version=$(cat "$BUILD/mariadb-version")-$(cat "$HERE/suites.sh" "$LISTS"/*.txt | sha256sum | cut -c1-8)
reference=$trees/suites-$REFERENCE-$version
mapfile -t wanted < <(/usr/bin/python3 "$HERE/lists.py" "$LISTS" "$@")
[ "${#wanted[@]}" -gt 0 ] || die "no such tests: $*"
if [ "$#" -gt 0 ]; then
    reference=$trees/suites-$REFERENCE-some
    run_engine "$REFERENCE" "$reference" "${wanted[@]}"
elif [ ! -e "$reference/complete" ]; then
    run_engine "$REFERENCE" "$reference" "${wanted[@]}"
    touch "$reference/complete"
fi
run_engine "$TESTED" "$trees/suites-$TESTED" "${wanted[@]}"

# Some tests wait for a second or two and print something else on a machine that is busy: a second chance for both.
mapfile -t again < <(compare --only-names "$reference" "$trees/suites-$TESTED" | sed 's/,.*//' | sort -u)
retried=()
if [ "${#again[@]}" -gt 0 ] && [ "${#again[@]}" -le 20 ]; then
    say "once more, with both engines: ${again[*]}"
    PARALLEL=1
    run_engine "$REFERENCE" "$trees/suites-$REFERENCE-again" "${again[@]}"
    run_engine "$TESTED" "$trees/suites-$TESTED-again" "${again[@]}"
    retried=(--again "$trees/suites-$REFERENCE-again" "$trees/suites-$TESTED-again")
fi
compare "${accept[@]}" "${retried[@]}" "$reference" "$trees/suites-$TESTED"
