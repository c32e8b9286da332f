# shellcheck shell=bash
# Positions in MariaDB's replication: lists of GTIDs DOMAIN-SERVER-NUMBER, as @@gtid_slave_pos has them. Sourced.
# Numbers above 2^53 are beyond awk.

# The functions of all programs here.
GTID_AWK='
    function position(list, last, by,    i, n, all, part) {
        n = split(list, all, ",")
        for (i = 1; i <= n; i++)
            if (split(all[i], part, "-") == 3 && part[3] + 0 >= last[part[1]] + 0) {
                last[part[1]] = part[3]; by[part[1]] = part[2]
            }
    }'

# later_of POSITION POSITION: of each domain the later one.
later_of() {
    awk -v lists="$1,$2" "$GTID_AWK"'
        BEGIN {
            position(lists, last, by)
            for (domain in last) text = text (text == "" ? "" : ",") domain "-" by[domain] "-" last[domain]
            print text
        }'
}

# covers POSITION OTHER: whether who is at the first has all that the other has. Two GTIDs that differ in the server
# alone are of servers that have gone different ways.
covers() {
    awk -v here="$1" -v there="$2" "$GTID_AWK"'
        BEGIN {
            position(here, last, by); position(there, wanted, whose)
            for (domain in wanted)
                if (wanted[domain] > last[domain] + 0 || (wanted[domain] == last[domain] && whose[domain] != by[domain])) exit 1
        }'
}

# behind_known STATE: reads GTIDs in the order of a log, and prints those of each domain that come after the last one
# which a server with this @@gtid_binlog_state (and @@gtid_slave_pos) has.
behind_known() {
    awk -v state="$1" '
        function known(gtid,    part) { split(gtid, part, "-"); return part[3] + 0 <= last[part[1], part[2]] + 0 }
        BEGIN {
            n = split(state, all, ",")
            for (i = 1; i <= n; i++)
                if (split(all[i], part, "-") == 3 && part[3] + 0 > last[part[1], part[2]] + 0) last[part[1], part[2]] = part[3]
        }
        { split($1, part, "-"); domain = part[1] }
        known($1) { count[domain] = 0; next }
        { of[domain, ++count[domain]] = $1 }
        END { for (domain in count) for (i = 1; i <= count[domain]; i++) print of[domain, i] }'
}
