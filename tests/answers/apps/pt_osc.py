"""pt-online-schema-change: changes of tables while others write to them, with foreign keys."""

import os
import threading

import pymysql

CHANGES = {
    "add a column": ("parent", "ADD COLUMN extra INT NOT NULL DEFAULT 5", []),
    "add an index": ("parent", "ADD KEY by_text (t, id)", []),
    "change a type": ("child", "MODIFY d DECIMAL(30,10)", []),
    "rebuild": ("parent", "FORCE", []),
    "children of the parent are altered": ("parent", "ADD COLUMN more INT", ["--alter-foreign-keys-method=rebuild_constraints"]),
    "drop a column": ("parent", "DROP COLUMN extra", ["--alter-foreign-keys-method=rebuild_constraints"]),
}


def install(place):
    """Debian's packages, unpacked."""
    place.need("perl")
    place.tool = os.path.join(place.debian("percona-toolkit"), "usr/bin/pt-online-schema-change")
    place.libraries = os.path.join(place.debian("libdbd-mysql-perl"), "usr/lib/x86_64-linux-gnu/perl5/5.36")


def run(place, server):
    """Each change: how it ended, and whether all that was written is there."""
    for statement in ("CREATE TABLE parent (id INT PRIMARY KEY AUTO_INCREMENT, t VARCHAR(100))",
                      "CREATE TABLE child (id INT PRIMARY KEY, parent INT, d DECIMAL(20,5), CONSTRAINT up FOREIGN KEY (parent) REFERENCES parent(id))",
                      "INSERT INTO parent (t) SELECT CONCAT('text ', seq) FROM seq_1_to_20000",
                      "INSERT INTO child SELECT seq, seq, seq FROM seq_1_to_20000"):
        server.query(statement)
    outcomes = {}
    for name, (table, change, options) in CHANGES.items():
        ended, written = threading.Event(), []
        writer = threading.Thread(target=write, args=(server, ended, written))
        before = server.query("SELECT COUNT(*) FROM parent")[0][0]
        writer.start()
        status = place.command("perl", place.tool, "--execute", f"--alter={change}", "--alter-foreign-keys-method=auto", *options, "--no-version-check",
                               "--max-load=Threads_running=1000", "--critical-load=Threads_running=1000", f"S={server.socket},u=root,D=test,t={table}",
                               env={**os.environ, "PERL5LIB": place.libraries}, check=False)
        ended.set()
        writer.join()
        after = server.query("SELECT COUNT(*) FROM parent")[0][0]
        outcomes[name] = "passed" if status == 0 and after - before == len(written) else f"status {status}, {after - before} of {len(written)} rows"
    outcomes["definition of parent"] = server.query("SHOW CREATE TABLE parent")[0][1].partition(") ENGINE")[0]
    outcomes["definition of child"] = server.query("SHOW CREATE TABLE child")[0][1].partition(") ENGINE")[0]
    outcomes["orphans"] = str(server.query("SELECT COUNT(*) FROM child LEFT JOIN parent ON parent = parent.id WHERE parent.id IS NULL")[0][0])
    return outcomes


def write(server, ended, written):
    """Puts rows in until it is told to end; those that were acknowledged are counted."""
    connection = server.connect(autocommit=True)
    while not ended.is_set():
        try:
            with connection.cursor() as cursor:
                cursor.execute("INSERT INTO parent (t) VALUES ('written meanwhile')")
            written.append(1)
        except pymysql.err.MySQLError as error:
            if error.args[0] not in (1020, 1205, 1213, 1146):
                raise
    connection.close()
