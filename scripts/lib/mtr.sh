# shellcheck shell=bash
# MariaDB's own tests: a tree for mysql-test-run.pl, and a run that records what they print. Sourced after base.sh.
#
# The server is the first mariadbd in PATH, which scripts/debug-server.sh sets.

# Debian 13 has all that is the server's under its new name.
MTR_STOCK=/usr/share/mysql/mysql-test
[ ! -d /usr/share/mariadb/mariadb-test ] || MTR_STOCK=/usr/share/mariadb/mariadb-test
MTR_SHARE=${MTR_STOCK%/*}
# Where the tests are in a tree.
MTR_TESTS=${MTR_STOCK#/}

# make_mtr_tree DIRECTORY: the layout of an installed MariaDB, in which all is links; there are no suites of tests in it
# yet. mysql-test-run.pl finds everything relative to where it stands, and records beside the tests.
make_mtr_tree() {
    local usr=$1/usr share=$1$MTR_SHARE tests=$1/$MTR_TESTS entry file
    [ -e "$MTR_STOCK/mysql-test-run.pl" ] ||
        die "the package mariadb-test is not installed." "Run scripts/setup.sh --test"
    rm -rf "$1"
    mkdir -p "$tests/suite" "$tests/plugin" "$usr/sbin"
    ln -s /usr/bin /usr/lib "$usr/"
    ln -s "$(command -v mariadbd)" "$usr/sbin/mariadbd"
    for entry in "$MTR_SHARE"/*; do
        [ "$entry" = "$MTR_STOCK" ] || ln -s "$entry" "$share/"
    done
    # The schema sys is made of views over the performance schema, which the debug server is built without.
    if ! mariadbd --no-defaults --verbose --help 2>/dev/null | grep -q '^performance-schema '; then
        for file in "$share"/*_performance_tables.sql "$share"/*_sys_schema.sql; do
            rm "$file"
            : >"$file"
        done
    fi
    for entry in "$MTR_STOCK"/*; do
        case ${entry##*/} in suite | plugin) ;; *) ln -s "$entry" "$tests/" ;; esac
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
