"""Random tables: what the statements of a history are made for. A `Table` is what the generator believes of one; if a statement failed, or another did more
than was expected, statements for it fail on both sides alike, which is a test, too."""

import re

INTEGERS = ["0", "1", "2", "3", "4", "5", "6", "7", "9", "11", "-1", "100", "127"]
TEXTS = ["''", "'a'", "'A'", "'a '", "'b'", "'ab'", "'aB'", "'bbb'", "'abcde'", "'x'", "'xy'", "'zzz'", "'0'", "'12'", "'qqqqqqqqqqqq'", "'ß'", "'ä'"]
BYTES = ["''", "'a'", "'A'", "'b'", "x'00'", "x'0001'", "x'ff'", "'abc'", "x'6100'", "x'20'"]
DATES = ["'2020-01-01'", "'2020-02-29'", "'1999-12-31'", "'2021-06-15'", "'2038-01-01'"]
# Without fractions, which the server forgets where it looks by an index of a column that has none, with any engine.
MOMENTS = ["'2020-01-01 00:00:00'", "'2020-02-29 12:34:56'", "'1999-12-31 23:59:59'", "'2021-06-15 01:02:03'", "'2037-01-01 00:00:01'"]
TIMES = ["'00:00:00'", "'12:34:56.78'", "'-01:00:00'", "'838:59:59'", "'00:00:01'"]

# Name of the type, values, and what it is for those who choose columns: n(umbers), t(exts that a key may have whole),
# l(ong ones, of which a key has the beginning), d(ates), o(ther).
TYPES = [
    ("int", INTEGERS, "n"), ("int", INTEGERS, "n"), ("bigint", INTEGERS, "n"), ("bigint unsigned", INTEGERS[:10], "n"), ("smallint", INTEGERS, "n"),
    ("tinyint", INTEGERS, "n"), ("mediumint unsigned", INTEGERS[:10], "n"), ("decimal(6,2)", INTEGERS + ["1.25", "2.5", "-3.75"], "n"),
    ("double", INTEGERS + ["0.5", "1e3"], "n"), ("float", INTEGERS + ["0.5"], "n"), ("bit(7)", INTEGERS[:10], "o"), ("year", ["2000", "2001", "2020", "1999"], "o"),
    ("varchar(10)", TEXTS, "t"), ("varchar(10)", TEXTS, "t"), ("varchar(300)", TEXTS + ["repeat('long ', 50)"], "t"), ("char(5)", TEXTS, "t"),
    ("varchar(20) character set utf8mb4 collate utf8mb4_unicode_ci", TEXTS, "t"), ("varchar(12) character set latin1 collate latin1_bin", TEXTS[:15], "t"),
    ("varchar(12) character set utf8mb4 collate utf8mb4_nopad_bin", TEXTS, "t"), ("char(6) character set utf8mb4 collate utf8mb4_general_nopad_ci", TEXTS, "t"),
    ("char(4) character set ucs2", TEXTS[:12], "t"), ("varbinary(8)", BYTES, "t"), ("binary(4)", BYTES, "t"),
    ("tinytext", TEXTS, "l"), ("text", TEXTS + ["repeat('text', 500)", "repeat('w', 20000)"], "l"), ("blob", BYTES + ["repeat('b', 9000)"], "l"),
    ("mediumtext character set utf8mb4 collate utf8mb4_unicode_ci", TEXTS, "l"),
    ("date", DATES, "d"), ("datetime", MOMENTS, "d"), ("datetime(3)", [moment.replace(":56'", ":56.789'") for moment in MOMENTS], "d"), ("timestamp null", MOMENTS, "d"), ("time(2)", TIMES, "o"),
    ("enum('a','b','c','x')", ["'a'", "'b'", "'c'", "'x'", "1"], "o"), ("set('a','b','c')", ["''", "'a'", "'a,b'", "'c'", "5"], "o"),
    ("inet4", ["'10.0.0.1'", "'127.0.0.1'", "'0.0.0.0'"], "o"), ("inet6", ["'::1'", "'fe80::1'", "'::'"], "o"),
    ("uuid", ["'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000001'"], "o"),
]


