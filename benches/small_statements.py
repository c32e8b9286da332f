"""The statements of small.py: sysbench's by prepared handles, and LinkBench's operations as text, each with the values it is executed with."""

import random
import struct
from dataclasses import dataclass
from typing import Callable

from pymysql.constants import COMMAND, FIELD_TYPE

ROWS = 100_000
# Nodes of LinkBench's graph, which has 4.7 links for each.
NODES = 4_000
TABLE = (
    "CREATE TABLE sbtest1 (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL,"
    " pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id), KEY k_1 (k))"
)
# The same digits in every run, without a table of its own for them.
FILL = (
    "INSERT INTO sbtest1 SELECT seq, 1 + CRC32(seq) % {rows}, RPAD('', 119, CONCAT(CRC32(seq + 1), '-', CRC32(seq + 2), '-', CRC32(seq + 3))),"
    " RPAD('', 59, CONCAT(CRC32(seq + 4), '-', CRC32(seq + 5))) FROM seq_1_to_{rows}"
)


class Prepared:
    """A statement prepared by the protocol: executions are sent with their values in binary form, as sysbench and JDBC do it."""

    def __init__(self, connection, sql):
        self.connection = connection
        packet = self.command(COMMAND.COM_STMT_PREPARE, sql.encode())
        self.number, columns, self.parameters = struct.unpack_from("<xIHH", packet.get_all_data())
        for definitions in (self.parameters, columns):
            self.skip(definitions + bool(definitions))

    def command(self, *what):
        """Sends a command; the first packet of the answer."""
        self.connection._execute_command(*what)  # pylint: disable=protected-access
        return self.packet()

    def packet(self):
        """The next packet of the answer."""
        return self.connection._read_packet()  # pylint: disable=protected-access

    def skip(self, packets):
        """Reads definitions and the packet after them."""
        for _ in range(packets):
            self.packet()

    def execute(self, values):
        """Reads the answer to its end; the number of rows, or of changed ones."""
        types, data = b"", b""
        for value in values:
            if isinstance(value, int):
                types += struct.pack("<H", FIELD_TYPE.LONG)
                data += struct.pack("<i", value)
            else:
                types += struct.pack("<H", FIELD_TYPE.STRING)
                data += bytes([len(value)]) + value.encode()
        nulls = bytes((len(values) + 7) // 8)
        first = self.command(COMMAND.COM_STMT_EXECUTE, struct.pack("<IBI", self.number, 0, 1) + nulls + b"\x01" + types + data)
        if first.is_ok_packet():
            return first.get_all_data()[1]
        self.skip(first.read_length_encoded_integer() + 1)
        rows = 0
        while not self.packet().is_eof_packet():
            rows += 1
        return rows


class Source(random.Random):
    """Random numbers, the same in every run, and the keys of all links that there are."""

    def __init__(self, links):
        super().__init__(1)
        self.links = links


@dataclass(frozen=True)
class Statement:
    """One line of the report: what is sent, and the source of its values."""

    name: str
    # By a prepared handle, or a function of a connection and the values.
    sends: str | Callable
    # The values of one execution after the other, from a Source.
    values: Callable
    changes: bool = True
    autocommit: bool = True

    @property
    def of_linkbench(self):
        """Whether it works on LinkBench's tables."""
        return not isinstance(self.sends, str)

    def executor(self, connection):
        """What executes it with given values; returns the number of rows or changed ones."""
        if self.of_linkbench:
            return lambda values: self.sends(connection, *values)
        return Prepared(connection, self.sends).execute


def digits(source, length):
    """As sysbench's contents."""
    return "-".join(f"{source.randrange(10**11):011d}" for _ in range(length // 12 + 1))[:length]


def some(source):
    """The id of any row."""
    return source.randrange(1, ROWS + 1)


def each_once(source):
    """The ids of the rows in random order."""
    return iter(source.sample(range(1, ROWS + 1), ROWS))


def forever(value):
    """An iterator over what a function gives."""
    return iter(value, None)


def ranges(source, count, width):
    """First and last of some ranges."""
    return [end for first in (some(source) for _ in range(count)) for end in (first, first + width)]


def sysbench():
    """Those of sysbench's workloads, and an INSERT of rows that are there."""
    row = "INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)"
    ten = " OR ".join(["k BETWEEN ? AND ?"] * 10)
    reads = [
        ("point select", "SELECT c FROM sbtest1 WHERE id=?", lambda source: forever(lambda: [some(source)])),
        ("ten points in one", f"SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({', '.join(['?'] * 10)})",
         lambda source: forever(lambda: [some(source) for _ in range(10)])),
        ("range of 100", "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?", lambda source: forever(lambda: ranges(source, 1, 99))),
        ("ten ranges", f"SELECT count(k) FROM sbtest1 WHERE {ten}", lambda source: forever(lambda: ranges(source, 10, 5))),
    ]
    writes = [
        ("update_index", "UPDATE sbtest1 SET k=k+1 WHERE id=?", lambda source: ([number] for number in each_once(source))),
        ("update_non_index", "UPDATE sbtest1 SET c=? WHERE id=?", lambda source: ([digits(source, 119), number] for number in each_once(source))),
        ("insert", row, lambda source: forever(lambda: [0, some(source), digits(source, 119), digits(source, 59)])),
        ("delete", "DELETE FROM sbtest1 WHERE id=?", lambda source: ([number] for number in each_once(source))),
        ("insert ... on duplicate key update", row + " ON DUPLICATE KEY UPDATE c=VALUES(c)",
         lambda source: ([number, some(source), digits(source, 119), digits(source, 59)] for number in each_once(source))),
    ]
    return [Statement(*one, changes=False) for one in reads] + [Statement(*one) for one in writes]


NOW = 1_700_000_000_000
KEY = "id1 = {} AND id2 = {} AND link_type = {}"
LINK = "SELECT id1, id2, link_type, visibility, data, time, version FROM linktable"


def send(connection, sql):
    """Carries out a text of one statement or several; the number of rows or changed ones of the first."""
    with connection.cursor() as cursor:
        count = cursor.execute(sql)
        while cursor.nextset():
            pass
    return count


def add_link(connection, key, data):
    """As `teak-bench linkbench` adds and updates links: what the first statement changed tells what was there."""
    changed = send(connection, "INSERT INTO linktable (id1, id2, link_type, visibility, data, time, version) VALUES"
                   f" ({key[0]}, {key[1]}, {key[2]}, 1, {data}, {NOW}, 0) ON DUPLICATE KEY UPDATE visibility = VALUES(visibility)")
    if changed:
        send(connection, f"INSERT INTO counttable (id, link_type, count, time, version) VALUES ({key[0]}, {key[2]}, 1, {NOW}, 0)"
             f" ON DUPLICATE KEY UPDATE count = count + 1, version = version + 1, time = {NOW}{'; COMMIT' if changed == 1 else ''}")
    if changed != 1:
        send(connection, f"UPDATE linktable SET visibility = 1, data = {data}, time = {NOW}, version = 0 WHERE {KEY.format(*key)}; COMMIT")
    return 1


def delete_link(connection, key):
    """Hides a link that is there."""
    found = send(connection, f"SELECT visibility FROM linktable WHERE {KEY.format(*key)} FOR UPDATE")
    send(connection, f"UPDATE linktable SET visibility = 0 WHERE {KEY.format(*key)}")
    send(connection, f"INSERT INTO counttable (id, link_type, count, time, version) VALUES ({key[0]}, {key[2]}, 0, {NOW}, 0)"
         f" ON DUPLICATE KEY UPDATE count = IF (count = 0, 0, count - 1), time = {NOW}, version = version + 1")
    send(connection, "COMMIT")
    return found


def text(template):
    """An operation that is one statement."""
    return lambda connection, *values: send(connection, template.format(*values))


def contents(source, median):
    """Bytes as a literal, of few lengths, so that a hundred executions have the mean of all."""
    return f"x'{source.randbytes(median * source.choice((1, 2, 3)) // 2).hex()}'"


def linkbench():
    """LinkBench's ten operations."""
    def any_link(source):
        return source.choice(source.links)

    def others(source):
        id1, id2, link_type = any_link(source)
        return [id1, link_type, f"{id2},{id2 + 1},{id2 + 2}"]

    def new_link(source):
        id1, _, link_type = any_link(source)
        return (id1, 10 * NODES + source.randrange(10**9), link_type)

    def shuffled(source):
        return iter(source.sample(source.links, len(source.links)))

    def nodes(source):
        return iter(source.sample(range(1, NODES + 1), NODES))

    return [
        Statement("GET_NODE", text("SELECT id, type, version, time, data FROM nodetable WHERE id = {}"),
                  lambda source: ([node] for node in nodes(source)), changes=False),
        Statement("COUNT_LINK", text("SELECT count FROM counttable WHERE id = {} AND link_type = {}"),
                  lambda source: forever(lambda: any_link(source)[::2]), changes=False),
        Statement("MULTIGET_LINK", text(LINK + " WHERE id1 = {} AND link_type = {} AND id2 IN ({})"),
                  lambda source: forever(lambda: others(source)), changes=False),
        Statement("GET_LINKS_LIST", text(LINK + " FORCE INDEX (id1_type) WHERE id1 = {} AND link_type = {} AND time >= 0 AND time <= 9223372036854775807"
                                         " AND visibility = 1 ORDER BY time DESC LIMIT 0,10000"),
                  lambda source: ([node, 123_456_789 + source.randrange(2)] for node in nodes(source)), changes=False),
        Statement("ADD_LINK", add_link, lambda source: forever(lambda: [new_link(source), contents(source, 8)]), autocommit=False),
        Statement("UPDATE_LINK", add_link, lambda source: ([key, contents(source, 8)] for key in shuffled(source)), autocommit=False),
        Statement("DELETE_LINK", delete_link, lambda source: ([key] for key in shuffled(source)), autocommit=False),
        Statement("ADD_NODE", text("INSERT INTO nodetable (type, version, time, data) VALUES (2048, 1, 1700000000, {})"),
                  lambda source: forever(lambda: [contents(source, 128)])),
        Statement("UPDATE_NODE", text("UPDATE nodetable SET version = 2, time = 1700000000, data = {1} WHERE id = {0} AND type = 2048"),
                  lambda source: ([node, contents(source, 128)] for node in nodes(source))),
        Statement("DELETE_NODE", text("DELETE FROM nodetable WHERE id = {} AND type = 2048"), lambda source: ([node] for node in nodes(source))),
    ]


def statements():
    """All of them."""
    return sysbench() + linkbench()
