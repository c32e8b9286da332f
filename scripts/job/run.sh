#!/usr/bin/env bash
# The main job on real input: this machine's Debian package catalogue and its time zones, loaded into each engine
# side by side, measured, and checked to be the same. The result stays in var/main-job.txt and is only printed
# again by later runs. Needs the server to run (scripts/server.sh start).
#
# usage: scripts/job/run.sh [--again]
#
# TEAK_ENGINES ("Teak InnoDB") are the engines.
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../lib/base.sh"
# shellcheck source=scripts/lib/apt.sh
. "$ROOT/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/server.sh
. "$ROOT/scripts/lib/server.sh"
# shellcheck source=scripts/job/input.sh
. "$ROOT/scripts/job/input.sh"

read -r -a engines <<<"${TEAK_ENGINES:-Teak InnoDB}"
RESULT=$VAR/main-job.txt
TIME_ZONE_TABLES='time_zone time_zone_name time_zone_transition time_zone_transition_type time_zone_leap_second'

now() { date +%s.%N; }
seconds_since() { awk -v from="$1" -v to="$(now)" 'BEGIN { printf "%.2f", to - from }'; }
lower() { tr '[:upper:]' '[:lower:]' <<<"$1"; }

load_catalogue() {
    sql -e "CREATE DATABASE $2"
    { printf 'SET default_storage_engine = %s;\n' "$1"; cat "$JOB/catalogue.sql"; } | sql "$2"
    sql "$2" -e "LOAD DATA INFILE '$INPUT/packages.tsv' INTO TABLE packages CHARACTER SET utf8mb4
        FIELDS TERMINATED BY '\t' ESCAPED BY '\\\\' LINES TERMINATED BY '\n'
        (package, version, architecture, section, priority, maintainer, installed_size, size, filename, @sha256,
         homepage, depends, description) SET sha256 = UNHEX(@sha256)"
}

# The generated script is run as it is (it fills whatever engine the tables have), but in one transaction: its 7,000
# statements would otherwise measure little but the disk's flushes.
load_time_zones() {
    local table
    sql -e "CREATE DATABASE $2"
    for table in $TIME_ZONE_TABLES; do
        printf 'CREATE TABLE %s LIKE mysql.%s; ALTER TABLE %s ENGINE = %s, TRANSACTIONAL = DEFAULT;\n' \
            "$table" "$table" "$table" "$1"
    done | sql "$2"
    { echo 'SET autocommit = 0;'; cat "$INPUT/time-zones.sql"; } | sql "$2" >/dev/null
}

# What both engines must answer alike: the number of rows, and a checksum over all columns.
catalogue_digest() {
    sql "$1" -e "SELECT COUNT(*), COALESCE(BIT_XOR(CRC32(CONCAT_WS('|', id, package, version, architecture, section,
        priority, maintainer, installed_size, size, filename, HEX(sha256), homepage, depends, description))), 0)
        FROM packages"
}

