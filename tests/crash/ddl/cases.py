"""The DDL during which servers are killed: cycles of statements, each of which ends where it began.

A case has a database of its own, and repeats its steps in order; after the last step all is as it was after `setup`. So a state is known by the step that led to
it. Where indexes are to be built past the log, tables have more than 10,000 rows.
"""

from dataclasses import dataclass

MANY = 11_000
FEW = 600


@dataclass
class Step:
    """One statement."""

    statement: str
    # The error it must end with, having changed nothing.
    error: int = 0
    # What the binary log has of it (a regular expression); None: rows, or nothing that could be told from those of
    # other steps. "" is the marker in its comment: the server logs most statements as they came.
    logged: str | None = ""
    # The server does not do it atomically: CREATE OR REPLACE drops the old table first. All may be as before the first
    # step, after which the cycle goes on there.
    may_restart: bool = False
    # The server logs it before its own recovery counts it as done: killed in between, it has the statement in the
    # binary log and drops the table. InnoDB's tables as well (`ddl.py --engine InnoDB --case create`, one of 100
    # rounds).
    may_be_undone: bool = False
    # The server does it before it logs it, and its recovery does not look whether it did: TRUNCATE (with InnoDB as
    # well), and ENABLE and DISABLE KEYS, which it has no DDL log of.
    may_be_unlogged: bool = False


@dataclass
class Case:
    """A cycle."""

    name: str
    setup: list
    steps: list
    only_teak: bool = False
    # ALTER TABLE ... ADD, DROP, REORGANIZE, ... PARTITION: the server moves partitions about, and its log of that is
    # not what saves other DDL.
    moves_partitions: bool = False

    def has_partitions(self):
        """Whether a table is partitioned."""
        return any("PARTITION BY" in statement for statement in self.setup)


def table(name, rows, more=""):
    """A table with a row in each of its indexes, and a unique key that does not contain the primary key."""
    return [
        f"CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY, v INT NOT NULL, w INT NOT NULL, note VARCHAR(40) NOT NULL,"
        f" UNIQUE KEY first (w), KEY note (note, w)) {more}",
        f"INSERT INTO {name} SELECT seq, seq * 7919 % 1000003, seq + 5, CONCAT('note ', seq % 97) FROM seq_1_to_{rows}",
    ]


def steps(*statements):
    """Steps of which there is nothing special to say."""
    return [Step(statement) for statement in statements]


def partitioned(name, by, more=""):
    """A partitioned table: its unique key must contain the column that it is partitioned by."""
    return [
        f"CREATE TABLE {name} (id INT NOT NULL, v INT NOT NULL, note VARCHAR(40) NOT NULL, PRIMARY KEY (id), KEY v (v), UNIQUE KEY u (note, id)) {more} {by}",
        f"INSERT INTO {name} SELECT seq, seq % 50, CONCAT('note ', seq % 97) FROM seq_1_to_{FEW}",
    ]


RANGES = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (200), PARTITION p1 VALUES LESS THAN (400), PARTITION p2 VALUES LESS THAN MAXVALUE)"

