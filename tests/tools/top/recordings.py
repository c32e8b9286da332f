#!/usr/bin/python3
"""`teak top --record` and `--replay`: what a server was like is seen again, step by step; files that are torn, damaged, of another version, or no recordings
say so; a program without a terminal records on, whatever the server does, and ends in order.

usage: recordings.py [CASE...]
"""

import json
import os
import random
import signal
import socket
import stat
import subprocess
import sys

from kit.asking import rows, wait_until
from kit.cases import OnServer, carry_out_all
from kit.options import parser, seed
from kit.waiting import Waiter
from shown import Top, options

USAGE, DAMAGE, INPUT_OUTPUT = 2, 3, 4
# Of the overview.
READY = "of log since"
BEGIN = b"teak top recording 1\n"


class Cases(OnServer):
    """On one server."""

    def __init__(self, arguments):
        super().__init__(arguments)
        self.file = os.path.join(self.directory, "recording")

    def fresh(self):
        """No file."""
        for name in (self.file, self.file + ".1"):
            if os.path.exists(name):
                os.remove(name)

    def record(self, *more, environment=None):
        """A program without a terminal."""
        command = [self.teak, "top", *options(self.server), f"--record={self.file}", "--interval=0.1", *more]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})

    def ends(self, process, number=signal.SIGTERM):
        """Its exit status, and what it said."""
        process.send_signal(number)
        errors = process.communicate(timeout=30)[1]
        return process.returncode, errors

    def last(self):
        """What the last sample says; None if there is none yet."""
        done = subprocess.run([self.teak, "top", f"--replay={self.file}", "--once", "--json"], capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def until(self, condition, what):
        """Waits for a last sample that is so."""
        def is_so():
            found = self.last()
            return found is not None and condition(found)

        wait_until(is_so, what)

    def replayed(self):
        """Exit status and messages of one that shows the last sample."""
        done = subprocess.run([self.teak, "top", f"--replay={self.file}", "--once", "--json"], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def some(self, count=5):
        """A recording of so many samples at least; its bytes."""
        self.fresh()
        process = self.record()
        size = lambda: os.path.getsize(self.file) if os.path.exists(self.file) else 0
        wait_until(lambda: size() > 1000 * count, "samples")
        status, errors = self.ends(process)
        assert (status, errors) == (0, ""), (status, errors)
        with open(self.file, "rb") as file:
            return file.read()

    def write(self, content):
        with open(self.file, "wb") as file:
            file.write(content)

    def case_what_was_is_seen_again(self):
        self.fresh()
        self.server.query("create or replace table t (id int primary key, v int) engine=Teak")
        self.server.query("insert into t values (1, 0)")
        process = self.record()
        self.until(lambda found: found["views"]["locks"] == [], "a sample without waits")
        root = Waiter(self.server, "update t set v = 1 where id = 1")
        waiter = Waiter(self.server).waits("update t set v = 2 where id = 1")
        self.until(lambda found: len(found["views"]["locks"]) == 2, "a sample with one that waits")
        rows(root.connection, "rollback")
        for session in (waiter, root):
            session.end()
        self.until(lambda found: found["views"]["locks"] == [], "a sample without waits again")
        status, errors = self.ends(process)
        assert (status, errors) == (0, ""), (status, errors)
        assert stat.S_IMODE(os.stat(self.file).st_mode) == 0o600
        with Top(self.directory, self.teak, f"--replay={self.file}", "--interval=0.1") as top:
            top.until("PAUSED 1/", "[1 Overview]", ". , > <: on, back")
            top.press("3")
            top.until("[3 Locks]", "nothing")
            # Step by step until it waits, and on until it does not.
            steps = 0
            while "t PRIMARY (1) X" not in top.screen():
                steps += 1
                top.press(".")
                top.until(f" {steps + 1}/")
            top.press("k")
            top.until("this is a recording")
            top.press("e", "4")
            top.until("[4 Trx]", "LOCK WAIT", "update t set v = 2")
            top.press("3")
            while "t PRIMARY (1) X" in top.until("[3 Locks]", f" {steps + 1}/"):
                steps += 1
                top.press(".")
                top.until(f" {steps + 1}/")
            top.press(",")
            top.until("t PRIMARY (1) X", f" {steps}/")
            top.press("<", "<", "<", "<")
            top.until("1/", "this is the first sample")
            for _ in range(1 + steps // 10):
                top.press(">")
            top.until("this is the last sample")
            top.press("q")
            top.ended()

    def case_it_plays_by_itself(self):
        self.some()
        with Top(self.directory, self.teak, f"--replay={self.file}", "--interval=0.1") as top:
            top.until("PAUSED 1/")
            top.press("Space")
            count = int(top.screen().splitlines()[0].split("/")[1].split()[0])
            top.until(f"PAUSED {count}/{count}")

    def case_a_killed_program_leaves_at_most_one_torn_sample(self):
        content = self.some()
        ends, at = [], len(BEGIN)
        while at < len(content):
            at += 4 + int.from_bytes(content[at:at + 4], "little")
            ends.append(at)
        assert ends[-1] == len(content) and len(ends) > 2, ends
        source = random.Random(seed())
        for cut in [ends[0] - 1, ends[1] + 3, *(source.randrange(ends[0], len(content)) for _ in range(10))]:
            self.write(content[:cut])
            status, errors = self.replayed()
            is_whole = cut in ends
            assert status == 0 and is_whole == (errors == "") or cut < ends[0] and status == DAMAGE, (cut, status, errors)
            if cut < ends[0]:
                continue
            assert is_whole or "ends within a sample" in errors, errors
            with Top(self.directory, self.teak, f"--replay={self.file}") as top:
                top.until(READY if is_whole else "the recording ends within a sample")
        # Whoever goes on cuts it off, and what it writes is found.
        process = self.record()
        begin = os.path.getsize(self.file)
        wait_until(lambda: os.path.getsize(self.file) > begin + 2000, "more samples")
        status, errors = self.ends(process)
        assert status == 0 and (is_whole or "cut off" in errors), (status, errors)
        assert self.replayed() == (0, ""), "what was gone on with"
        # The same by a kill.
        process = self.record()
        begin = os.path.getsize(self.file)
        wait_until(lambda: os.path.getsize(self.file) > begin + 2000, "more samples")
        process.kill()
        process.communicate()
        assert self.replayed()[0] == 0

    def case_other_files(self):
        content = self.some()
        middle = len(BEGIN) + 4 + int.from_bytes(content[len(BEGIN):len(BEGIN) + 4], "little")
        lost = content[:middle] + b"\xff\xff\xff\xff" + content[middle + 4:]
        flipped = bytearray(content)
        flipped[-1] ^= 255
        for written, status, text, recorded in (
            (b"", DAMAGE, "no recording", None),
            (b"\0" * 5000, DAMAGE, "no recording", "no recording"),
            (b"#!/bin/sh\n", DAMAGE, "no recording", "no recording"),
            (BEGIN, DAMAGE, "no whole sample", None),
            (BEGIN.replace(b"1", b"2") + content[len(BEGIN):], DAMAGE, "format 2", "format 2"),
            (lost, 0, "damaged at byte", "damaged"),
            (bytes(flipped), DAMAGE, "is damaged", None),
        ):
            self.write(written)
            found = self.replayed()
            assert found[0] == status and text in found[1] and self.file in found[1], (written[:30], found)
            if recorded:
                process = self.record()
                errors = process.communicate(timeout=30)[1]
                assert process.returncode == USAGE and recorded in errors and "Move it away" in errors, errors
                with open(self.file, "rb") as file:
                    assert file.read() == written, "it was changed"
        self.fresh()
        assert self.replayed()[0] == INPUT_OUTPUT
        # A sample that is damaged says so where it would be, and others are seen.
        self.write(bytes(flipped))
        with Top(self.directory, self.teak, f"--replay={self.file}") as top:
            top.until("1/", READY)
            for _ in range(1 + len(content) // 10_000):
                top.press(">")
            top.until("is damaged")
            top.press("<")
            top.until(READY)

    def case_the_server_goes_and_comes(self):
        self.fresh()
        process = self.record()
        self.until(lambda found: found["missing"] == {}, "a sample")
        self.server.kill()
        self.until(lambda found: "server" in found["missing"], "a sample without the server")
        self.server.start()
        self.until(lambda found: found["missing"] == {}, "a sample with the server")
        status, errors = self.ends(process)
        assert status == 0 and "all is there again" in errors and len(errors.splitlines()) < 6, errors

    def case_one_at_a_time_and_with_a_screen(self):
        self.fresh()
        process = self.record()
        self.until(lambda found: True, "a sample")
        other = self.record()
        errors = other.communicate(timeout=30)[1]
        assert other.returncode == USAGE and "another teak top records to it" in errors, errors
        assert self.ends(process)[0] == 0
        begin = os.path.getsize(self.file)
        with Top(self.directory, self.teak, *options(self.server), f"--record={self.file}", "--interval=0.1") as top:
            top.until("RECORDING", READY)
            wait_until(lambda: os.path.getsize(self.file) > begin + 2000, "samples of the screen")
            # All views, whichever is seen.
            assert self.last()["views"]["overview"]
            top.press("7", "q")
            top.ended()
        assert self.replayed() == (0, "")

    def case_a_service(self):
        self.fresh()
        path = os.path.join(self.directory, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            if os.path.exists(path):
                os.remove(path)
            told.bind(path)
            told.settimeout(60)
            process = self.record(environment={"NOTIFY_SOCKET": path})
            text = ""
            while "READY=1" not in text or "recorded" not in text:
                text += told.recv(1000).decode()
            process.send_signal(signal.SIGTERM)
            while "STOPPING=1" not in text:
                text += told.recv(1000).decode()
            process.communicate(timeout=30)
            assert process.returncode == 0


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return carry_out_all(Cases(arguments), arguments.names)


if __name__ == "__main__":
    sys.exit(main())
