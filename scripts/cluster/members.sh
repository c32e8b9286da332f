# shellcheck shell=bash
# The servers of a private cluster under var/cluster: a head with Spider, and shards 1, 2, 3, ... Sourced after apt.sh,
# mariadb.sh and members.sh.
#
# A shard has an address of its own: the head notes who takes part in a transaction by the address alone, so two shards
# of one address would be one.

CLUSTER=${TEAK_CLUSTER:-$ROOT/var/cluster}
# shellcheck disable=SC2034 # of members.sh
MEMBERS=$CLUSTER BASE_PORT=${TEAK_CLUSTER_PORT:-3320}
DATABASE=catalogue

shards() { member_numbers; }

# The plugins of the head: ours, and Spider as the distribution has it, taken out of its package, which would install
# the distribution's own server.
prepare_spider() {
    local version file work
    version=$(mariadb_installed)
    file=$CACHE/spider/$version/ha_spider.so
    if [ ! -s "$file" ]; then
        apt_refresh
        work=$(mktemp -d "$CACHE/spider.XXXXXX")
        (cd "$work" && private_apt_get -q download "mariadb-plugin-spider=$version" >/dev/null 2>&1) ||
            unavailable "cannot fetch mariadb-plugin-spider $version." "Is there a network? Does Debian still serve it?"
        dpkg-deb -x "$work"/mariadb-plugin-spider_*.deb "$work/files"
        mkdir -p "$CACHE/spider/$version"
        mv "$work"/files/usr/lib/mysql/plugin/ha_spider.so "$file"
        rm -rf "$work"
    fi
    mkdir -p "$CLUSTER/plugins"
    ln -sf "$BUILD/plugin/ha_teak.so" "$file" "$CLUSTER/plugins/"
}

# Settings of its own for each, until somebody changes them.
write_member_options() {
    local name=$1 directory
    directory=$(directory_of "$name")
    mkdir -p "$directory"
    [ ! -e "$directory/local.cnf" ] || return 0
    {
        printf '# Written by scripts/cluster.sh once: yours to change.\n[mariadbd]\n'
        printf 'innodb-buffer-pool-size = 16M\ninnodb-log-file-size = 16M\nloose-performance-schema = OFF\n'
        if [ "$name" = head ]; then
            printf 'server-id = 1\nplugin-dir = %s/plugins\nplugin-load-add = ha_spider\n' "$CLUSTER"
            # Transactions over shards are prepared everywhere before they are committed anywhere, and named by the
            # statement, too; LOCK TABLES is the head's.
            printf 'loose-spider-internal-xa = 1\nloose-spider-internal-xa-id-type = 1\nloose-spider-local-lock-table = 1\n'
        else
            printf 'server-id = %s\nlog-bin = binlog\nbinlog-format = ROW\nexpire-logs-days = 1\n' "$((name + 1))"
            printf 'gtid-domain-id = %s\nlocal-infile = ON\n' "$name"
        fi
    } >"$directory/local.cnf"
}

# start_member NAME: installs it if it is not there.
start_member() {
    write_member_options "$1"
    run_member "$1"
    [ "$1" != head ] || return 0
    member_sql "$1" <<END
CREATE DATABASE IF NOT EXISTS $DATABASE;
SET sql_log_bin = 0;
CREATE USER IF NOT EXISTS spider@127.0.0.1 IDENTIFIED BY '$(password)';
GRANT ALL ON $DATABASE.* TO spider@127.0.0.1;
CREATE USER IF NOT EXISTS mover@127.0.0.1 IDENTIFIED BY '$(password)';
GRANT ALL ON *.* TO mover@127.0.0.1;
END
}