class Column:
    """A column: its `definition` is its type and all that follows; `values` are literals that it may take."""

    def __init__(self, name, kind, nullable=True, generated=None, more=""):
        self.name, self.type, self.values, self.family = name, *kind
        self.nullable, self.generated, self.more = nullable, generated, more

    @property
    def definition(self):
        """As CREATE TABLE has it."""
        kind = self.type if self.nullable or self.type != "timestamp null" else "timestamp"
        if self.generated:
            return f"{self.name} {kind} {self.generated}"
        return f"{self.name} {kind}{'' if self.nullable else ' not null'}{self.more}"

    def value(self, source):
        """A literal, or NULL."""
        if self.nullable and source.random() < 0.15:
            return "null"
        return source.choice(self.values)


class Table:
    """What the generator knows of a table. `keys` are pairs of a name and names of columns, the first the primary key if there is one. `limited`: history goes to
    the next partition where one is full, and was put where it is by no copy."""

    def __init__(self, name):
        self.name, self.columns, self.keys, self.primary = name, [], [], []
        self.versioned = self.partitioned = self.limited = self.hashed = False
        self.parents, self.constraints = [], []

    def column(self, name):
        """The column of this name; None if there is none any more."""
        return next((column for column in self.columns if column.name == name), None)

    def stored(self):
        """Columns that INSERT gives values for."""
        return [column for column in self.columns if not column.generated]

    def is_spoiled(self):
        """Whether history is not for it: the server spoils a stored TEXT in that of a REPLACE, with every engine."""
        return any(column.family == "l" and "stored" in (column.generated or "") for column in self.columns)

    def numbers(self):
        """Columns of numbers."""
        return [column for column in self.columns if column.family == "n"]


def key_part(source, column):
    """A column as a key's part: the long ones by a prefix, other texts now and then."""
    prefix = f"({source.choice([1, 2, 5, 20])})" if column.family == "l" else ""
    if column.family == "t" and source.random() < 0.2:
        prefix = f"({source.choice([1, 2, 3])})"
    return f"{column.name}{prefix}{' desc' if source.random() < 0.12 else ''}"


def generated_column(source, table, name):
    """A column computed from another, or None."""
    base = source.choice(table.stored())
    where = source.choice(["virtual", "virtual", "stored"])
    if base.family == "n":
        expression = source.choice([f"{base.name} + 1", f"{base.name} * 2", f"coalesce({base.name}, 0)", f"-{base.name}"])
        kind = ("double" if base.type in ("double", "float") else "decimal(30,4)" if base.type.startswith("decimal") else "bigint", INTEGERS, "n")
    elif base.family in "tl" and "binary" not in base.type and "blob" not in base.type:
        expression = source.choice([f"concat({base.name}, 'x')", f"left({base.name}, 2)", f"upper({base.name})"])
        kind = ("varchar(400)", TEXTS, "t") if base.family == "t" else ("text", TEXTS, "l")
        if base.family == "l":
            expression = f"concat(left({base.name}, 20), '-')"
    else:
        return None
    return Column(name, kind, True, f"as ({expression}) {where}")


def references(source, name, child, parents):
    """A constraint on a column of `child` that is made for it, or None."""
    choices = [(parent, key) for parent in parents for key in parent.keys if key[1] and not parent.partitioned]
    if not choices:
        return None
    parent, key = source.choice(choices)
    columns = []
    for number, part in enumerate(key[1][: source.choice([1, 1, len(key[1])])]):
        model = parent.column(part)
        if model is None or model.family == "l" or model.generated:
            return None
        columns.append(Column(f"{name}{number or ''}", (model.type, model.values, model.family), source.random() < 0.85))
    child.columns += columns
    actions = ["", " on {0} restrict", " on {0} cascade", " on {0} cascade", " on {0} set null", " on {0} no action"]
    clause = f"foreign key ({', '.join(c.name for c in columns)}) references {parent.name} ({', '.join(key[1][: len(columns)])})"
    clause += source.choice(actions).format("delete") + source.choice(actions).format("update")
    child.parents.append(parent)
    return clause


