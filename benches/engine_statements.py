"""The statements of engine.py: what each does, in which order, and on which table."""

import math
from dataclasses import dataclass

# Those of sysbench. MEMORY has hash indexes unless told otherwise.
COLUMNS = "id INT NOT NULL, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT ''"
PRIMARY = "PRIMARY KEY (id) USING BTREE"
SECONDARY = "KEY k (k) USING BTREE"
# Of keys that are read, in one statement.
RANGES = 60
# Two tables with the same rows: with the secondary index and without.
TABLES = {"t": f"{COLUMNS}, {PRIMARY}, {SECONDARY}", "bare": f"{COLUMNS}, {PRIMARY}"}
SOURCE = f"CREATE TABLE source ({COLUMNS}, PRIMARY KEY (id)) ENGINE=MyISAM"
# Of every row and of every entry, for the comparison of what the engines hold.
CONTENT = "SELECT COUNT(*), SUM(k), BIT_XOR(CRC32(CONCAT_WS('#', id, k, c, pad))) FROM {table} FORCE INDEX (PRIMARY)"
ENTRIES = "SELECT COUNT(*), SUM(k), BIT_XOR(CRC32(CONCAT_WS('#', id, k))) FROM {table} FORCE INDEX (k) WHERE k > -1"


@dataclass(frozen=True)
class Statement:
    """One line of the report."""

    name: str
    sql: str
    # The table it works on.
    table: str = "t"
    # Statements without which it would do something else: they run before it even if they were not asked for.
    needs: tuple = ()
    # Statements before the clock starts.
    before: tuple = ()
    # Turns of each run. Only of what changes nothing there can be more than one.
    turns: int = 1
    # Engines without transactions have no such statement.
    transactional: bool = False

    @property
    def changes(self):
        """Whether the engine may have something left to do when it has answered."""
        return not self.sql.startswith("SELECT")


def permutation(expression, count):
    """SQL for a number of 1 to `count`, each once while `expression` goes through as many: neighbours lie far apart, by the golden ratio."""
    step = next(step for step in range(round(count * 0.618034), count * 2) if math.gcd(step, count) == 1)
    return f"1 + {expression} * {step} % {count}"


def statements(rows):
    """All, in the order in which they run on one table after the other."""
    return [*reads(rows), *writes(rows, "t"), *writes(rows, "bare")]


def reads(rows):
    """What is read, when the table has just been loaded and written out."""
    looks = rows * 2 // 5

    def look_up(column, index, wanted, value):
        return f"SELECT COUNT(*), {wanted} FROM seq_1_to_{looks} s STRAIGHT_JOIN t FORCE INDEX ({index}) ON t.{column} = {value}"

    row, needs = "SUM(t.k), SUM(LENGTH(t.c))", ("INSERT ... SELECT",)
    # Each by itself: a join would look at the whole table once where an index has no order.
    starts = [1 + number * 7919 % (rows - 100) for number in range(RANGES)]
    ranges = " UNION ALL ".join(f"SELECT COUNT(*), SUM(k) FROM t WHERE id BETWEEN {start} AND {start + 99}" for start in starts)
    scans = [
        ("full scan, one column", "SELECT COUNT(*), SUM(k) FROM t IGNORE INDEX (k)"),
        ("full scan, all columns", f"SELECT * FROM t LIMIT {rows - 1}, 1"),
        ("scan with LIKE", "SELECT COUNT(*) FROM t WHERE c LIKE '%1234%'"),
        ("index scan", "SELECT COUNT(*), SUM(k) FROM t FORCE INDEX (k)"),
        ("index scan of a range", "SELECT COUNT(*), SUM(k) FROM t FORCE INDEX (k) WHERE k > -1"),
        ("index scan with groups", "SELECT k, COUNT(*) FROM t FORCE INDEX (k) GROUP BY k HAVING COUNT(*) > 6"),
        ("scan descending", f"SELECT * FROM t FORCE INDEX (PRIMARY) ORDER BY id DESC LIMIT {rows - 1}, 1"),
    ]
    return [
        Statement("INSERT ... SELECT", "INSERT INTO t SELECT * FROM source"),
        Statement("point look-ups, random order", look_up("id", "PRIMARY", row, permutation("s.seq", rows)), needs=needs, turns=3),
        Statement("point look-ups, key order", look_up("id", "PRIMARY", row, "s.seq"), needs=needs, turns=3),
        Statement("look-ups by secondary key, row", look_up("k", "k", row, permutation("s.seq", rows)), needs=needs, turns=3),
        Statement("look-ups by secondary key, index only", look_up("k", "k", "SUM(t.id), SUM(t.k)", permutation("s.seq", rows)), needs=needs, turns=3),
        Statement(f"{RANGES} ranges of 100 keys", ranges, needs=needs, turns=3),
        *(Statement(name, sql, needs=needs, turns=3) for name, sql in scans),
    ]


