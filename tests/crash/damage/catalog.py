"""The catalog is damaged while a server runs that has read little of it: what it knows of constraints is told, or an error is, and never that there are none."""

import os
import re
import subprocess
import sys

import pymysql

from kit.options import parser
from kit.server import Server

from beside import LOST, Wrong, damage

# Enough that a start reads a part of what is known of them.
FAMILIES = 400
CATALOG = ("s0.teak", "s0.copy")
CHILD, PARENT = 1452, 1451


class Catalog:
    """One server with many families of tables."""

    def __init__(self, server):
        self.server, self.refused, self.answered = server, 0, 0

    def files(self):
        paths = [os.path.join(self.server.data, "#teak", name) for name in CATALOG]
        return [path for path in paths if os.path.exists(path)]

    def prepare(self):
        self.server.query("CREATE DATABASE IF NOT EXISTS test", database=None)
        connection = self.server.connect(autocommit=True)
        columns = ", ".join(f"a_column_with_a_rather_long_name_{number} VARCHAR(100)" for number in range(8))
        with connection.cursor() as cursor:
            for number in range(FAMILIES):
                cursor.execute(f"CREATE TABLE p{number} (id INT PRIMARY KEY, {columns}) ENGINE=Teak")
                cursor.execute(f"CREATE TABLE c{number} (id INT PRIMARY KEY, p INT, {columns}, "
                               f"CONSTRAINT has_parent_{number} FOREIGN KEY (p) REFERENCES p{number} (id)) ENGINE=Teak")
                cursor.execute(f"INSERT INTO p{number} (id) VALUES (1)")
                cursor.execute(f"INSERT INTO c{number} (id, p) VALUES (1, 1)")
        connection.close()
        self.server.query("SET GLOBAL teak_checkpoint_now = 1")
        self.server.stop()
        self.server.start()

    def asked(self, statement, *expected):
        """A statement's rows; None for an error, which is one of those that the constraints give, or tells of the damage."""
        try:
            rows = self.server.query(statement)
        except pymysql.MySQLError as error:
            if error.args[0] in LOST:
                raise Wrong(f"{statement}: {error}") from error
            if error.args[0] in expected:
                self.answered += 1
            else:
                self.refused += 1
            return None
        if expected:
            raise Wrong(f"{statement} has passed")
        return rows

    def look(self, number):
        """All that depends on what the catalog has of a family."""
        shown = self.asked(f"SHOW CREATE TABLE c{number}")
        if shown and f"CONSTRAINT `has_parent_{number}`" not in shown[0][1]:
            raise Wrong(f"SHOW CREATE TABLE has no constraint: {shown[0][1]}")
        self.asked(f"INSERT INTO c{number} (id, p) VALUES (2, 2)", CHILD)
        self.asked(f"UPDATE c{number} SET p = 2", CHILD)
        self.asked(f"DELETE FROM p{number}", PARENT)
        self.asked(f"UPDATE p{number} SET id = 2", PARENT)
        self.asked(f"TRUNCATE p{number}", 1701)
        checked = self.asked(f"CHECK TABLE c{number}")
        if checked and checked[-1][3] not in ("OK", "Operation failed", "Corrupt"):
            raise Wrong(f"CHECK TABLE: {checked}")

    def dumped(self):
        """Whether mariadb-dump says that it has all of the database; what it wrote."""
        command = ["mariadb-dump", "--no-defaults", f"--socket={self.server.socket}", "-uroot", "--force", "test"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stdout

    def run(self):
        self.prepare()
        contents = {}
        for path in self.files():
            with open(path, "rb") as file:
                contents[path] = file.read()
            damage(path, "blocks")
        for number in range(FAMILIES):
            self.look(number)
        whole, _ = self.dumped()
        if not self.refused or whole:
            raise Wrong(f"the damage was not met: {self.refused} statements were refused, the dump {'did not end' if whole else 'ended'} with an error")
        for path, content in contents.items():
            with open(path, "r+b") as file:
                file.write(content)
        met = self.refused
        self.server.kill()
        self.server.start()
        for number in range(FAMILIES):
            self.look(number)
        whole, text = self.dumped()
        if self.refused > met or not whole or len(re.findall("CONSTRAINT `has_parent", text)) != FAMILIES:
            raise Wrong("constraints are lost when the catalog can be read again")
        print(f"catalog: {met} statements were refused, {self.answered} answered by the constraints")


def main():
    arguments = parser(__doc__).parse_args()
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    server.start()
    try:
        Catalog(server).run()
        print("1 passed, 0 failed")
    except Wrong as wrong:
        print(f"FAILED: {wrong}\n{server.log_end(30)}\n0 passed, 1 failed")
        sys.exit(1)
    finally:
        server.kill()


if __name__ == "__main__":
    main()
