#!/usr/bin/env python3
"""What CHECK TABLE and REPAIR TABLE say of tables that were damaged on purpose. Prints 'N passed, N failed'."""

import os
import subprocess
import sys
import threading

import pymysql

from kit.cases import carry_out
from kit.options import ROOT, parser
from kit.server import Server

ROWS = 5000
# Every kind of index: with NULLs, descending, on prefixes, collated, unique, on columns that only the server can
# compute, with a hash.
SCHEMA = """CREATE TABLE {name} (id INT {key}, v INT, u VARCHAR(30) NOT NULL, p TEXT, c VARCHAR(20) COLLATE utf8mb4_general_ci, g INT AS (v + 1) VIRTUAL,
    h VARCHAR(2000), KEY kv (v), UNIQUE KEY ku (u{more}), KEY kp (p(7)), KEY kd (v DESC, c), KEY kc (c) {extra}) CHARSET utf8mb4"""
FILL = ("INSERT INTO {name} (id, v, u, p, c, h) SELECT seq, IF(seq % 5 = 0, NULL, seq % 100), CONCAT('u', seq), REPEAT(CHAR(65 + seq % 26), seq % 20),"
        " CONCAT(IF(seq % 2, 'Name ', 'name '), seq % 50), CONCAT('h', seq) FROM seq_1_to_{rows}")
TABLES = {
    "plain": dict(key="PRIMARY KEY", more="", extra=""),
    "hidden": dict(key="", more="", extra=""),
    "computed": dict(key="PRIMARY KEY", more="", extra=", KEY kg (g), UNIQUE KEY kh (h)"),
    "parted": dict(key="", more=", id", extra=", PRIMARY KEY (id)"),
}


