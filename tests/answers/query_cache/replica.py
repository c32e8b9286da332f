#!/usr/bin/env python3
"""The query cache of a replica: what it serves is not older than what it has applied, children of parents that its engine changes by itself included.

One row event or statement after the other, by one worker and by four, without a binary log of its own and with one. Prints 'N passed, N failed', a combination each.
"""

from kit.asking import rows
from kit.replicas import BINLOG_OPTIONS, PARALLEL_OPTIONS, REPLICA_OPTIONS, catch_up, main

CACHE = ["--query-cache-type=1", "--query-cache-size=16M"]
SCHEMA = [
    "CREATE TABLE parent (id INT PRIMARY KEY)",
    "CREATE TABLE child (p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "INSERT INTO parent VALUES (1), (2)",
    "INSERT INTO child VALUES (1), (2)",
]
# With what the replica reads afterwards.
CHANGES = [
    ("INSERT INTO parent VALUES (3)", 6, 3),
    ("INSERT INTO child VALUES (3), (3)", 6, 9),
    ("UPDATE parent SET id = 10 WHERE id = 3", 13, 23),
    ("DELETE FROM parent WHERE id = 10", 3, 3),
    ("BEGIN; DELETE FROM child; DELETE FROM parent WHERE id = 1; INSERT INTO child VALUES (2), (2); COMMIT", 2, 4),
    ("DELETE FROM child", 2, None),
]


def follow(primary, replica):
    """What the replica reads after each change; what is wrong, as texts."""
    writer, reader, control = primary.connect(autocommit=True), replica.connect(autocommit=True), replica.connect(autocommit=True)
    rows(writer, "DROP TABLE IF EXISTS child, parent")
    for statement in SCHEMA:
        rows(writer, statement)
    catch_up(writer, control)
    wrong = []
    for change, parents, children in [("nothing", 3, 3)] + CHANGES:
        for statement in change.split("; ") if change != "nothing" else ():
            rows(writer, statement)
        catch_up(writer, control)
        # The second time it is served.
        for _ in range(2):
            found = [rows(reader, query)[0][0] for query in ("SELECT SUM(id) FROM parent", "SELECT SUM(p) FROM child")]
            if found != [parents, children]:
                wrong.append(f"{change}: {found}, not {[parents, children]}")
    hits = int(rows(reader, "SHOW STATUS LIKE 'Qcache_hits'")[0][1])
    if hits < 2 * len(CHANGES):
        wrong.append(f"{hits} results were served")
    return wrong


def cases(pair):
    """Each way in which a replica applies, with both formats of the binary log."""
    primary, replica = pair.primary, pair.replica
    for options in ([], PARALLEL_OPTIONS + BINLOG_OPTIONS):
        for binlog_format in ("ROW", "STATEMENT"):
            replica.kill()
            replica.start(REPLICA_OPTIONS + CACHE + options)
            primary.query(f"SET GLOBAL binlog_format = {binlog_format}")
            wrong = follow(primary, replica)
            print(f"{binlog_format}, {' '.join(options) or 'one after the other'}: {wrong or 'nothing old was served'}", flush=True)
            yield not wrong


main("replicas", __doc__, cases)
