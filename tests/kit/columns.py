"""Columns of all types, with random values: what binary logs, and whoever follows them, must have as the server has it."""

import json
import struct


def text_of(source, alphabet, longest):
    return "".join(source.choice(alphabet) for _ in range(source.randrange(longest + 1)))


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def hexadecimal(source, longest):
    return "x'" + source.randbytes(source.randrange(longest + 1)).hex() + "'"


class Column:
    """A column: its definition, random literals, and what SELECT and the log are to have in common."""

    def __init__(self, definition, literal, select="{}", shown=str, needs="no_log"):
        self.definition, self.literal, self.select, self.shown = definition, literal, select, shown
        # The least metadata (binlog_row_metadata) with which the log shows it as SELECT does.
        self.needs = needs


def number(definition, low, high):
    def shown(value):
        return str(value["unsigned" if "unsigned" in definition else "signed"] if isinstance(value, dict) else value)

    return Column(definition, lambda source: source.choice([low, high, 0, 1, source.randrange(low, high + 1)]), shown=shown)


def characters(definition, alphabet, longest=30):
    """Text: in UTF-8 where teak turns it to that, else as the bytes of its character set."""
    def shown(value):
        return value.encode("utf-8").hex() if isinstance(value, str) else value["hex"]

    select = "hex(convert({} using utf8mb4))" if any(name in definition for name in ("latin1", "utf", "ucs2", "ascii")) else "hex({})"
    return Column(definition, lambda source: quoted(text_of(source, alphabet, longest)), select, shown, needs="minimal")


def octets(definition, longest):
    return Column(definition, lambda source: hexadecimal(source, longest), "hex({})",
                  lambda value: value["hex"] if isinstance(value, dict) else value.encode("utf-8").hex(), needs="minimal" if definition.startswith("binary(") else "no_log")


def temporal(definition, *values):
    return Column(definition, lambda source: quoted(source.choice(values)), "cast({} as char)")


def decimal(digits, scale):
    def literal(source):
        whole, fraction = source.randrange(10 ** (digits - scale)), source.randrange(10 ** scale)
        text = f"{source.choice(['', '-'])}{whole}" + (f".{fraction:0{scale}d}" if scale else "")
        return source.choice([text, "0", f"-0.{'0' * (scale - 1)}1" if scale else "-1"])

    return Column(f"decimal({digits},{scale})", literal, "cast({} as char)")


def fraction(definition):
    form = "f" if definition == "float" else "d"

    def shown(value):
        return struct.pack(form, float(value)).hex()

    return Column(definition, lambda source: source.choice(["0", "-1.5", "1e-30", "3.4e37", repr(source.uniform(-1e6, 1e6)), repr(source.random())]), "{} + 0e0", shown)


