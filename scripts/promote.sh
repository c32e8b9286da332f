#!/usr/bin/env bash
# Makes a replica the primary of its set after the primary is gone, points the others at it, and lets the old one join
# as a replica when it comes back. docs/scale-out.md has it step by step. It can be repeated: what is as it should be
# stays, and where a run was killed the next one goes on.
#
# usage: scripts/promote.sh [OPTION...] SERVER...
#
# All servers of the set, also those that are gone. SERVER is HOST:PORT, where the others reach it, or HOST:PORT=SOCKET
# if this script is to reach it by a socket. If one of them can be written it is the primary, and the others join it.
# If none can, the one that has the most is chosen. Ends with 1, and a reason, if that could lose what clients were
# told to be committed; a server that has transactions of its own is not let in, and they are listed (status 3).
#
#   --to HOST:PORT               this one, and not another one that has as much
#   --accept-loss                although commits that clients were told of may be missing
#   --wait SECONDS               for what was received to be applied (600)
#   --dry-run                    say which one is, or would be, the primary; changes nothing
#   --defaults-file FILE         of the client: account and password to ask as
#   --replica-user NAME          the account of replicas, for servers that were none yet
#   --replica-password-file FILE
set -euo pipefail
# What asks a server ends the whole when the server does not answer.
shopt -s inherit_errexit
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"
# shellcheck source=scripts/replicas/gtids.sh
. "$ROOT/scripts/replicas/gtids.sh"
# shellcheck source=scripts/replicas/servers.sh
. "$ROOT/scripts/replicas/servers.sh"
# shellcheck source=scripts/replicas/join.sh
. "$ROOT/scripts/replicas/join.sh"
# shellcheck source=scripts/replicas/choose.sh
. "$ROOT/scripts/replicas/choose.sh"

# The exit status if some server was left out.
NOT_ALL=3
LEFT_OUT=0
SERVERS=()
TO='' ACCEPT_LOSS='' WAIT=600 DRY_RUN='' REPLICA_USER='' REPLICA_PASSWORD=''

usage() { die "$1" "usage: scripts/promote.sh [OPTION...] HOST:PORT[=SOCKET]...; the options are at its top"; }

add_server() {
    local server=${1%%=*}
    [[ $server =~ ^[A-Za-z0-9._-]+:[0-9]+$ ]] || usage "'$1' is not HOST:PORT or HOST:PORT=SOCKET."
    [ -z "${SOCKET_OF[$server]+given}" ] || usage "$server is given twice."
    SERVERS+=("$server")
    SOCKET_OF[$server]=''
    [ "$1" = "$server" ] || SOCKET_OF[$server]=${1#*=}
}

read_arguments() {
    while [ "$#" -gt 0 ]; do
        case $1 in
            --accept-loss) ACCEPT_LOSS=yes ;;
            --dry-run) DRY_RUN=yes ;;
            --to | --wait | --defaults-file | --replica-user | --replica-password-file)
                [ "$#" -ge 2 ] || usage "$1 needs a value."
                read_value "$1" "$2"
                shift
                ;;
            -*) usage "there is no option $1." ;;
            *) add_server "$1" ;;
        esac
        shift
    done
    [ "${#SERVERS[@]}" -ge 2 ] || usage "a set has two servers at least."
    [ -z "$TO" ] || [ -n "${SOCKET_OF[$TO]+given}" ] || usage "--to $TO is none of the servers."
}

# read_value OPTION VALUE
read_value() {
    case $1 in
        --to) TO=$2 ;;
        --wait)
            [[ $2 =~ ^[0-9]{1,8}$ ]] || usage "--wait takes seconds, and not '$2'."
            WAIT=$2
            ;;
        --defaults-file)
            [ -r "$2" ] || usage "--defaults-file: cannot read $2."
            CLIENT+=("--defaults-file=$2")
            ;;
        --replica-user)
            [[ $2 =~ ^[A-Za-z0-9._-]+$ ]] || usage "--replica-user takes letters, digits and . _ -, and not '$2'."
            REPLICA_USER=$2
            ;;
        --replica-password-file)
            [ -r "$2" ] || usage "--replica-password-file: cannot read $2."
            REPLICA_PASSWORD=$(sed -e 's/\\/\\\\/g' -e "s/'/''/g" "$2")
            ;;
    esac
}

