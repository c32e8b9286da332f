# shellcheck shell=bash
# Several private servers below one directory, each as scripts/server.sh has it, with an address of its own, as it has
# on machines of its own. Each is called by a number, from 1 on, or `head`. Sourced after base.sh and server.sh; who
# sources it says where they are (MEMBERS), and the port before their first one's (BASE_PORT).

address_of() { if [ "$1" = head ]; then echo 127.0.0.1; else echo "127.0.0.$(($1 + 1))"; fi; }
port_of() { if [ "$1" = head ]; then echo "$BASE_PORT"; else echo $((BASE_PORT + $1)); fi; }
directory_of() { printf '%s/%s\n' "$MEMBERS" "$1"; }

# member NAME COMMAND...: what scripts/server.sh does for one of them.
member() {
    local name=$1
    shift
    TEAK_VAR=$(directory_of "$name") TEAK_PORT=$(port_of "$name") TEAK_ADDRESS=$(address_of "$name") \
        TEAK_CACHE_SIZE=64M "$ROOT/scripts/server.sh" "$@"
}

# member_sql NAME [ARGUMENT...]: a client of it, which prints rows only.
member_sql() {
    local name=$1
    shift
    mariadb --defaults-file="$(directory_of "$name")/my.cnf" --batch --skip-column-names "$@"
}

# The numbers of those that have one, in order.
member_numbers() {
    local path
    for path in "$MEMBERS"/[0-9]*/; do [ ! -d "$path" ] || basename "$path"; done | sort -n
}

# member_pid NAME: its process, or nothing.
# shellcheck disable=SC2034 # read by server_pid
member_pid() { (VAR=$(directory_of "$1") && CONFIG=$VAR/my.cnf PID_FILE=$VAR/run/mariadbd.pid && server_pid); }

is_up() { [ -n "$(member_pid "$1")" ] && member "$1" status >/dev/null 2>&1; }

# Of the accounts by which they reach each other.
password() {
    [ -s "$MEMBERS/password" ] || (umask 077 && od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$MEMBERS/password")
    cat "$MEMBERS/password"
}

# need_memory MEBIBYTES: what servers that are about to start need.
need_memory() {
    local available
    available=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
    [ "$available" -ge "$1" ] || die "the servers need some $1 MiB of memory, and $available MiB are available."
}

# need_ports VARIABLE NAME...: before any of them is started; the variable is what moves them all.
need_ports() {
    local variable=$1 name
    shift
    for name in "$@"; do
        if [ -z "$(member_pid "$name")" ] && (exec 3<>"/dev/tcp/$(address_of "$name")/$(port_of "$name")") 2>/dev/null; then
            die "port $(port_of "$name") on $(address_of "$name") is taken by another program." \
                "Choose others: $variable=$((BASE_PORT + 100)) is the one before them."
        fi
    done
}

# run_member NAME: starts it; installs it if it is not there.
run_member() {
    mkdir -p "$(directory_of "$1")"
    member "$1" start >"$(directory_of "$1")/start.log" 2>&1 || {
        cat "$(directory_of "$1")/start.log" >&2
        die "server $1 does not start (see above)."
    }
}

# kill_member NAME: SIGKILL, and its end.
kill_member() {
    local pid
    [ -d "$(directory_of "$1")" ] || die "there is no server '$1'." "There are: $(member_numbers | paste -sd' ')"
    pid=$(member_pid "$1")
    [ -n "$pid" ] || die "server $1 does not run."
    kill -KILL "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
    say "server $1 (process $pid) was killed"
}

# stop_members NAME...: those that run.
stop_members() {
    local name
    for name in "$@"; do
        if [ -n "$(member_pid "$name")" ]; then member "$name" stop >/dev/null && say "$name has stopped"; fi
    done
}
