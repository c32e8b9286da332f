# shellcheck shell=bash
# Which server is, or can be, the primary, and when none can without losing what clients were told to be committed.
# Sourced after servers.sh.

# may_lose WHAT [WHAT TO DO...]: ends, unless that is accepted.
may_lose() {
    if [ -n "$ACCEPT_LOSS" ]; then warn "accepted: $1"; else die "$@" "To go on all the same: --accept-loss"; fi
}

answering() {
    local server
    for server in "${SERVERS[@]}"; do [ -z "${ANSWERS[$server]}" ] || printf '%s\n' "$server"; done
}

# WRITABLE_ONE is the one that can be written, or empty.
find_writable() {
    local server
    WRITABLE_ONE=''
    for server in $(answering); do
        [ -n "${WRITABLE[$server]}" ] || continue
        ! is_replica "$server" || die "$server can be written, and follows ${SOURCE[$server]}." "A replica has read_only = ON."
        [ -z "$WRITABLE_ONE" ] || die "$WRITABLE_ONE and $server can both be written." \
            "Make the one that no client uses read-only (SET GLOBAL read_only = ON), and run this again."
        WRITABLE_ONE=$server
    done
}

# followed SERVER [acknowledging]: whether one of those that answer follows it.
followed() {
    local other
    for other in $(answering); do
        [ "${SOURCE[$other]}" = "$1" ] || continue
        [ $# -eq 1 ] || [ "${ACKNOWLEDGES[$other]}" != 0 ] || continue
        return 0
    done
    return 1
}

# is_complete SERVER: it has been the primary, or was chosen by a run that was killed, since it was started, as no
# server starts with that setting. So it has all that clients were told of.
is_complete() { ! is_replica "$1" && [ "${WAITS[$1]}" = 1 ]; }

# A commit that clients were told of is with the primary and with one replica at least, so all have to be here but the
# primary. Also if that has come back: what it was about to commit when it crashed it may have rolled back.
check_all_are_here() {
    local server gone=''
    for server in $(answering); do ! is_complete "$server" || return 0; done
    for server in "${SERVERS[@]}"; do
        [ -z "${ANSWERS[$server]}" ] || continue
        if ! followed "$server"; then
            may_lose "$server does not answer, and may be the only one that has some of what clients were told to be committed." \
                "Have it answer, or start it: what it has applied is there still."
        elif [ -n "$gone" ]; then
            may_lose "$gone and $server do not answer, and both were followed." "Start one of them."
        elif ! followed "$server" acknowledging; then
            may_lose "no replica acknowledges commits to $server (rpl_semi_sync_slave_enabled is OFF): it did not wait for that." \
                "Start it: it has them."
        fi
        gone=$server
    done
}

# applied_somewhere SERVER: whether one that answers has applied what this one has received.
applied_somewhere() {
    local other
    for other in $(answering); do ! covers "${APPLIED[$other]}" "${HAS[$1]}" || return 0; done
    return 1
}

# What a replica has received has to stay until it, or another one, has applied it.
check_replicas() {
    local server
    for server in $(answering); do
        is_replica "$server" || continue
        [ -z "${FRESH[$server]}" ] || [ -n "${ANSWERS[${SOURCE[$server]}]-}" ] ||
            may_lose "$server was started when its primary was gone: what it had received and not applied before is thrown away." \
                "If ${SOURCE[$server]} can be started, do: it has that."
        ! applied_somewhere "$server" || continue
        [ -z "${APPLY_ERROR[$server]}" ] || may_lose "$server cannot apply what it has received: ${APPLY_ERROR[$server]}" \
            "See to that first: docs/replicate.md has what a difference of rows can be mended by."
        [ "${APPLIES[$server]}" != No ] || may_lose "$server does not apply what it has received: its SQL thread was stopped." \
            "START SLAVE SQL_THREAD there, while the other one runs: if both are stopped, what was received is thrown away."
    done
}

# has_all SERVER: all that those who answer have.
has_all() {
    local other
    for other in $(answering); do covers "${HAS[$1]}" "${HAS[$other]}" || return 1; done
}

# CHOSEN is one that has all that the others have: --to, or who has applied the most.
choose() {
    local server
    CHOSEN=''
    for server in $(answering); do
        has_all "$server" || continue
        if [ -z "$CHOSEN" ] || ! covers "${APPLIED[$CHOSEN]}" "${APPLIED[$server]}"; then CHOSEN=$server; fi
    done
    [ -n "$CHOSEN" ] || die "no server has all that the others have: they have gone different ways (see above)." \
        "Somebody has to say whose transactions count: leave the others out, with --accept-loss."
    if [ -n "$TO" ]; then
        [ -n "${ANSWERS[$TO]}" ] || die "$TO does not answer."
        has_all "$TO" || die "$TO has ${HAS[$TO]:-nothing}, and $CHOSEN has ${HAS[$CHOSEN]}." \
            "If it follows $CHOSEN, wait until it has that, or leave out --to."
        CHOSEN=$TO
    fi
    [ "${LOGS[$CHOSEN]}" = 1 ] || die "$CHOSEN has no binary log that others could follow." "It needs log_bin and log_slave_updates."
    [ "${DELAY[$CHOSEN]:-0}" = 0 ] || die "$CHOSEN has the most, and applies it ${DELAY[$CHOSEN]} s late on purpose." \
        "To have it apply that now: docs/scale-out.md, \"A delayed replica\"."
}
