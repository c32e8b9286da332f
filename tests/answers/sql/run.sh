#!/usr/bin/env bash
# Differential SQL tests: each tests/answers/sql/*.sql runs once with Teak and once with InnoDB as the default engine,
# on a private server with its own data directory; the outputs (rows, errors, warnings) must be the same.
#
# Those in tests/answers/sql/own/ are about what only Teak has; their outputs must be the .result files beside them.
#
# Each runs with Teak's tables in memory as well, but for those in not_in_memory below.
#
# With TEAK_SQL_PLANS=yes those named (default: many_plans below) run once for each of the settings that make the server
# read in another way (plans below), the lines of both outputs sorted: what comes first may be another row then.
# A run of all tests does that with few_plans.
#
# usage: tests/answers/sql/run.sh [NAME...]       names without .sql; default: all, those in own/,
# tests/answers/sql/sessions.py, tests/answers/sql/handler_statements.py (TEAK_SEED to repeat its choices), and
# tests/answers/sql/all_collations.py for one character set a language; collations_all: for all Then some of the tests
# run again with warm handlers (tests/answers/sql/warm.py); warm: these alone, warm_all: all tests, TEAK_WARM_ROUNDS (3)
# times from TEAK_SEED on. Leaves the outputs in build/sql/<name>.{teak,memory,innodb,diff} and the server's log in
# build/sql/error.log.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"
cd "$ROOT"