wait_until_applied() {
    local server=$1 deadline=$((SECONDS + WAIT))
    until [ "$(must "$server" "SELECT MASTER_GTID_WAIT('${HAS[$server]}', 1)")" = 0 ]; do
        learn "$server"
        [ -n "${ANSWERS[$server]}" ] || die "$server does not answer any more." "Run this again."
        [ -z "${APPLY_ERROR[$server]}" ] || die "$server cannot apply what it has received: ${APPLY_ERROR[$server]}"
        [ "$SECONDS" -lt "$deadline" ] || die "$server has not applied ${HAS[$server]} within $WAIT s; it is at ${APPLIED[$server]:-its beginning}." \
            "It goes on with that. A longer limit: --wait"
    done
}

# Once no replica receives from the old primary, that can acknowledge nothing any more, if it is there still.
promote() {
    local server
    for server in $(answering); do
        ! is_replica "$server" || must "$server" 'STOP SLAVE IO_THREAD'
    done
    for server in $(answering); do learn "$server"; done
    choose
    say "$CHOSEN has all that the others have: ${HAS[$CHOSEN]:-nothing}"
    if is_replica "$CHOSEN"; then
        wait_until_applied "$CHOSEN"
        must "$CHOSEN" 'STOP SLAVE; RESET SLAVE ALL'
    fi
    must "$CHOSEN" 'SET GLOBAL rpl_semi_sync_slave_enabled = OFF, GLOBAL rpl_semi_sync_master_enabled = ON'
}

tell_settings() {
    local settings point timeout
    settings=$(must "$1" 'SELECT @@rpl_semi_sync_master_wait_point, @@rpl_semi_sync_master_timeout')
    read -r point timeout <<<"$settings"
    followed "$1" acknowledging || warn "no replica acknowledges what $1 commits: it waits until one does." \
        "To go on without: SET GLOBAL rpl_semi_sync_master_enabled = OFF there"
    [ "$point" = AFTER_SYNC ] ||
        warn "$1 shows commits to others before they are acknowledged: rpl_semi_sync_master_wait_point is $point"
    [ "$timeout" -ge 86400000 ] ||
        warn "$1 goes on without acknowledgements after $timeout ms (rpl_semi_sync_master_timeout), which only its error log tells"
}

main() {
    local server primary
    read_arguments "$@"
    for server in "${SERVERS[@]}"; do
        learn "$server"
        describe "$server"
    done
    find_writable
    primary=$WRITABLE_ONE
    if [ -n "$primary" ]; then
        [ -z "$TO" ] || [ "$TO" = "$primary" ] || die "$primary is the primary: it answers, and can be written." \
            "To have another one: SET GLOBAL read_only = ON there, and this again."
        say "$primary is the primary"
    else
        check_all_are_here
        check_replicas
        if [ -n "$DRY_RUN" ]; then
            choose
            say "$CHOSEN would be the primary"
            return
        fi
        promote
        primary=$CHOSEN
    fi
    [ -z "$DRY_RUN" ] || return 0
    for server in $(answering); do
        [ "$server" != "$primary" ] || continue
        follows_already "$server" "$primary" || follow "$server" "$primary"
    done
    for server in $(answering); do learn "$server"; done
    must "$primary" 'SET GLOBAL read_only = OFF'
    tell_settings "$primary"
    say "$primary can be written"
    [ "$LEFT_OUT" -eq 0 ] || exit "$NOT_ALL"
}

main "$@"
