# shellcheck shell=bash
# What is sharded: the main job's tables, by partitions that have a server each, so that a partition moves when its
# server is told to be somewhere else. Sourced after members.sh.

PARTITIONS=6
# The tables that are partitioned; one that is not is whole on shard 1.
SHARDED=(packages time_zone_transition)

PACKAGES='package VARCHAR(120) CHARACTER SET ascii NOT NULL, version VARCHAR(120) CHARACTER SET ascii NOT NULL,
    architecture VARCHAR(20) CHARACTER SET ascii NOT NULL, section VARCHAR(60), priority VARCHAR(20),
    maintainer VARCHAR(255), installed_size BIGINT UNSIGNED, size BIGINT UNSIGNED NOT NULL, homepage VARCHAR(1000),
    description MEDIUMTEXT, PRIMARY KEY (package, version, architecture), KEY section (section, priority),
    KEY maintainer (maintainer(40))'
TRANSITIONS='Time_zone_id INT UNSIGNED NOT NULL, Transition_time BIGINT NOT NULL,
    Transition_type_id INT UNSIGNED NOT NULL, PRIMARY KEY (Time_zone_id, Transition_time)'
NAMES='Name CHAR(64) NOT NULL PRIMARY KEY, Time_zone_id INT UNSIGNED NOT NULL, KEY (Time_zone_id)'

# definition_of TABLE
definition_of() {
    case $1 in
        packages) printf '%s' "$PACKAGES" ;;
        time_zone_transition) printf '%s' "$TRANSITIONS" ;;
        *) printf '%s' "$NAMES" ;;
    esac
}

# A place is what the head calls a server: one for each partition, and one for tables that have none.
places() { seq -f 'part%.0f' 0 $((PARTITIONS - 1)); echo whole; }

# define_place PLACE SHARD
define_place() {
    member_sql head -e "CREATE SERVER IF NOT EXISTS $1 FOREIGN DATA WRAPPER mysql OPTIONS (HOST '$(address_of "$2")',
        PORT $(port_of "$2"), USER 'spider', PASSWORD '$(password)', DATABASE '$DATABASE')"
}

# shard_of PLACE: where the head says it is.
shard_of() { member_sql head -e "SELECT Port - $BASE_PORT FROM mysql.servers WHERE Server_name = '$1'"; }

# has_data: whether all was loaded.
has_data() { [ -e "$CLUSTER/loaded" ]; }

# The tables, on the shards and at the head.
create_tables() {
    local table number place shard clauses
    local -a all
    mapfile -t all < <(shards)
    number=0
    for place in $(places); do
        define_place "$place" "${all[number++ % ${#all[@]}]}"
    done
    member_sql head -e "DROP DATABASE IF EXISTS $DATABASE; CREATE DATABASE $DATABASE"
    for table in "${SHARDED[@]}"; do
        clauses=''
        for ((number = 0; number < PARTITIONS; number++)); do
            shard=$(shard_of "part$number")
            member_sql "$shard" "$DATABASE" -e "CREATE OR REPLACE TABLE ${table}_$number ($(definition_of "$table"))"
            clauses+="${clauses:+, }PARTITION p$number COMMENT='srv \"part$number\", table \"${table}_$number\"'"
        done
        number=package
        [ "$table" = packages ] || number=Time_zone_id
        member_sql head "$DATABASE" -e "CREATE TABLE $table ($(definition_of "$table"))
            ENGINE=SPIDER COMMENT='wrapper \"mysql\"' PARTITION BY KEY ($number) ($clauses)"
    done
    member_sql "$(shard_of whole)" "$DATABASE" -e "CREATE OR REPLACE TABLE time_zone_name ($NAMES)"
    member_sql head "$DATABASE" -e "CREATE TABLE time_zone_name ($NAMES)
        ENGINE=SPIDER COMMENT='wrapper \"mysql\", srv \"whole\", table \"time_zone_name\"'"
}

# Of a package with the same version in several suites the first line counts.
load_tables() {
    prepare_input
    awk -F '\t' '!seen[$1, $2, $3]++' "$INPUT/packages.tsv" >"$INPUT/distinct.tsv"
    member_sql head "$DATABASE" -e "LOAD DATA LOCAL INFILE '$INPUT/distinct.tsv' INTO TABLE packages
        CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\t' ESCAPED BY '\\\\' LINES TERMINATED BY '\n'
        (package, version, architecture, section, priority, maintainer, installed_size, size, @filename, @sha256,
         homepage, @depends, description)"
    # The head's own named time zones come by the way.
    member_sql head mysql <"$INPUT/time-zones.sql" >/dev/null
    member_sql head "$DATABASE" -e "
        INSERT INTO time_zone_transition SELECT Time_zone_id, Transition_time, Transition_type_id
            FROM mysql.time_zone_transition;
        INSERT INTO time_zone_name SELECT Name, Time_zone_id FROM mysql.time_zone_name"
    touch "$CLUSTER/loaded"
}
