"""What a server has of a database, whether its parts agree, and which files belong to nothing."""

import os
import re

import pymysql

from kit.asking import rows

# What the server's own recovery of partition DDL forgets, whatever the engine: the list of partitions beside the
# definition that it removes.
SERVER_LEAVES = re.compile(r"#sql-alter-[-0-9a-f]+\.par")
# Far from every number that a test writes.
ELSEWHERE = 100_000_000


def columns_of(connection, database, table):
    return rows(connection, "SELECT column_name, data_type FROM information_schema.columns"
                f" WHERE table_schema = '{database}' AND table_name = '{table}' ORDER BY ordinal_position")


def indexes_of(connection, database, table):
    """Name, whether it is unique, columns, what SHOW INDEX says of it ('disabled'), and whether the optimizer must not use it."""
    return rows(connection, "SELECT index_name, non_unique = 0, GROUP_CONCAT(column_name ORDER BY seq_in_index), MAX(comment), MAX(ignored) = 'YES' FROM information_schema.statistics"
                f" WHERE table_schema = '{database}' AND table_name = '{table}' GROUP BY index_name, non_unique ORDER BY index_name")


def digest(connection, database, table, hint=""):
    """Number of rows, and something that is another for other rows."""
    names = ", ".join(f"`{name}`" for name, _ in columns_of(connection, database, table))
    return rows(connection, f"SELECT COUNT(*), COALESCE(BIT_XOR(CRC32(CONCAT_WS(',', {names}))), 0) FROM `{database}`.`{table}` {hint}")[0]


def state_of(connection, database):
    """All that statements of a case can change: by table its definition, its rows, and which indexes are disabled."""
    found = {}
    for table, kind in rows(connection, f"SHOW FULL TABLES FROM `{database}`"):
        definition = rows(connection, f"SHOW CREATE TABLE `{database}`.`{table}`")[0][1]
        disabled = tuple(name for name, _, _, comment, _ in indexes_of(connection, database, table) if comment)
        found[table] = (kind, re.sub(r" AUTO_INCREMENT=\d+", "", definition), digest(connection, database, table), disabled)
    return found


def check_index(connection, database, table, index, lead, of):
    """The index has the rows that the table has."""
    start = "> -2147483648" if dict(columns_of(connection, database, table))[lead] in ("int", "bigint") else ">= ''"
    hint = f"FORCE INDEX (`{index}`) WHERE `{lead}` {start}"
    plan = rows(connection, f"EXPLAIN SELECT * FROM `{database}`.`{table}` {hint}")[0]
    # An empty table is not looked at with any index.
    if plan[5] != index and of[0] > 1:
        raise AssertionError(f"{database}.{table}: index {index} cannot be used: {plan}")
    found = digest(connection, database, table, hint)
    if found != of:
        raise AssertionError(f"{database}.{table}: index {index} has {found}, the table {of}")


def check_unique(connection, database, table, index, unique_columns):
    """No two rows have one key, and none can be written: another row, with the key of one that is there, is refused because of this key."""
    generated = {name for name, in rows(connection, "SELECT column_name FROM information_schema.columns"
                                        f" WHERE table_schema = '{database}' AND table_name = '{table}' AND generation_expression IS NOT NULL")}
    names = [name for name, _ in columns_of(connection, database, table) if name not in generated]
    kinds = dict(columns_of(connection, database, table))
    listed = ", ".join(f"`{name}`" for name in unique_columns)
    twice = rows(connection, f"SELECT {listed}, COUNT(*) FROM `{database}`.`{table}` USE INDEX () GROUP BY {listed} HAVING COUNT(*) > 1")
    if twice:
        raise AssertionError(f"{database}.{table}: duplicates in unique index {index}: {twice[:3]}")
    values = [f"`{name}`" if name in unique_columns or kinds[name] == "varchar" else f"`{name}` + {ELSEWHERE}" for name in names]
    try:
        with connection.cursor() as cursor:
            written = cursor.execute(f"INSERT INTO `{database}`.`{table}` ({', '.join(f'`{name}`' for name in names)}) SELECT {', '.join(values)} FROM `{database}`.`{table}` LIMIT 1")
        if written:
            raise AssertionError(f"{database}.{table}: unique index {index} took a key twice")
    except pymysql.err.IntegrityError as error:
        of_these = [name for name, is_unique, columns, _, _ in indexes_of(connection, database, table)
                    if is_unique and set(columns.split(",")) <= set(unique_columns)]
        if error.args[0] != 1062 or not any(error.args[1].endswith(f"'{name}'") for name in of_these):
            raise
    finally:
        connection.rollback()


def check_tables(connection, database):
    """Each table is whole, and its indexes agree with its rows."""
    for table, kind in rows(connection, f"SHOW FULL TABLES FROM `{database}`"):
        if kind == "SEQUENCE":
            continue
        verdict = rows(connection, f"CHECK TABLE `{database}`.`{table}` EXTENDED")
        if verdict[-1][3] != "OK":
            raise AssertionError(f"CHECK TABLE {database}.{table}: {verdict}")
        of = digest(connection, database, table)
        for index, is_unique, columns, comment, is_ignored in indexes_of(connection, database, table):
            columns = columns.split(",")
            if comment:
                continue
            if not is_ignored:
                check_index(connection, database, table, index, columns[0], of)
            if is_unique and (index == "PRIMARY" or "id" not in columns):
                check_unique(connection, database, table, index, columns)


def strangers(connection, data):
    """Files of the data directory that belong to no table: a list of texts."""
    found = []
    for database in sorted(os.listdir(data)):
        if not database.startswith("ddl_") or not os.path.isdir(os.path.join(data, database)):
            continue
        names = {name for name, in rows(connection, f"SHOW TABLES FROM `{database}`")}
        for name in sorted(os.listdir(os.path.join(data, database))):
            if name == "db.opt" or SERVER_LEAVES.fullmatch(name) or re.split(r"\.|#P#", name)[0] in names:
                continue
            found.append(f"{database}/{name}")
    return found


def tables_left(connection, database):
    """Intermediate tables of an ALTER that the engine has."""
    found = rows(connection, "SELECT DISTINCT table_name FROM information_schema.TEAK_TABLES"
                 f" WHERE table_schema = '{database}' AND table_name LIKE '#sql-%'")
    return [f"{database}/{name}" for name, in found]


def engine_strangers(connection, data):
    """Tables that Teak has and the server has not, or the other way round, and files that belong to no table of Teak."""
    of_engine = {tuple(row) for row in
                 rows(connection, "SELECT DISTINCT table_schema, table_name FROM information_schema.TEAK_TABLES")}
    files = [name for name in os.listdir(os.path.join(data, "#teak")) if re.fullmatch(r"s[1-9]\d*\.teak", name)]
    found = []
    if len(files) != len(of_engine):
        found.append(f"{len(files)} files of {len(of_engine)} tables: {sorted(files)} {sorted(of_engine)}")
    bases = {(database, table.split("#P#")[0]) for database, table in of_engine if database.startswith("ddl_")}
    of_server = {tuple(row) for row in rows(connection, "SELECT table_schema, table_name FROM information_schema.tables"
                                            " WHERE table_schema LIKE 'ddl\\_%' AND engine = 'Teak'")}
    if bases != of_server:
        found.append(f"only the engine has {sorted(bases - of_server)}, only the server {sorted(of_server - bases)}")
    return found
