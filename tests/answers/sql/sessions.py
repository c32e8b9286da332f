#!/usr/bin/env python3
"""Several connections at once, each step with Teak and with InnoDB: the outputs must be the same.

Reads sessions/*.test, one step a line:
    A: SQL      run on connection A (made when first named) and wait for the answer
    A& SQL      send, do not wait: it is expected to block; that it still does 0.4 s later is part of the output
    A=          wait for what was sent with &
    kill A      KILL QUERY of connection A's statement, from another connection
    # ...       comment

On a debug server the tests in NOT_WITH_INNODB run with Teak only, to see that the server lives.
"""

import concurrent.futures
import pathlib
import queue
import re
import subprocess
import sys
import threading

from kit.options import parser

from serving import serving

# How many files are played at a time, each in a database of its own: they wait more than they compute.
AT_A_TIME = 4
BLOCKED_AFTER = 0.4
GIVE_UP_AFTER = 20.0
GONE = "the connection is gone"
# A scan of an index in which InnoDB refuses to begin (1412) is ended all the same by SELECT MAX(v) (opt_sum_query);
# an assertion of the server forbids that.
NOT_WITH_INNODB = {"definitions"}


class Connection:
    """A mariadb client fed through a pipe; an answer ends at a marker that the client prints."""

    def __init__(self, socket, engine, database):
        self.client = subprocess.Popen(
            ["mariadb", "--no-defaults", f"--socket={socket}", "--user=root", "--force", "--unbuffered", "--batch",
             f"--init-command=set default_storage_engine={engine}", database],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        self.lines = queue.Queue()
        self.markers = 0
        self.sql = ""
        threading.Thread(target=self._read, daemon=True).start()
        self.send("select connection_id()")
        self.id = self.answer(GIVE_UP_AFTER)[-1]

    def _read(self):
        for line in self.client.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def send(self, sql):
        self.sql = sql
        self.markers += 1
        self.client.stdin.write(f"{sql};\nselect 'end of step {self.markers}' as ``;\n")
        self.client.stdin.flush()

    def answer(self, timeout):
        """Lines up to the marker; None if it did not come in time (the lines so far are kept)."""
        held = getattr(self, "held", [])
        while True:
            try:
                line = self.lines.get(timeout=timeout)
            except queue.Empty:
                self.held = held
                return None
            if line is None:
                return held + [GONE]
            if line == f"end of step {self.markers}":
                self.held = []
                return [text for text in held if text and not set(text) == {"-"}]
            held.append(line)

    def close(self):
        self.client.stdin.close()
        self.client.wait(timeout=GIVE_UP_AFTER)


def run(path, socket, engine):
    """The outputs of one file's steps with one engine, as lines."""
    admin = ["mariadb", "--no-defaults", f"--socket={socket}", "--user=root"]
    database = f"s_{path.stem}"
    subprocess.run(admin + ["-e", f"drop database if exists {database}; create database {database}"], check=True)
    connections, output = {}, []

    def connection(name):
        if name not in connections:
            connections[name] = Connection(socket, engine, database)
        return connections[name]

    for line in path.read_text().splitlines():
        step = re.match(r"(\w+)([:&=])\s*(.*)|kill (\w+)", line)
        if not step:
            continue
        output.append(line)
        if step[4]:
            subprocess.run(admin + ["-e", f"kill query {connection(step[4]).id}"], check=True)
            continue
        who, kind, sql = connection(step[1]), step[2], step[3].rstrip(";")
        if kind != "=":
            who.send(sql)
        answer = who.answer(BLOCKED_AFTER if kind == "&" else GIVE_UP_AFTER)
        if answer is None:
            answer = ["(blocked)"]
        # InnoDB's errors name the copy that an ALTER makes.
        altered = re.match(r"alter table (\w+)", who.sql, re.I)
        if altered:
            answer = [re.sub(r"#sql-alter-[-0-9a-f]+", altered[1], text) for text in answer]
        output += ["    " + re.sub(r" at line \d+", "", text) for text in answer if text != sql]
    for each in connections.values():
        each.close()
    subprocess.run(admin + ["-e", f"drop database {database}"], check=True)
    return [re.sub(r"\b(Teak|InnoDB)\b", "ENGINE", text, flags=re.I) for text in output]


def play(path, socket, alone):
    """The outputs of one file by its engines."""
    return {engine: run(path, socket, engine) for engine in (["Teak"] if path.stem in alone else ["InnoDB", "Teak"])}


def has_assertions(socket):
    """Whether this is a debug server."""
    command = ["mariadb", "--no-defaults", f"--socket={socket}", "--user=root", "-Ne", "select version()"]
    return "debug" in subprocess.run(command, check=True, capture_output=True, text=True).stdout


def play_all(server, names):
    """Plays those that are named, or all; how many, and how many of them failed."""
    alone = NOT_WITH_INNODB if has_assertions(server.socket) else set()
    directory = pathlib.Path(server.directory)
    tests = sorted((pathlib.Path(__file__).parent / "sessions").glob("*.test"))
    failed = 0
    chosen = [path for path in tests if not names or path.stem in names]
    # New sessions of other files would have what one sets for all.
    apart = [path for path in chosen if "set global" in path.read_text()]
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        # The longest first.
        together = sorted((path for path in chosen if path not in apart), key=lambda path: -path.stat().st_size)
        played = dict(zip(together, pool.map(lambda path: play(path, server.socket, alone), together)))
    played.update((path, play(path, server.socket, alone)) for path in apart)
    for path, outputs in sorted(played.items()):
        for engine, lines in outputs.items():
            (directory / f"{path.stem}.{engine.lower()}").write_text("\n".join(lines) + "\n")
        if path.stem in alone:
            if any(GONE in line for line in outputs["Teak"]):
                failed += 1
                print(f"FAILED sessions/{path.stem}: {GONE}", flush=True)
        elif outputs["InnoDB"] != outputs["Teak"]:
            failed += 1
            print(f"FAILED sessions/{path.stem} (InnoDB -, Teak +):", flush=True)
            subprocess.run(["diff", "-u", directory / f"{path.stem}.innodb", directory / f"{path.stem}.teak"])
    return len(chosen), failed


def main():
    arguments = parser(__doc__, names="of files in sessions/; default: all").parse_args()
    with serving(arguments) as server:
        count, failed = play_all(server, arguments.names)
    print(f"sessions: {count - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