LATIN, WIDE = "ab\u00e9\u00df\u20ac '\"\\\n", "ab\u00e9\u20ac\u8868\u80fd \U0001f600\t"
COLUMNS = [
    number("tinyint", -128, 127), number("tinyint unsigned", 0, 255), number("smallint", -32768, 32767), number("smallint unsigned", 0, 65535),
    number("mediumint", -8388608, 8388607), number("mediumint unsigned", 0, 16777215), Column("year", lambda s: s.choice([0, 1901, 2024, 2155]), "{} + 0"),
    number("int", -2147483648, 2147483647), number("int unsigned", 0, 4294967295), number("bigint", -9223372036854775808, 9223372036854775807),
    number("bigint unsigned", 0, 18446744073709551615), fraction("float"), fraction("double"),
    *(decimal(*size) for size in ((1, 0), (5, 5), (9, 0), (10, 4), (20, 9), (65, 0), (65, 30), (38, 38))),
    *(Column(f"bit({bits})", lambda s, bits=bits: s.choice([0, 1, 2 ** bits - 1, s.randrange(2 ** bits)]), "{} + 0") for bits in (1, 7, 8, 9, 33, 64)),
    temporal("date", "0000-00-00", "2024-02-29", "9999-12-31", "2024-00-10", "1000-01-00"),
    *(temporal(f"time({n})" if n else "time", "838:59:59.999999", "-838:59:59.999999", "00:00:00", "-00:00:00.1", "-00:00:01", "12:34:56.654321") for n in range(7)),
    *(temporal(f"datetime({n})" if n else "datetime", "0000-00-00 00:00:00", "9999-12-31 23:59:59.999999", "2024-02-29 12:34:56.100001", "0000-00-10 00:00:00.5")
      for n in range(7)),
    *(temporal(f"timestamp({n}) null" if n else "timestamp null", "0000-00-00 00:00:00", "2038-01-19 03:14:07.999999", "1970-01-01 00:00:01", "2024-02-29 12:34:56.9")
      for n in range(7)),
    characters("char(30) character set latin1", LATIN), characters("char(30) character set utf8mb4", WIDE), characters("char(255) character set utf8mb4", WIDE),
    characters("varchar(30) character set utf8mb3", WIDE[:-2]), characters("varchar(1000) character set utf8mb4", WIDE, 200),
    characters("varchar(30) character set ucs2", WIDE[:-2]), characters("varchar(30) character set utf16", WIDE), characters("varchar(30) character set utf32", WIDE),
    characters("varchar(30) character set utf16le", WIDE), characters("varchar(30) character set sjis", "ab\u8868\u80fd"),
    characters("varchar(30) character set cp1251", "ab\u0436\u044f"), characters("char(30) character set gbk", "ab\u8868"), characters("text character set koi8r", "ab\u0436"),
    characters("tinytext character set utf8mb4", WIDE, 60), characters("mediumtext", WIDE, 3000), characters("longtext character set latin1", LATIN, 500),
    characters("varchar(200) compressed character set utf8mb4", "ab\u8868", 150), characters("text compressed character set latin1", "ab\u00e9", 3000),
    octets("binary(7)", 7), octets("binary(200)", 200), octets("varbinary(300)", 300), octets("tinyblob", 255), octets("blob", 2000), octets("longblob", 300),
    octets("blob compressed", 2000), octets("varbinary(1000) compressed", 1000),
    Column("enum('', 'x', '\u00e9', 'it''s')", lambda s: s.randrange(1, 5), "convert({} using utf8mb4)", needs="full"),
    Column("enum({}) character set ucs2".format(", ".join(f"'w{n}'" for n in range(300))), lambda s: s.randrange(1, 301), "convert({} using utf8mb4)", needs="full"),
    Column("set({}) character set latin1".format(", ".join(f"'\u00e9{n}'" for n in range(60))), lambda s: s.choice([0, 1, 2 ** 60 - 1, s.randrange(2 ** 60)]),
           "convert({} using utf8mb4)", ",".join, needs="full"),
    Column("point", lambda s: f"point({s.uniform(-9, 9)}, {s.uniform(-9, 9)})", "hex({})", lambda v: v["hex"]),
    Column("geometry", lambda s: s.choice(["st_geomfromtext('polygon((0 0, 1 0, 1 1, 0 0))', 4326)", "st_geomfromtext('geometrycollection(point(1 2))')"]), "hex({})",
           lambda v: v["hex"]),
    characters("json", "", 0), Column("uuid", lambda s: f"'{s.randbytes(4).hex()}-e89b-12d3-a456-426655440000'", "hex(cast({} as binary(16)))", lambda v: v["hex"],
                                      needs="minimal"),
    Column("inet6", lambda s: s.choice(["'::1'", "'ffff::'", "'::ffff:1.2.3.4'"]), "hex(cast({} as binary(16)))", lambda v: v["hex"], needs="minimal"),
]
COLUMNS[-3].literal = lambda source: quoted(json.dumps({"a": [1, None, "\u00e9"]}, ensure_ascii=source.random() < 0.5))