def writes(rows, table):
    """What is changed; scans in between meet what changes leave behind."""
    fifth = rows // 5
    suffix = "" if table == "t" else ", no secondary key"
    load, delete, insert = (name + suffix for name in ("INSERT ... SELECT", "DELETE of a fifth", "INSERT in random order"))
    chosen = permutation("s.seq", rows)
    # Keys that the DELETE took.
    deleted = f"5 * ({permutation('s.seq', fifth)})"
    found = [] if table == "t" else [Statement(load, "INSERT INTO bare SELECT * FROM source", table)]
    found.append(Statement("UPDATE of all rows" + suffix, f"UPDATE {table} SET c = REVERSE(c)", table, needs=(load,)))
    if table == "t":
        after = (load, "UPDATE of all rows")
        found += [
            Statement("full scan after the UPDATE", "SELECT COUNT(*), SUM(k) FROM t IGNORE INDEX (k)", needs=after),
            Statement("scan descending after the UPDATE", f"SELECT * FROM t FORCE INDEX (PRIMARY) ORDER BY id DESC LIMIT {rows - 1}, 1", needs=after),
        ]
    found.append(Statement(
        "UPDATE in random order" + suffix,
        f"UPDATE seq_1_to_{fifth} s STRAIGHT_JOIN {table} ON {table}.id = {chosen} SET {table}.c = REVERSE({table}.c)", table, needs=(load,)))
    if table == "t":
        change = "UPDATE of an indexed column"
        found += [
            Statement(change, f"UPDATE t SET k = {rows} - k WHERE id % 5 = 1", needs=(load,)),
            Statement("index scan after the UPDATE", "SELECT COUNT(*), SUM(k) FROM t FORCE INDEX (k)", needs=(load, change)),
            Statement("ROLLBACK of UPDATE", "ROLLBACK", needs=(load,), transactional=True,
                      before=("BEGIN", f"UPDATE t SET c = REVERSE(c) WHERE id <= {fifth}")),
        ]
    ordered = f"FROM seq_1_to_{{count}} s STRAIGHT_JOIN source ON source.id = {deleted}"
    found += [
        Statement(delete, f"DELETE FROM {table} WHERE id % 5 = 0", table, needs=(load,)),
        Statement(insert, f"INSERT INTO {table} SELECT source.* {ordered.format(count=fifth // 2)}", table, needs=(load, delete)),
        Statement("INSERT ON DUPLICATE KEY" + suffix,
                  f"INSERT INTO {table} SELECT source.* {ordered.format(count=fifth)} ON DUPLICATE KEY UPDATE c = CONCAT({table}.pad, '+')",
                  table, needs=(load, delete, insert)),
    ]
    return found


def selected(rows, pattern):
    """The statements whose name `pattern` (a compiled expression) finds, and those they need; in order, each with whether it was asked for."""
    everything = statements(rows)
    wanted = {statement.name for statement in everything if pattern.search(statement.name)}
    needed = set(wanted)
    for statement in reversed(everything):
        if statement.name in needed:
            needed.update(statement.needs)
    return [(statement, statement.name in wanted) for statement in everything if statement.name in needed]
