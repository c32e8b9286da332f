"""mydumper and myloader: a database is dumped, and loaded under another name."""

import shutil


def install(place):
    """scripts/setup.sh --test has installed them: tests/tools/load uses them, too."""
    place.need("mydumper", "myloader")


def run(place, server):
    """The checksums of what was loaded."""
    for statement in (
            "CREATE TABLE parent (id INT PRIMARY KEY AUTO_INCREMENT, t VARCHAR(100), b LONGBLOB, KEY (t))",
            "CREATE TABLE child (id INT PRIMARY KEY, parent INT, d DECIMAL(20,5), j JSON, v INT AS (id * 2) VIRTUAL, FOREIGN KEY (parent) REFERENCES parent(id) ON DELETE CASCADE)",
            "CREATE TABLE parts (id INT, day DATE, PRIMARY KEY (id, day)) PARTITION BY RANGE (YEAR(day)) (PARTITION p0 VALUES LESS THAN (2020), PARTITION p1 VALUES LESS THAN MAXVALUE)",
            "CREATE TABLE no_key (a INT, b TEXT)",
            "CREATE VIEW both_of_them AS SELECT p.t, c.d FROM parent p JOIN child c ON c.parent = p.id",
            "INSERT INTO parent (t, b) SELECT CONCAT('text ', seq, ' ä😀'), REPEAT(CHAR(seq % 256), seq % 3000) FROM seq_1_to_20000",
            "INSERT INTO child (id, parent, d, j) SELECT seq, seq % 20000 + 1, seq / 7, JSON_OBJECT('n', seq) FROM seq_1_to_50000",
            "INSERT INTO parts SELECT seq, '2018-01-01' + INTERVAL seq DAY FROM seq_1_to_2000",
            "INSERT INTO no_key SELECT seq % 10, REPEAT('x', seq % 50) FROM seq_1_to_3000"):
        server.query(statement)
    outcomes = {}
    for name, options in (("plain", []), ("rows", ["--rows=1000"]), ("compressed", ["--compress", "--trx-consistency-only"])):
        dump = place.path("dump")
        shutil.rmtree(dump, ignore_errors=True)
        socket = f"--socket={server.socket}"
        dumped = place.command("mydumper", socket, "--user=root", "--database=test", f"--outputdir={dump}", "--triggers", "--routines", *options, check=False)
        loaded = place.command("myloader", socket, "--user=root", f"--directory={dump}", "--database=loaded", "--overwrite-tables", check=False)
        outcomes[f"{name}: ended"] = f"{dumped} {loaded}"
        for table in ("parent", "child", "parts", "no_key"):
            sums = server.query(f"CHECKSUM TABLE test.{table}, loaded.{table}")
            outcomes[f"{name}: {table}"] = "passed" if sums[0][1] == sums[1][1] else f"{sums}"
        engines = server.query("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'loaded' AND ENGINE = @@enforce_storage_engine")
        outcomes[f"{name}: tables of the engine"] = str(engines[0][0])
        outcomes[f"{name}: foreign keys"] = str(server.query("SELECT COUNT(*) FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'loaded'")[0][0])
    return outcomes