def random_table(source, name, others, features):
    """A table, and the statement that makes it. `features` says what may come: `foreign`, `partitions`, `versioned`, `generated`."""
    table = Table(name)
    for number in range(source.randint(1, 4)):
        table.columns.append(Column(f"c{number}", source.choice(TYPES), source.random() < 0.75, None, ""))
    keys = []
    primary = Column("id", ("int", INTEGERS, "n"), False)
    shape = source.random()
    if shape < 0.5:
        table.columns.insert(0, primary)
        table.primary = ["id"]
    elif shape < 0.9:
        choice = source.choice([c for c in table.columns if c.family in "tno"] or [primary])
        if choice is primary:
            table.columns.insert(0, primary)
        choice.nullable = False
        table.primary = [choice.name]
        if source.random() < 0.3:
            second = source.choice(table.columns)
            if second.name != choice.name and second.family != "l":
                second.nullable = False
                table.primary.append(second.name)
    if table.primary:
        parts = [key_part(source, table.column(part)) for part in table.primary]
        keys.append(f"primary key ({', '.join(parts)})")
        if not any("(" in part for part in parts):
            table.keys.append(("primary", table.primary))
    if features["generated"] and source.random() < 0.4:
        column = generated_column(source, table, "g0")
        if column:
            table.columns.append(column)
    for number in range(source.choice([0, 1, 1, 2, 3])):
        parts = source.sample(table.columns, min(len(table.columns), source.choice([1, 1, 2, 3])))
        unique = "unique " if source.random() < 0.3 else ""
        texts = [key_part(source, part) for part in parts]
        keys.append(f"{unique}key k{number} ({', '.join(texts)})")
        if not any("(" in text for text in texts):
            table.keys.append((f"k{number}", [part.name for part in parts]))
    if source.random() < 0.15:
        table.columns.append(Column("ts", ("datetime", MOMENTS, "d"), True, None, " default '2000-01-01' on update current_timestamp"))
    if features["foreign"] and source.random() < 0.75:
        for number in range(source.choice([1, 1, 1, 2])):
            clause = references(source, f"f{number}", table, others + ([table] if table.primary and source.random() < 0.3 else []))
            if clause:
                table.constraints.append(f"{name}_ibfk_{len(table.constraints) + 1}")
                keys.append(clause)
    options = table_options(source, table, features)
    if table.partitioned and not table.limited:
        keys = [hashed(source, table, key) for key in keys]
    body = ", ".join([column.definition for column in table.columns] + keys)
    return table, f"create table {name} ({body}){options}"


def hashed(source, table, key):
    """A unique key that leaves out what partitions are chosen by, as only one USING HASH may: in both engines a hash that nobody sees. Any other as it is."""
    name, listed = re.match(r"(.*?) \((.*)\)$", key).groups()
    by = (table.primary or [table.columns[0].name])[0]
    if not name.startswith("unique") or by in re.findall(r"\w+", listed) or source.random() < 0.2:
        return key
    table.hashed = True
    table.keys = [known for known in table.keys if known[0] != name.split()[-1]]
    return f"{name} ({listed.replace(' desc', '')}) using hash"


def table_options(source, table, features):
    """What stands behind the parenthesis."""
    options = ""
    # InnoDB's rules leave orphans where a row of history is the child of another of the same table.
    if features["versioned"] and source.random() < 0.35 and not table.is_spoiled() and table not in table.parents:
        table.versioned = True
        options += " with system versioning"
    if features["partitions"] and not table.constraints and source.random() < (0.7 if table.versioned else 0.35):
        table.partitioned = True
        if table.versioned and source.random() < 0.7:
            table.limited = True
            return options + f" partition by system_time limit {source.choice([3, 3, 10, 1000])} partitions 3"
        column = table.column(table.primary[0]) if table.primary else table.columns[0]
        if column.family == "n" and column.type.split("(")[0].split()[0] in ("int", "bigint", "smallint", "tinyint", "mediumint"):
            options += source.choice([
                f" partition by hash ({column.name}) partitions 3",
                f" partition by range ({column.name}) (partition p0 values less than (3), partition p1 values less than (7), partition p2 values less than maxvalue)",
            ])
        elif column.family != "l":
            options += f" partition by key ({column.name}) partitions 2"
        else:
            table.partitioned = False
    return options
