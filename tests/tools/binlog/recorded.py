#!/usr/bin/python3
"""Logs that servers from MySQL 4.0 on wrote, as the package mariadb-test-data has them, decoded by `teak binlog` and by `mariadb-binlog -vv`: the same events at the
same positions, the same rows of the same tables. What differs is listed here, with why. Those of MySQL's own test suite are decoded, too, if TEAK_RECORDED names a
directory of them.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

from kit.cases import carry_out, check
from kit.options import parser

RECORDED = pathlib.Path("/usr/share/mysql/mysql-test")
# Of MariaDB 10.11 and 11.8 and of MySQL 9.7, which no other case has. What is in them was compared with the servers.
CORPUS = pathlib.Path(__file__).resolve().parents[3] / "crates/binlog/tests/hostile"
EXPECTED = pathlib.Path(__file__).resolve().parent / "expected"
MAGIC = b"\xfebin"
SKIPPED, DAMAGE = 77, 3
KINDS = {"write": "INSERT INTO", "update": "UPDATE", "delete": "DELETE FROM"}
# How mariadb-binlog calls types of events, where it is not by their name.
CALLED = {
    "binlog_checkpoint": "Binlog checkpoint", "mariadb_gtid": "GTID", "mariadb_gtid_list": "Gtid list", "format_description": "Start", "start_v3": "Start",
    "anonymous_gtid": "Ignorable", "previous_gtids": "Ignorable", "create_file": "Query", "execute_load": "Exec_load",
}

# Where `teak binlog` ends with an error: what it says. The events before are the same.
ENDS = {
    "binlog_before_20574.bin": "position 296: the log is encrypted from here on (key version 1)",
    "corrupt-relay-bin.000624": "position 91204, query: the status variables of a query event needs 16949 bytes, and 139 are left",
    "mdev-39404-binlog.000001": "position 256, mariadb_gtid: the checksum of the event is 00000000, that of its bytes 04e0a427",
    # mariadb-binlog takes this end for that of the log, with exit status 0.
    "bug11747416_32228_binlog.000001": "position 316: the log ends 7876 bytes into an event",
    # An incident whose number no server has.
    "bug40482-bin.000001": "position 106, incident: an incident event of the unknown number 66",
}
# Where mariadb-binlog prints more: what `teak binlog` does not decode.
LESS = {
    # Of MySQL 5.1 before its release, whose table maps do not tell what types need: mariadb-binlog prints these rows as
    # BINLOG statements alone.
    "ver_5_1-telco.001": "a table map of MySQL 5.1 before its release",
    "ver_5_1_17.001": "a table map of MySQL 5.1 before its release",
    "bug32407.001": "a table map of MySQL 5.1 before its release",
    # MySQL 4.0.0, whose format MySQL's own replicas refuse.
    "master-bin.000001": "a format of version 2 is not known",
}
# Where mariadb-binlog ends, and `teak binlog` does not: at a compressed transaction of MySQL 8.0.
MORE = {"mdev35643_mysql_80_binlog.000001": 242}


def logs(directory):
    """All files below that begin as logs do."""
    found = (path for path in sorted(directory.rglob("*")) if path.is_file() and path.stat().st_size < 4 << 20)
    return [path for path in found if path.open("rb").read(4) == MAGIC]


def theirs(path):
    """Positions, what happened to rows of which tables, and types, as mariadb-binlog has them."""
    command = ["mariadb-binlog", "--no-defaults", "-vv", "--base64-output=decode-rows", "--verify-binlog-checksum", str(path)]
    output = subprocess.run(command, capture_output=True, check=False).stdout.decode("latin1")
    positions = [int(at) for at in re.findall(r"^# at (\d+)$", output, re.MULTILINE)]
    rows = re.findall(r"^### (INSERT INTO|UPDATE|DELETE FROM) (\S+)", output, re.MULTILINE)
    return positions, rows, re.findall(r"^#\d{6} .*end_log_pos \d+ (?:CRC32 0x[0-9a-f]+ )?\s*#?(\S.*)$", output, re.MULTILINE)


class Cases:
    """All need the command."""

    def __init__(self, teak):
        self.teak = teak

    def decode(self, path):
        done = subprocess.run([self.teak, "binlog", "--json", str(path)], capture_output=True, check=False)
        return done.returncode, [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()], done.stderr.decode("utf-8")

    def case_events_and_rows_are_those_of_mariadb_binlog(self):
        found = logs(RECORDED)
        check(len(found) >= 28, f"only {len(found)} logs are there")
        rows = events = 0
        for path in found:
            status, ours, error = self.decode(path)
            name = path.name
            expected_error = ENDS.get(name) or LESS.get(name)
            check(status == (DAMAGE if expected_error else 0) and (expected_error or "") in error, f"{name}: exit status {status}, {error}")
            positions, their_rows, kinds = theirs(path)
            for event, kind in zip((event for event in ours if "in_payload" not in event), kinds):
                called = CALLED.get(event["event"], event["event"].removesuffix("_v1").capitalize())
                check(kind.startswith(called), f"{name}, position {event['position']}: {event['event']}, and {kind!r}")
            our_positions = [event["position"] for event in ours if "in_payload" not in event]
            our_rows = [(KINDS[event["change"]], f"`{event['database']}`.`{event['table']}`") for event in ours for _ in event.get("rows", ())]
            if name in LESS:
                positions, their_rows = positions[:len(our_positions)], their_rows[:len(our_rows)]
            if name in MORE:
                check(len(ours) == MORE[name], f"{name}: {len(ours)} events")
                our_positions, our_rows = our_positions[:len(positions)], our_rows[:len(their_rows)]
            if name in ENDS and len(positions) == len(our_positions) + 1:
                # The one that is wrong.
                positions.pop()
            check(positions == our_positions, f"{name}: events at {sorted(set(positions) ^ set(our_positions))} are of one alone")
            check(their_rows == our_rows, f"{name}: {len(our_rows)} rows instead of {len(their_rows)}")
            events, rows = events + len(our_positions), rows + len(our_rows)
        print(f"        {len(found)} logs, {events} events, {rows} rows", flush=True)

    def case_small_logs_of_each_server_are_as_expected(self):
        for path in sorted(CORPUS.glob("*/*")):
            if path.name.startswith("fuzzed"):
                continue
            status, ours, error = self.decode(path)
            check(status == 0, error)
            with (EXPECTED / f"{path.parent.name}-{path.name}.jsonl").open(encoding="utf-8") as lines:
                for expected, event in zip((json.loads(line) for line in lines), ours, strict=True):
                    check(expected == event, f"{path.name}: {event} instead of {expected}")

    def case_text_has_a_line_for_each_event(self):
        for path in logs(RECORDED):
            _, ours, _ = self.decode(path)
            text = subprocess.run([self.teak, "binlog", str(path)], capture_output=True, check=False).stdout.decode("utf-8")
            lines = [line for line in text.splitlines() if re.match(r"\d+\.\.", line)]
            check(len(lines) == len(ours), f"{path.name}: {len(lines)} lines for {len(ours)} events")

    def case_logs_of_mysql_end_in_no_unknown_way(self):
        directory = os.environ.get("TEAK_RECORDED")
        for path in logs(pathlib.Path(directory)) if directory else ():
            status, ours, error = self.decode(path)
            check(status in (0, DAMAGE) and (status == 0 or path.name in error), f"{path}: exit status {status}, {error}")
            print(f"        {path.name}: {len(ours)} events{', ' + error.strip() if error else ''}", flush=True)


def main():
    arguments = parser(__doc__, names="cases; all without").parse_args()
    if not RECORDED.exists():
        print("the package mariadb-test-data is not installed")
        return SKIPPED
    cases = Cases(arguments.teak)
    return 1 if carry_out([getattr(cases, name) for name in Cases.__dict__ if name.startswith("case_")], arguments.names) else 0


if __name__ == "__main__":
    sys.exit(main())
