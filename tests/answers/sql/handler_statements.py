#!/usr/bin/env python3
"""Random HANDLER statements, the same on a table of Teak and on one of InnoDB; each must give the same rows.

HANDLER moves a cursor that stays from one statement to the next: past the ends of an index and back, on from keys that
nothing has, from one index to another. Where it stands between rows, rows are not changed: the gap is bounded by rows
in InnoDB, by keys in Teak. Prints the statements up to the first that differs, and 'handlers: N passed, N failed'.
"""

import random
import sys

import pymysql

from kit.options import parser, seed

from serving import serving

ENGINES = ("InnoDB", "Teak")
# Each with its indexes: name, columns.
TABLES = [
    ("id INT PRIMARY KEY, a INT, b VARCHAR(3), c INT NOT NULL, KEY a (a), KEY ab (a, b), KEY down (a DESC), UNIQUE KEY u (id, a)",
     {"`PRIMARY`": ["id"], "a": ["a"], "ab": ["a", "b"], "down": ["a"], "u": ["id", "a"]}),
    ("id INT, a INT, b VARCHAR(3), c INT NOT NULL, PRIMARY KEY (a, c, id), KEY b (b(1), c), UNIQUE KEY id (id)",
     {"`PRIMARY`": ["a", "c", "id"], "b": ["b", "c"], "id": ["id"]}),
    ("id INT, a INT, b VARCHAR(3), c INT NOT NULL, KEY c (c), UNIQUE KEY ib (id, b)",
     {"c": ["c"], "ib": ["id", "b"]}),
]
STATEMENTS = 150


class Round:
    """One table in each engine, and the handlers on them."""

    def __init__(self, socket, seed):
        self.choice = random.Random(seed)
        self.reader, self.writer = (pymysql.connect(unix_socket=socket, user="root", database="handlers", autocommit=True) for _ in range(2))
        self.definition, self.indexes = self.choice.choice(TABLES)
        self.done = []

    def run(self, connection, statement):
        """The same with both engines, as (rows, error) of each. Where there are differences, {} is the engine's name."""
        answers = []
        for engine in ENGINES:
            with connection.cursor() as cursor:
                try:
                    cursor.execute(statement.replace("{}", engine.lower()))
                    answers.append((cursor.fetchall(), None))
                except pymysql.err.MySQLError as error:
                    answers.append((None, error.args[0]))
        self.done.append(statement)
        return answers

    def value(self, column):
        if column == "b":
            return self.choice.choice(["NULL", "''", "'a'", "'ab'", "'b'", "'bb'", "'c'"]) if self.choice.random() < 0.9 else "'zzz'"
        values = [str(self.choice.randint(-1, 12))] * 9 + (["NULL"] if column == "a" and "PRIMARY KEY (a" not in self.definition else [])
        return self.choice.choice(values)

    def row(self):
        return f"({', '.join(self.value(column) for column in ('id', 'a', 'b', 'c'))})"

    def read(self):
        """A statement that moves the handler."""
        if self.choice.random() < 0.05:
            return f"HANDLER h_{{}} READ {self.choice.choice(['FIRST', 'NEXT'])}"
        # Mostly the index that it has moved on before.
        if self.choice.random() < 0.2:
            self.index = self.choice.choice(list(self.indexes))
        columns = self.indexes[self.index]
        if self.choice.random() < 0.3:
            some = columns[: self.choice.randint(1, len(columns))]
            where = f"{self.choice.choice(['=', '=', '>=', '>', '<=', '<'])} ({', '.join(self.value(column) for column in some)})"
        else:
            where = self.choice.choice(["NEXT"] * 6 + ["PREV"] * 6 + ["FIRST", "LAST"])
        tail = ""
        if self.choice.random() < 0.1:
            tail += f" WHERE c < {self.choice.randint(0, 12)}"
        if self.choice.random() < 0.2:
            tail += f" LIMIT {self.choice.randint(1, 8)}"
        return f"HANDLER h_{{}} READ {self.index} {where}{tail}"

    def write(self):
        """A statement of another session."""
        if self.choice.random() < 0.5:
            return f"INSERT IGNORE INTO {{}} VALUES {self.row()}"
        return f"DELETE FROM {{}} WHERE c = {self.value('c')} AND id < {self.choice.randint(0, 12)}"

    def play(self):
        """None, or what went wrong."""
        for statement in (f"CREATE OR REPLACE TABLE {{}} ({self.definition}) ENGINE={{}}",
                          f"INSERT IGNORE INTO {{}} VALUES {', '.join(self.row() for _ in range(self.choice.randint(1, 14)))}"):
            self.run(self.writer, statement)
        self.run(self.reader, "HANDLER {} OPEN AS h_{}")
        self.index, stands = self.choice.choice(list(self.indexes)), False
        for _ in range(STATEMENTS):
            writes = stands and self.choice.random() < 0.1
            answers = self.run(self.writer if writes else self.reader, self.write() if writes else self.read())
            if answers[0] != answers[1]:
                return "\n".join(self.done + [f"{engine}: {answer}" for engine, answer in zip(ENGINES, answers)])
            if not writes:
                # With a limit it may have come to the end.
                stands = bool(answers[0][0]) and "LIMIT" not in self.done[-1]
        return None

    def close(self):
        self.reader.close()
        self.writer.close()


def main():
    arguments = parser(__doc__, rounds=60).parse_args()
    first, failed = seed(), 0
    with serving(arguments) as server:
        server.query("CREATE DATABASE handlers", database=None)
        for number in range(first, first + arguments.rounds):
            played = Round(server.socket, number)
            problem = played.play()
            played.close()
            if problem:
                failed += 1
                print(f"FAILED with TEAK_SEED={number} and --rounds 1:\n{problem}", flush=True)
    print(f"handlers: {arguments.rounds - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
