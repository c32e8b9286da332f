# shellcheck shell=bash
# MariaDB's own tests: a tree for mysql-test-run.pl, and a run that records what they print. Sourced after base.sh.
#
# The server is the first mariadbd in PATH, which scripts/debug-server.sh sets.

MTR_STOCK=/usr/share/mysql/mysql-test
# Where the tests are in a tree.
MTR_TESTS=usr/share/mysql/mysql-test

# make_mtr_tree DIRECTORY: the layout of an installed MariaDB, in which all is links; there are no suites of tests in it
# yet. mysql-test-run.pl finds everything relative to where it stands, and records beside the tests.
make_mtr_tree() {
    local usr=$1/usr entry file
    [ -e "$MTR_STOCK/mysql-test-run.pl" ] ||
        die "the package mariadb-test is not installed." "Run scripts/setup.sh --test"
    rm -rf "$1"
    mkdir -p "$usr/share/mysql/mysql-test/suite" "$usr/share/mysql/mysql-test/plugin" "$usr/sbin"
    ln -s /usr/bin /usr/lib "$usr/"
    ln -s "$(command -v mariadbd)" "$usr/sbin/mariadbd"
    for entry in /usr/share/mysql/*; do
        [ "$entry" = "$MTR_STOCK" ] || ln -s "$entry" "$usr/share/mysql/"
    done
    # The schema sys is made of views over the performance schema, which the debug server is built without.
    if ! mariadbd --no-defaults --verbose --help 2>/dev/null | grep -q '^performance-schema '; then
        for file in mysql_performance_tables.sql mysql_sys_schema.sql; do
            rm "$usr/share/mysql/$file"
            : >"$usr/share/mysql/$file"
        done
    fi
    for entry in "$MTR_STOCK"/*; do
        case ${entry##*/} in suite | plugin) ;; *) ln -s "$entry" "$usr/share/mysql/mysql-test/" ;; esac
    done
}

# record_tests TREE ARGUMENT...: runs tests; what they print replaces their results in the tree, mysql-test-run.pl's own
# words are in mtr.log.
record_tests() {
    local tree=$1
    shift
    # Its exit status says that some test failed; which, and whether that matters, is compare.py's to say.
    (cd "$tree/$MTR_TESTS" && perl mysql-test-run.pl --record --force --max-test-fail=0 --retry=0 --nowarnings \
        --vardir="$tree/var" "$@") >"$tree/mtr.log" 2>&1 </dev/null || true
    grep -qE '\[ (pass|fail|skipped) \]' "$tree/mtr.log" || {
        tail -n 30 "$tree/mtr.log" >&2
        die "mysql-test-run.pl ran no test." "The whole log is in $tree/mtr.log"
    }
}