CASES = [
    Case("unique", table("t", MANY), steps("ALTER TABLE t ADD UNIQUE KEY u (v), ALGORITHM=NOCOPY, LOCK=NONE", "ALTER TABLE t DROP KEY u", "ALTER TABLE t ADD UNIQUE KEY u (note, v), ADD KEY k (v)",
                                           "ALTER TABLE t DROP KEY u, DROP KEY k")),
    Case("duplicates", table("t", MANY) + ["UPDATE t SET v = 17 WHERE id IN (40, 10000)"],
         [Step("ALTER TABLE t ADD UNIQUE KEY u (v)", error=1062), Step("ALTER TABLE t ADD KEY u (v)"), Step("ALTER TABLE t DROP KEY u"),
          Step("ALTER TABLE t ADD UNIQUE KEY u (v), ALGORITHM=COPY", error=1062)]),
    Case("columns", table("t", FEW), steps(
        "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7", "ALTER TABLE t MODIFY c BIGINT NOT NULL DEFAULT 8", "ALTER TABLE t RENAME COLUMN c TO d",
        "ALTER TABLE t ADD KEY d (d)", "ALTER TABLE t ALTER COLUMN d SET DEFAULT 9", "ALTER TABLE t DROP COLUMN d")),
    Case("definition", table("t", MANY), steps(
        "ALTER TABLE t COMMENT = 'a comment'", "ALTER TABLE t RENAME KEY note TO key_of_note", "ALTER TABLE t ALTER INDEX first IGNORED",
        "ALTER TABLE t RENAME COLUMN v TO value", "ALTER TABLE t DROP KEY key_of_note, ADD KEY other (value, note), ADD KEY third (note)",
        "ALTER TABLE t DROP KEY other, DROP KEY third, ADD KEY note (note, w), ALGORITHM=INPLACE", "ALTER TABLE t COMMENT = '', RENAME COLUMN value TO v, ALTER INDEX first NOT IGNORED")),
    Case("instant", table("t", MANY), steps(
        "ALTER TABLE t MODIFY note VARCHAR(60) NOT NULL, ALGORITHM=INSTANT", "ALTER TABLE t RENAME KEY first TO note, RENAME KEY note TO first, ALGORITHM=INSTANT",
        "ALTER TABLE t DEFAULT CHARSET utf8mb4, COMMENT = 'a comment', ALGORITHM=INSTANT", "ALTER TABLE t ADD COLUMN g INT AS (v + 1) VIRTUAL, ADD COLUMN h INT AS (w + 1) VIRTUAL, ALGORITHM=INSTANT",
        "ALTER TABLE t DROP COLUMN g, ALGORITHM=INSTANT", "ALTER TABLE t DROP COLUMN h, RENAME KEY note TO first, RENAME KEY first TO note, ALGORITHM=INSTANT",
        "ALTER TABLE t MODIFY note VARCHAR(40) NOT NULL, DEFAULT CHARSET latin1, COMMENT = '', ALGORITHM=COPY")),
    Case("layouts", table("t", MANY), steps(
        "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7 AFTER id, ALGORITHM=INPLACE", "ALTER TABLE t ADD COLUMN d VARCHAR(200) DEFAULT 'd' FIRST, DROP COLUMN v, RENAME KEY first TO other",
        "ALTER TABLE t MODIFY c INT AFTER note, MODIFY d VARCHAR(300) AFTER c") + [Step("UPDATE t SET c = NULL, d = 'changed' WHERE id % 100 = 0", logged=None)] + steps(
        "ALTER TABLE t DROP COLUMN c, ADD COLUMN v INT NOT NULL DEFAULT 3 AFTER id, RENAME COLUMN d TO e", "ALTER TABLE t DROP COLUMN e, DROP KEY note, DROP COLUMN note, RENAME KEY other TO first",
        "ALTER TABLE t ADD COLUMN note VARCHAR(40) NOT NULL DEFAULT 'note'", "ALTER TABLE t ADD KEY note (note, w), ALTER COLUMN v DROP DEFAULT, ALTER COLUMN note DROP DEFAULT", "ALTER TABLE t FORCE, ALGORITHM=COPY") + [
        Step("UPDATE t SET v = id * 7919 % 1000003, note = CONCAT('note ', id % 97)", logged=None)]),
    Case("copy", table("t", MANY), steps("ALTER TABLE t FORCE, ALGORITHM=COPY", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (w, id)",
                                         "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id)")),
    Case("rebuild", table("t", MANY), steps(
        "ALTER TABLE t FORCE, ALGORITHM=INPLACE, LOCK=NONE", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (w, id), ADD COLUMN c INT NOT NULL DEFAULT 3 FIRST, ADD KEY c (c), ALGORITHM=INPLACE, LOCK=NONE",
        "ALTER TABLE t MODIFY v INT, RENAME TO u", "ALTER TABLE u MODIFY v INT NOT NULL, DROP COLUMN c, RENAME TO t, ALGORITHM=INPLACE, LOCK=NONE",
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id), ALGORITHM=INPLACE")),
    Case("types", table("t", MANY), steps(
        "ALTER TABLE t MODIFY w BIGINT NOT NULL, ALGORITHM=INPLACE, LOCK=NONE", "ALTER TABLE t MODIFY id BIGINT NOT NULL, MODIFY v VARCHAR(20) NOT NULL, MODIFY note VARCHAR(300) CHARACTER SET utf8mb4 NOT NULL",
        "ALTER TABLE t MODIFY v INT NOT NULL, ADD KEY v (v), COMMENT = 'a comment'") + [
        Step("ALTER TABLE t MODIFY w SMALLINT NOT NULL, MODIFY v SMALLINT NOT NULL", error=1264)] + steps(
        "ALTER TABLE t DROP KEY v, MODIFY id INT NOT NULL, MODIFY w INT NOT NULL, COMMENT = ''", "ALTER TABLE t MODIFY note VARCHAR(40) CHARACTER SET latin1 NOT NULL"), only_teak=True),
    Case("types_of_parts", partitioned("t", "PARTITION BY HASH (id) PARTITIONS 3"), steps(
        "ALTER TABLE t MODIFY v BIGINT NOT NULL, MODIFY note VARCHAR(300) NOT NULL, ALGORITHM=INPLACE, LOCK=NONE", "ALTER TABLE t MODIFY v INT NOT NULL, MODIFY note VARCHAR(40) NOT NULL"), only_teak=True),
    Case("rebuilt_parts", partitioned("t", "PARTITION BY HASH (id) PARTITIONS 3"), steps(
        "ALTER TABLE t FORCE, ALGORITHM=INPLACE, LOCK=NONE", "ALTER TABLE t MODIFY v INT, ADD KEY w (v, note)", "ALTER TABLE t MODIFY v INT NOT NULL, ADD COLUMN c INT DEFAULT 5 FIRST, ALGORITHM=INPLACE, LOCK=NONE",
        "ALTER TABLE t DROP COLUMN c, DROP KEY w, FORCE, ALGORITHM=INPLACE, LOCK=NONE")),
    Case("compression", table("t", MANY), steps("ALTER TABLE t COMPRESSION=lz4", "ALTER TABLE t COMPRESSION=zstd, COMPRESSION_LEVEL=5, BLOCK_SIZE=8192",
                                                "ALTER TABLE t COMPRESSION=DEFAULT, COMPRESSION_LEVEL=DEFAULT, BLOCK_SIZE=DEFAULT"), only_teak=True),
    Case("rename", table("a", FEW) + table("b", FEW + 100), steps("RENAME TABLE a TO c", "RENAME TABLE c TO a", "RENAME TABLE a TO x, b TO a, x TO b",
                                                                  "RENAME TABLE a TO x, b TO a, x TO b")),
    Case("rename_and_more", table("t", MANY), steps("ALTER TABLE t ADD KEY k (v), RENAME TO u", "ALTER TABLE u DROP KEY k, RENAME TO t",
                                                    "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 1, RENAME TO u", "ALTER TABLE u DROP COLUMN c, RENAME TO t")),
    Case("foreign_keys", table("p", FEW) + table("t", FEW) + ["UPDATE t SET v = 1 + v % 600", "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (v) REFERENCES p (id)"], steps(
             "RENAME TABLE p TO q", "RENAME TABLE q TO p, t TO u", "RENAME TABLE u TO t", "ALTER TABLE p FORCE, ALGORITHM=COPY", "ALTER TABLE t FORCE, ALGORITHM=COPY",
             "CREATE TABLE n (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES p (id))", "ALTER TABLE t DROP FOREIGN KEY f",
             "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (v) REFERENCES p (id)") + [Step("DROP TABLE n", logged=r"DROP TABLE (IF EXISTS )?`n`")]),
    Case("constraints", table("p", FEW) + table("t", MANY) + ["UPDATE t SET v = 1 + v % 600"], steps(
             "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (v) REFERENCES p (id), ALGORITHM=NOCOPY", "ALTER TABLE t RENAME COLUMN v TO value",
             "ALTER TABLE p RENAME COLUMN id TO number, RENAME COLUMN v TO id", "ALTER TABLE t ADD CONSTRAINT g FOREIGN KEY (v) REFERENCES p (number), RENAME COLUMN value TO v",
             "ALTER TABLE t DROP FOREIGN KEY f, ALGORITHM=INSTANT") + [Step("ALTER TABLE t ADD FOREIGN KEY (w) REFERENCES p (number)", error=1452)] + steps(
             "ALTER TABLE p RENAME COLUMN id TO v, RENAME COLUMN number TO id, COMMENT = 'a comment'", "ALTER TABLE t DROP FOREIGN KEY g, DROP KEY g", "ALTER TABLE p COMMENT = ''")),
    Case("renamed_keys", table("p", FEW) + table("t", MANY) + ["UPDATE t SET v = 1 + v % 600", "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (v) REFERENCES p (id)"], steps(
             "ALTER TABLE t RENAME COLUMN v TO value, FORCE, ALGORITHM=INPLACE, LOCK=NONE", "ALTER TABLE p CHANGE id number INT NOT NULL, FORCE, ALGORITHM=INPLACE, LOCK=NONE",
             "ALTER TABLE t CHANGE value v INT, ADD COLUMN c INT DEFAULT 5 FIRST, FORCE", "ALTER TABLE t CHANGE v value INT NOT NULL, DROP COLUMN c, ALGORITHM=INPLACE, LOCK=NONE",
             "ALTER TABLE t DROP FOREIGN KEY f, RENAME COLUMN value TO v, FORCE, ALGORITHM=INPLACE", "ALTER TABLE p RENAME COLUMN number TO id, FORCE",
             "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (v) REFERENCES p (id)")),
    Case("create", table("t", FEW), [
        Step("CREATE TABLE n (PRIMARY KEY (id), UNIQUE KEY u (w), KEY k (note)) SELECT * FROM t", logged=r"CREATE TABLE `?n`? \(", may_be_undone=True),
        Step("CREATE OR REPLACE TABLE n (PRIMARY KEY (w), KEY k (v)) SELECT * FROM t WHERE id % 2", logged=r"CREATE OR REPLACE TABLE `?n`? \(", may_restart=True),
        Step("CREATE OR REPLACE TABLE n LIKE t", may_restart=True),
        Step("CREATE TABLE l LIKE n"),
        Step("INSERT INTO n SELECT * FROM t", logged=None),
        Step("TRUNCATE TABLE n", may_be_unlogged=True),
        Step("DROP TABLE l", logged=r"DROP TABLE (IF EXISTS )?`l`"),
        Step("DROP TABLE n", logged=None)]),
    Case("keys", table("t", MANY), [
        Step("ALTER TABLE t DISABLE KEYS", may_be_unlogged=True), Step("INSERT INTO t SELECT id + 1000000, v, w + 1000000, note FROM t WHERE id <= 3000", logged=None),
        Step("ALTER TABLE t ENABLE KEYS", may_be_unlogged=True), Step("DELETE FROM t WHERE id > 1000000", logged=None)]),
    Case("engine", table("t", FEW), steps("ALTER TABLE t ENGINE=InnoDB", "ALTER TABLE t ENGINE=Teak"), only_teak=True),
    Case("sequence", [], [
        Step("CREATE SEQUENCE s START WITH 5", logged=None), Step("SELECT NEXTVAL(s), NEXTVAL(s)", logged=None),
        # The server commits it before it logs it, and has no DDL log of it.
        Step("ALTER SEQUENCE s INCREMENT BY 3", logged=None), Step("RENAME TABLE s TO r"), Step("DROP SEQUENCE r", logged=None)]),
    Case("ranges", partitioned("t", RANGES) + ["CREATE TABLE e LIKE t", "ALTER TABLE e REMOVE PARTITIONING"], [
        Step("ALTER TABLE t REORGANIZE PARTITION p2 INTO (PARTITION p2 VALUES LESS THAN (500), PARTITION p3 VALUES LESS THAN MAXVALUE)"),
        Step("ALTER TABLE t REORGANIZE PARTITION p2, p3 INTO (PARTITION p2 VALUES LESS THAN MAXVALUE)"),
        Step("ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE e"), Step("ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE e"),
        Step("ALTER TABLE t TRUNCATE PARTITION p0"),
        Step("INSERT INTO t SELECT seq, seq % 50, CONCAT('note ', seq % 97) FROM seq_1_to_199", logged=None)], moves_partitions=True),
    Case("list", partitioned("t", "PARTITION BY LIST (id MOD 3) (PARTITION a VALUES IN (0), PARTITION b VALUES IN (1), PARTITION c VALUES IN (2))"), steps(
        "ALTER TABLE t ADD PARTITION (PARTITION d VALUES IN (3))", "ALTER TABLE t DROP PARTITION d"), moves_partitions=True),
    Case("hash", partitioned("t", "PARTITION BY HASH (id) PARTITIONS 2"), steps("ALTER TABLE t ADD PARTITION PARTITIONS 2", "ALTER TABLE t COALESCE PARTITION 2"), moves_partitions=True),
    Case("parts", partitioned("t", "PARTITION BY HASH (id) PARTITIONS 3"), steps(
        "ALTER TABLE t RENAME COLUMN v TO value", "ALTER TABLE t COMMENT = 'a comment'", "ALTER TABLE t ADD UNIQUE KEY more (value, id), ADD KEY plain (note)",
        "ALTER TABLE t DROP KEY more, DROP KEY plain", "ALTER TABLE t RENAME KEY u TO v, RENAME KEY v TO u, ALGORITHM=INSTANT",
        "ALTER TABLE t RENAME KEY u TO v, RENAME KEY v TO u, ALGORITHM=INSTANT", "ALTER TABLE t RENAME COLUMN value TO v, COMMENT = ''")),
    Case("layouts_of_parts", partitioned("t", "PARTITION BY HASH (id) PARTITIONS 3"), steps(
        "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7 FIRST", "ALTER TABLE t DROP COLUMN c, MODIFY v INT NOT NULL AFTER note", "ALTER TABLE t MODIFY v INT NOT NULL AFTER id, ADD d INT DEFAULT 5",
        "ALTER TABLE t DROP COLUMN d, ADD COLUMN c INT", "ALTER TABLE t DROP COLUMN c, FORCE")),
    Case("packed_parts", partitioned("t", "PARTITION BY HASH (id) PARTITIONS 3"), steps(
        "ALTER TABLE t COMPRESSION=lz4", "ALTER TABLE t COMPRESSION=DEFAULT"), only_teak=True),
]