work=$BUILD/sql
need_built "$PLUGIN_DIR/ha_teak.so"
# Unix socket paths have a length limit that a deep checkout would pass.
socket=$(mktemp -u /tmp/teak-sql.XXXXXX.sock)
mkdir -p "$work"
rm -rf "$work/data" "$work"/*.teak "$work"/*.memory "$work"/*.innodb "$work"/*.diff "$work/error.log"

common=(--no-defaults --user="$(id -un)" --datadir="$work/data" --lc-messages-dir=/usr/share/mysql)
mariadb-install-db "${common[@]}" --auth-root-authentication-method=normal --skip-test-db >"$work/install.log" 2>&1 ||
    { tail -n 20 "$work/install.log" >&2; exit 1; }

read -r -a more <<<"${TEAK_SERVER_OPTIONS:-}"
mariadbd "${common[@]}" --socket="$socket" --skip-networking --pid-file="$work/pid" --log-error="$work/error.log" \
    --plugin-dir="$PLUGIN_DIR" --plugin-load-add=ha_teak --innodb-buffer-pool-size=64M --innodb-log-file-size=16M \
    --innodb-snapshot-isolation=ON --innodb-flush-log-at-trx-commit=2 --teak-flush-log-at-trx-commit=2 \
    --teak-memory-max-size=512M \
    --lock-wait-timeout=20 --innodb-lock-wait-timeout=5 \
    "${more[@]}" &
server=$!
stop() {
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    rm -f "$socket"
}
trap stop EXIT

client=(mariadb --no-defaults --socket="$socket" --user=root)
for _ in $(seq 300); do
    "${client[@]}" -e 'select 1' >/dev/null 2>&1 && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
done
"${client[@]}" -e 'select 1' >/dev/null 2>&1 || { tail -n 30 "$work/error.log" >&2; exit 1; }

# Foreign keys, sequences and exports want a file.
not_in_memory=(autoinc exports foreign_keys foreign_keys_alter foreign_keys_cascade foreign_keys_ddl foreign_keys_definitions
    foreign_keys_null foreign_keys_rebuilds foreign_keys_versioned instant_columns own_changes rebuilds
    rows_later_foreign unique_later_foreign)

# Seconds for a file, and half of them for a statement; whoever runs them on the debug server allows more.
limit=${TEAK_SQL_TIMEOUT:-60}

# run_one FILE ENGINE OUTPUT [VARIABLES]
run_one() {
    local database
    database=t_$(basename "$1" .sql)
    "${client[@]}" -e "drop database if exists $database; create database $database"
    timeout "$limit" "${client[@]}" --force --unbuffered --batch --show-warnings --default-character-set=utf8mb4 \
        --init-command="set default_storage_engine=$2, max_statement_time=$((limit / 2))${4:+, $4}" "$database" <"$1" 2>&1 |
        sed -E "s/\b(Teak|InnoDB)\b/ENGINE/gI; s/#sql-alter-[0-9a-f]+-[0-9a-f]+/#sql-alter/g; s/ \`?IN_MEMORY\`?='?ON'?//g" >"$3" || true
    if [ "$2" = Teak ]; then unsound "$database" >>"$3"; fi
    "${client[@]}" -e "drop database $database" || echo "the server is gone" >>"$3"
}

# What CHECK TABLE finds in the tables that a test has left, but rows without a parent: tests leave them on purpose.
unsound() {
    local tables
    tables=$("${client[@]}" -N -e "select concat('\`', replace(table_name, '\`', '\`\`'), '\`') from information_schema.tables
        where table_schema = '$1' and engine = 'Teak' and table_type = 'BASE TABLE'" | paste -sd,)
    [ -n "$tables" ] || return 0
    "${client[@]}" -N "$1" -e "check table $tables extended" 2>&1 | awk -F'\t' '$3 != "note" && $4 != "OK" && $4 !~ /constraint .* (is not met|cannot be checked)/'
}

# What makes the server use an engine in other ways: each strategy of semi-joins alone, sorted reads of many ranges, row
# ids as filters and in merges of indexes, and as little memory as it will do with.
plans=(
    "optimizer_switch='materialization=off,firstmatch=off,loosescan=off'"
    "optimizer_switch='materialization=off,loosescan=off,firstmatch=on'"
    "optimizer_switch='materialization=off,firstmatch=off,loosescan=on'"
    "optimizer_switch='firstmatch=off,loosescan=off,materialization=on'"
    "optimizer_switch='semijoin=off,in_to_exists=on,materialization=off'"
    "optimizer_switch='mrr=on,mrr_cost_based=off,mrr_sort_keys=on,join_cache_bka=on', join_cache_level=8"
    "optimizer_switch='rowid_filter=on,index_condition_pushdown=off', join_cache_level=0"
    "optimizer_switch='index_merge_sort_intersection=on,rowid_filter=off,extended_keys=off'"
    "sort_buffer_size=1024, join_buffer_size=128, tmp_memory_table_size=0, max_length_for_sort_data=4"
)
few_plans=(row_ids index_only_rows)
many_plans=(queries more_reads row_ids index_only_rows own_changes dml partitions prefix_keys)

passed=0 failed=0
if [ $# -gt 0 ]; then names=("$@"); else names=(); for f in tests/answers/sql/*.sql; do names+=("$(basename "$f" .sql)"); done; fi
# compare NAME SUFFIX: what Teak gave in the run of this suffix is what InnoDB did.
compare() {
    if diff -u "$work/$1.innodb" "$work/$1.$2" >"$work/$1.$2.diff"; then
        passed=$((passed + 1))
        rm -f "$work/$1.$2.diff"
    else
        failed=$((failed + 1))
        echo "FAILED $1, $2 (InnoDB -, Teak +):"
        head -n "${TEAK_DIFF_LINES:-25}" "$work/$1.$2.diff" | sed 's/^/    /'
    fi
}
# in_all_plans NAME
in_all_plans() {
    local plan engine number=0
    for plan in "${plans[@]}"; do
        number=$((number + 1))
        # A join of this kind whose inner side is partitioned ends the server, with every engine.
        if [[ $plan == *join_cache_level=8* ]] && grep -q 'partition by' "tests/answers/sql/$1.sql"; then continue; fi
        "${client[@]}" -e "set global ${plan//, /, global }"
        for engine in InnoDB Teak; do
            run_one "tests/answers/sql/$1.sql" "$engine" "$work/$1.$engine-$number"
            LC_ALL=C sort "$work/$1.$engine-$number" >"$work/$1.${engine,,}"
        done
        "${client[@]}" -e "set global optimizer_switch=default, global join_cache_level=default,
            global sort_buffer_size=default, global join_buffer_size=default, global tmp_memory_table_size=default,
            global max_length_for_sort_data=default"
        echo "$1 with $plan" >&2
        compare "$1" teak
    done
}
if [ -n "${TEAK_SQL_PLANS:-}" ]; then
    if [ $# -eq 0 ]; then set -- "${many_plans[@]}"; fi
    for name in "$@"; do in_all_plans "$name"; done
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
fi
for name in "${names[@]}"; do
    case $name in sessions | own | handler_statements | collations_all | warm | warm_all) continue ;; esac
    [ -f "tests/answers/sql/$name.sql" ] || die "there is no test tests/answers/sql/$name.sql"
    run_one "tests/answers/sql/$name.sql" InnoDB "$work/$name.innodb"
    run_one "tests/answers/sql/$name.sql" Teak "$work/$name.teak"
    compare "$name" teak
    [[ " ${not_in_memory[*]} " != *" $name "* ]] || continue
    run_one "tests/answers/sql/$name.sql" Teak "$work/$name.memory" "teak_default_in_memory=on"
    compare "$name" memory
done
own() {
    local file name
    for file in tests/answers/sql/own/*.sql; do
        name=$(basename "$file" .sql)
        run_one "$file" Teak "$work/$name.teak"
        if diff -u "${file%.sql}.result" "$work/$name.teak"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED own/$name (expected -, found +), see above"
        fi
    done
}

handlers() { /usr/bin/python3 tests/answers/sql/handler_statements.py "$socket" --seed "${TEAK_SEED:-$RANDOM}"; }

warm() { /usr/bin/python3 tests/answers/sql/warm.py "$socket" "$work" --seed "${TEAK_SEED:-1}" "$@"; }
# Those in which tables know each other, or are changed and written in turn.
warm_some=(foreign_keys_cascade foreign_keys foreign_keys_rebuilds alter generated partitions)

if [ $# -eq 0 ] || [ "$*" = own ]; then own; fi
if [ $# -eq 0 ]; then for name in "${few_plans[@]}"; do in_all_plans "$name"; done; fi
if [ $# -eq 0 ]; then
    python3 tests/answers/sql/sessions.py "$socket" "$work" || failed=$((failed + 1))
    handlers || failed=$((failed + 1))
    /usr/bin/python3 tests/answers/sql/all_collations.py "$socket" || failed=$((failed + 1))
    warm "${warm_some[@]}" || failed=$((failed + 1))
elif [ "$*" = warm ]; then
    warm --rounds 3 "${warm_some[@]}" || failed=1
elif [ "$*" = warm_all ]; then
    warm --rounds "${TEAK_WARM_ROUNDS:-3}" || failed=1
elif [ "$*" = collations_all ]; then
    /usr/bin/python3 tests/answers/sql/all_collations.py "$socket" --all || failed=1
elif [ "$*" = handler_statements ]; then
    handlers || failed=1
elif [ "$*" = sessions ]; then
    python3 tests/answers/sql/sessions.py "$socket" "$work" || failed=1
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
