"""What a data directory has before its server is another one: tables of all kinds, and what is to be the same afterwards."""

import hashlib

ROWS = 5000
MADE = (
    # Keys in all collations' forms, large values, compression.
    "create table types (id int not null auto_increment primary key, t varchar(60) character set utf8mb4 collate utf8mb4_general_ci, u varchar(60) character set"
    " utf8mb3 collate utf8mb3_unicode_ci, l char(20) character set latin1, d decimal(20, 5), f double, ts timestamp(3) null, dt datetime(6), j json, b longblob,"
    " e enum('x', 'y'), s set('p', 'q'), n inet6, uu uuid, bits bit(9), y year, g int as (length(t) % 7) virtual, h int as (y + 1) stored, key (t), key (u, l), key (d),"
    " unique (dt, id), key (g), key (h), key (b(20))) {e}",
    f"insert into types (t, u, l, d, f, ts, dt, j, b, e, s, n, uu, bits, y) select concat('tÄ', seq % 100), concat('ß', seq % 50), concat('l', seq), seq / 7,"
    f" sqrt(seq), '2026-01-01' + interval seq second, '2026-01-01' + interval seq microsecond, json_object('a', seq), repeat(char(seq % 256), seq % 30000), 1 +"
    f" seq % 2, 1 + seq % 3, concat('::', seq % 100), uuid(), seq % 512, 1990 + seq % 50 from seq_1_to_{ROWS}",
    "create table parent (id int primary key, v int) {e}",
    "create table child (id int primary key, p int, constraint of_parent foreign key (p) references parent (id) on delete cascade on update set null) {e}",
    f"insert into parent select seq, seq from seq_1_to_{ROWS}",
    f"insert into child select seq, 1 + seq % 100 from seq_1_to_{ROWS}",
    "create table parts (id int, v int, primary key (id, v), key (v)) {e} partition by range (id) (partition a values less than (100), partition b values less than"
    " maxvalue)",
    f"insert into parts select seq, seq % 10 from seq_1_to_{ROWS}",
    "create table history (id int primary key, v int) {e} with system versioning",
    "insert into history select seq, seq from seq_1_to_500",
    "update history set v = v + 1 where id % 2",
    "create table no_key (v int, t text) {e}",
    f"insert into no_key select seq % 100, seq from seq_1_to_{ROWS}",
    "create table hashed (t text, unique (t)) {e}",
    "insert into hashed select concat('long ', seq) from seq_1_to_500",
    "create sequence s start with 5 {e}",
    "select nextval(s), nextval(s)",
    # Rows of older layouts.
    "create table layouts (id int primary key, a int) {e}",
    "insert into layouts select seq, seq from seq_1_to_1000",
    "alter table layouts add column b varchar(20) default 'b' first, algorithm=inplace",
    "insert into layouts (id, a) select seq, seq from seq_1001_to_2000",
    "alter table layouts drop column a, algorithm=inplace",
    "create table dense (id int primary key, t text) {e} compression='zstd' compression_level=9",
    f"insert into dense select seq, repeat(md5(seq % 100), 5) from seq_1_to_{ROWS}",
)
TABLES = ("types", "parent", "child", "parts", "history for system_time all", "no_key", "hashed", "layouts", "dense")


def make(server):
    """All of it, and a prepared transaction without a session."""
    for statement in MADE:
        server.query(statement.format(e="engine=Teak"))
    connection = server.connect()
    with connection.cursor() as cursor:
        for statement in ("xa start 'left'", "insert into parent values (-1, -1)", "xa end 'left'", "xa prepare 'left'"):
            cursor.execute(statement)
    connection.close()


def digest(server):
    """What each table has, also by two indexes: numbers and texts, as JSON gives them back."""
    found = {}
    for table in TABLES:
        rows = sorted(map(repr, server.query(f"select * from {table}")))
        found[table] = [len(rows), hashlib.sha256("\n".join(rows).encode()).hexdigest()]
    # By an index each.
    found["by t"] = [len(rows), repr(server.query("select count(*), min(id), max(id) from types force index (t) where t like 'tä1%'"))]
    found["by u"] = [0, repr(server.query("select count(*), min(id), max(id) from types force index (u) where u = 'SS1'"))]
    return found


def unsound(server, upgraded):
    """What CHECK TABLE finds. Time ends later since MariaDB 11.5, so that tables with history want to be written anew by mariadb-upgrade, whatever their engine."""
    names = ", ".join(table.split()[0] for table in TABLES if upgraded or "history" not in table)
    return [row for row in server.query(f"check table {names} extended") if row[3] != "OK"]