class Checks:
    """One server, stopped and started again between damages."""

    def __init__(self, arguments):
        self.server = Server(arguments.directory, arguments.plugin_dir)
        self.teak, self.edit = arguments.teak, arguments.edit

    def admin(self, statement):
        """The rows of CHECK or REPAIR TABLE without those of other partitions: (kind, text)."""
        return [(row[2], row[3]) for row in self.server.query(statement)]

    def expect(self, statement, *texts):
        """Each text is in one message; the last one is the verdict."""
        rows = self.admin(statement)
        for text in texts:
            if not any(text in message for _, message in rows):
                raise AssertionError(f"{statement}: no '{text}' in {rows}")
        if texts[-1] not in rows[-1][1]:
            raise AssertionError(f"{statement}: {rows} does not end with '{texts[-1]}'")
        return rows

    def damage(self, table, tree, verb):
        """Changes the first entry of a tree while the server is down."""
        self.server.stop()
        subprocess.run([self.edit, os.path.join(self.server.data, "#teak"), f"test/{table}", str(tree), verb], check=True)
        self.server.start()

    def fill(self):
        """Sound tables of every kind, changed in every way."""
        for name, parts in TABLES.items():
            partitions = " PARTITION BY HASH (id) PARTITIONS 3" if name == "parted" else ""
            self.server.query(SCHEMA.format(name=name, **parts) + partitions)
            self.server.query(FILL.format(name=name, rows=ROWS))
            self.server.query(f"UPDATE {name} SET c = UPPER(c), v = v + 1 WHERE id % 7 = 0")
            self.server.query(f"UPDATE {name} SET id = id + 100000, p = CONCAT(p, 'x') WHERE id % 11 = 0")
            self.server.query(f"DELETE FROM {name} WHERE id % 13 = 0")

    def sound(self):
        """Nothing is found where nothing is wrong, before and after a repair."""
        for name in TABLES:
            for how in ("QUICK", "", "EXTENDED"):
                self.expect(f"CHECK TABLE {name} {how}", "OK")
            before = self.server.query(f"SELECT COUNT(*), SUM(v), SUM(CRC32(u)) FROM {name} FORCE INDEX (PRIMARY)" if name != "hidden" else
                                       f"SELECT COUNT(*), SUM(v), SUM(CRC32(u)) FROM {name} IGNORE INDEX (kv, ku)")
            self.expect(f"REPAIR TABLE {name}", "OK")
            self.expect(f"CHECK TABLE {name} EXTENDED", "OK")
            if self.server.query(f"SELECT COUNT(*), SUM(v), SUM(CRC32(u)) FROM {name} FORCE INDEX (ku) WHERE u > ''") != before:
                raise AssertionError(f"{name}: another content after the repair")
        self.expect("ALTER TABLE parted REPAIR PARTITION ALL", "OK")

    def missing_entry(self):
        """An index that is shorter than the rows."""
        for name, tree in (("plain", 1), ("plain", 2), ("hidden", 3), ("computed", 2)):
            self.damage(name, tree, "delete")
            self.expect(f"CHECK TABLE {name} QUICK", "OK")
            self.expect(f"CHECK TABLE {name}", "index 'k", "Corrupt")
            self.expect(f"CHECK TABLE {name} EXTENDED", "has no entry for the row", "Corrupt")
            self.expect(f"REPAIR TABLE {name}", "OK")
            self.expect(f"CHECK TABLE {name} EXTENDED", "OK")

    def other_entry(self):
        """As many entries as rows, but not those of the rows: only EXTENDED sees that."""
        for name, tree in (("plain", 2), ("computed", 2), ("parted#P#p1", 3)):
            table = name.split("#")[0]
            self.damage(name, tree, "move")
            self.expect(f"CHECK TABLE {table}", "OK")
            self.expect(f"CHECK TABLE {table} EXTENDED", "has no entry for the row", "Corrupt")
            rows = self.admin(f"CHECK TABLE {table} EXTENDED")
            if not any("does not make it" in text for _, text in rows):
                raise AssertionError(f"{table}: the entry of no row is not told: {rows}")
            if table == "parted":
                self.expect("ALTER TABLE parted REPAIR PARTITION p1", "OK")
            else:
                self.expect(f"REPAIR TABLE {table}", "OK")
            self.expect(f"CHECK TABLE {table} EXTENDED", "OK")

    def duplicates(self):
        """Rows that a unique index must not have: nothing is changed, and the message names them."""
        self.damage("plain", 1, "delete")
        missing = self.server.query("SELECT u FROM plain IGNORE INDEX (ku) WHERE u NOT IN (SELECT u FROM plain FORCE INDEX (ku) WHERE u > '')")[0][0]
        self.server.query(f"INSERT INTO plain (id, u) VALUES (900000, '{missing}')")
        self.expect("REPAIR TABLE plain", f"'{missing}' of the unique index 'ku' twice", "Corrupt")
        self.server.query("DELETE FROM plain WHERE id = 900000")
        self.expect("REPAIR TABLE plain", "OK")
        self.expect("CHECK TABLE plain EXTENDED", "OK")

    def disabled_keys(self):
        """Disabled indexes are told and left alone."""
        self.server.query("ALTER TABLE plain DISABLE KEYS")
        for statement in ("CHECK TABLE plain EXTENDED", "REPAIR TABLE plain"):
            self.expect(statement, "index 'kv' is disabled", "OK")
        self.server.query("ALTER TABLE plain ENABLE KEYS")
        self.expect("CHECK TABLE plain EXTENDED", "OK")

    def beside_writers(self):
        """A check sees one moment, and nobody waits for it."""
        stop = threading.Event()
        failures = []

        def write(number):
            connection = self.server.connect(autocommit=True)
            with connection.cursor() as cursor:
                step = 0
                while not stop.is_set():
                    step += 1
                    key = 200000 + number * 100000 + step % 500
                    try:
                        cursor.execute("REPLACE INTO computed (id, v, u, p, c, h) VALUES (%s, %s, %s, %s, %s, %s)",
                                       (key, step, f"w{key}", "p" * (step % 30), f"Name {step % 9}", f"w{key}"))
                        cursor.execute("DELETE FROM computed WHERE id = %s", (200000 + number * 100000 + (step * 7) % 500,))
                    except pymysql.err.MySQLError as error:
                        failures.append(error)
                        return

        writers = [threading.Thread(target=write, args=(number,)) for number in range(2)]
        for writer in writers:
            writer.start()
        try:
            for how in ("", "EXTENDED", "EXTENDED", "QUICK"):
                self.expect(f"CHECK TABLE computed {how}", "OK")
                self.expect(f"CHECK TABLE plain {how}", "OK")
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        if failures:
            raise AssertionError(failures)

    def damaged_rows(self):
        """Rows that cannot be read: told, and not repaired."""
        self.server.query("SET GLOBAL teak_checkpoint_now = 1")
        self.server.stop()
        names = subprocess.run([self.teak, "inspect", self.server.data], capture_output=True, text=True, check=True).stdout
        if "test/hidden" not in names:
            raise AssertionError(names)
        files = sorted((entry.stat().st_size, entry.path) for entry in os.scandir(os.path.join(self.server.data, "#teak")) if entry.name.endswith(".teak"))
        with open(files[-1][1], "r+b") as file:
            for at in range(4096, files[-1][0], 512):
                file.seek(at)
                byte = file.read(1)
                file.seek(at)
                file.write(bytes([byte[0] ^ 1]))
        found = subprocess.run([self.teak, "check", self.server.data], capture_output=True, text=True, check=False)
        if found.returncode != 3 or ", 1 damaged" not in found.stdout:
            raise AssertionError(f"teak check: {found.stdout}{found.stderr}")
        self.server.start()
        damaged = [name for name in TABLES if not any(text == "OK" for _, text in self.admin(f"CHECK TABLE {name} QUICK"))]
        if len(damaged) != 1:
            raise AssertionError(f"damaged are {damaged}")
        self.expect(f"CHECK TABLE {damaged[0]}", "checksum", "Corrupt")
        self.expect(f"REPAIR TABLE {damaged[0]}", "rows are damaged", "Corrupt")


def main():
    arguments = parser(__doc__).parse_args()
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "teak-core", "--example", "edit_tree"], cwd=ROOT, check=True)
    arguments.edit = os.path.join(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"), "release/examples/edit_tree")
    checks = Checks(arguments)
    checks.server.install()
    try:
        checks.server.start()
        failed = carry_out((checks.fill, checks.sound, checks.missing_entry, checks.other_entry, checks.duplicates, checks.disabled_keys,
                            checks.beside_writers, checks.damaged_rows))
        if failed:
            print(checks.server.log_end())
        return failed
    finally:
        checks.server.kill()


if __name__ == "__main__":
    sys.exit(main())