time_zones_digest() {
    sql "$1" -e "SELECT (SELECT COUNT(*) FROM time_zone) + (SELECT COUNT(*) FROM time_zone_name)
        + (SELECT COUNT(*) FROM time_zone_transition) + (SELECT COUNT(*) FROM time_zone_transition_type),
        (SELECT COALESCE(BIT_XOR(CRC32(CONCAT_WS('|', n.Name, t.Transition_time, y.\`Offset\`, y.Abbreviation))), 0)
         FROM time_zone_name n JOIN time_zone_transition t USING (Time_zone_id)
         JOIN time_zone_transition_type y USING (Time_zone_id, Transition_type_id))"
}

# bytes_on_disk ENGINE DATABASE
bytes_on_disk() {
    if [ "$(lower "$1")" = teak ]; then
        sql -e "SET GLOBAL teak_checkpoint_now = 1" 2>/dev/null || true
        sql -e "SELECT COALESCE(SUM(DATA_LENGTH + INDEX_LENGTH), 0) FROM information_schema.TABLES
            WHERE TABLE_SCHEMA = '$2'"
    else
        find "$VAR/data/$2" -type f ! -name '*.frm' ! -name db.opt -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }'
    fi
}

# query_times DATABASE: the best of five for each query, in milliseconds, one line each.
query_times() {
    local query run
    {
        echo 'ANALYZE TABLE packages; SET profiling_history_size = 100; SET profiling = 1;'
        while read -r query; do
            for run in 1 2 3 4 5; do printf '%s /* run %s */;\n' "$query" "$run"; done
        done < <(sed -n 's/^[^|]*| //p' "$JOB/queries.txt")
        echo "SELECT CONCAT('profile ', QUERY_ID, ' ', SUM(DURATION) * 1000) FROM information_schema.PROFILING
              GROUP BY QUERY_ID ORDER BY QUERY_ID;"
    } | sql "$1" | awk '$1 == "profile" {
            group = int((NR_seen++) / 5)
            if (!(group in best) || $3 < best[group]) best[group] = $3
        } END { for (i = 0; i in best; i++) printf "%.2f\n", best[i] }'
}

row() { printf '%-28s' "$1"; shift; printf '%16s' "$@"; printf '\n'; }

# measure_row LABEL SUFFIX: a row with each engine's value.
measure_row() {
    local label=$1 file=$2 engine values=()
    for engine in "${engines[@]}"; do values+=("$(cat "$INPUT/$(lower "$engine").$file")"); done
    row "$label" "${values[@]}"
}

# load ENGINE: loads both jobs, and notes how long that took.
load() {
    local engine=$1 name started job
    name=$(lower "$engine")
    for job in catalogue time_zones; do
        say "loading $job into $engine"
        sql -e "DROP DATABASE IF EXISTS ${job/time_zones/tz}_$name"
        started=$(now)
        "load_$job" "$engine" "${job/time_zones/tz}_$name"
        seconds_since "$started" >>"$INPUT/$name.$job.times"
        echo >>"$INPUT/$name.$job.times"
    done
}

# Twice, the second time in the other order, so that no engine alone pays for what is cold or for the other's work
# after its load; the better time counts.
load_in_turns() {
    local number
    rm -f "$INPUT"/*.times
    for engine in "${engines[@]}"; do load "$engine"; done
    for ((number = ${#engines[@]} - 1; number >= 0; number--)); do load "${engines[number]}"; done
}

measure() {
    local engine=$1 name job database number
    name=$(lower "$engine")
    for job in catalogue time_zones; do
        database=${job/time_zones/tz}_$name
        sort -n "$INPUT/$name.$job.times" | head -n 1 >"$INPUT/$name.$job.seconds"
        "${job}_digest" "$database" >"$INPUT/$name.$job.digest"
        cut -f 1 "$INPUT/$name.$job.digest" >"$INPUT/$name.$job.rows"
        bytes_on_disk "$engine" "$database" | awk '{ printf "%.1f\n", $1 / 1048576 }' >"$INPUT/$name.$job.bytes"
    done
    number=0
    query_times "catalogue_$name" | while read -r milliseconds; do
        number=$((number + 1))
        printf '%s\n' "$milliseconds" >"$INPUT/$name.query$number"
    done
}

check_agreement() {
    local engine first job
    first=$(lower "${engines[0]}")
    for engine in "${engines[@]:1}"; do
        for job in catalogue time_zones; do
            cmp -s "$INPUT/$first.$job.digest" "$INPUT/$(lower "$engine").$job.digest" ||
                die "${engines[0]} and $engine differ after the same load ($job: rows, checksum):" \
                    "${engines[0]}: $(cat "$INPUT/$first.$job.digest")" \
                    "$engine: $(cat "$INPUT/$(lower "$engine").$job.digest")"
        done
    done
}

report() {
    local label number=0
    row '' "${engines[@]}"
    measure_row 'packages: rows' catalogue.rows
    measure_row '  load, s' catalogue.seconds
    measure_row '  on disk, MiB' catalogue.bytes
    while IFS='|' read -r label _; do
        number=$((number + 1))
        measure_row "  ${label% }, ms" "query$number"
    done <"$JOB/queries.txt"
    measure_row 'time zones: rows' time_zones.rows
    measure_row '  load, s' time_zones.seconds
    measure_row '  on disk, MiB' time_zones.bytes
}

if [ -s "$RESULT" ] && [ "${1-}" != --again ]; then
    cat "$RESULT"
    exit 0
fi
need_space "$VAR" 2000 "the package catalogue in two engines"
prepare_input
load_in_turns
for engine in "${engines[@]}"; do measure "$engine"; done
check_agreement
report >"$RESULT.new"
mv "$RESULT.new" "$RESULT"
cat "$RESULT"
