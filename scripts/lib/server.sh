# shellcheck shell=bash
# The private server under ./var: its files, its configuration, its first data directory. Sourced after base.sh.

VAR=${TEAK_VAR:-$ROOT/var}
PORT=${TEAK_PORT:-3310}
ADDRESS=${TEAK_ADDRESS:-127.0.0.1}
CONFIG=$VAR/my.cnf
SOCKET=$VAR/run/teak.sock
ERROR_LOG=$VAR/log/error.log
PID_FILE=$VAR/run/mariadbd.pid
# One size for both engines, so that what `make up` prints is a fair comparison.
CACHE_SIZE=${TEAK_CACHE_SIZE:-512M}

write_config() {
    [ -e "$VAR/local.cnf" ] || printf '# Your own settings go here; they override my.cnf, which is written anew at each start.\n[mariadbd]\n' >"$VAR/local.cnf"
    cat >"$CONFIG" <<END
# Written by scripts/server.sh at each start. Put your own settings into local.cnf beside this file.
[client]
socket = $SOCKET

[mariadbd]
$([ "$(id -u)" -ne 0 ] || echo 'user = root')
datadir = $VAR/data
socket = $SOCKET
pid-file = $PID_FILE
log-error = $ERROR_LOG
tmpdir = $VAR/tmp
port = $PORT
bind-address = $ADDRESS
skip-name-resolve
character-set-server = utf8mb4

plugin-dir = $ROOT/build/plugin
plugin-load-add = ha_teak
default-storage-engine = Teak

loose-teak-cache-size = $CACHE_SIZE
loose-teak-flush-log-at-trx-commit = 1
innodb-buffer-pool-size = $CACHE_SIZE
innodb-log-file-size = 256M
innodb-flush-log-at-trx-commit = 1

!include $VAR/local.cnf
END
}

# install_data: built beside its place and moved there, so that an interrupted run leaves nothing half made.
install_data() {
    local log=$VAR/log/install-db.log user
    user=$(id -un)
    need_space "$VAR" 2000 "the server's data"
    say "creating the data directory $VAR/data"
    rm -rf "$VAR/data.new"
    mkdir -p "$VAR/data.new"
    # --force: a container's host name often cannot be looked up, and a server reached by socket does not need it.
    mariadb-install-db --no-defaults --user="$user" --datadir="$VAR/data.new" --basedir=/usr --skip-test-db --force \
        --auth-root-authentication-method=socket --auth-root-socket-user="$user" >"$log" 2>&1 </dev/null || {
        tail -n 20 "$log" >&2
        die "mariadb-install-db failed." "The whole log is in $log."
    }
    # The main job's result belongs to the data that was there before.
    rm -f "$VAR/main-job.txt"
    mv -T "$VAR/data.new" "$VAR/data"
}

# The server's process id, or nothing; a stale pid file may name somebody else's process.
server_pid() {
    local pid
    pid=$(cat "$PID_FILE" 2>/dev/null) || return 0
    if [ -r "/proc/$pid/cmdline" ] && tr '\0' '\n' <"/proc/$pid/cmdline" | grep -qxF -- "--defaults-file=$CONFIG"; then
        printf '%s\n' "$pid"
    fi
}

server_answers() { mariadb-admin --defaults-file="$CONFIG" --connect-timeout=2 ping >/dev/null 2>&1; }

port_is_taken() { (exec 3<>"/dev/tcp/$ADDRESS/$PORT") 2>/dev/null; }

sql() { mariadb --defaults-file="$CONFIG" --batch --skip-column-names "$@"; }
