"""Tests of `teak-bench external-store`: what is stored, read, refused and noticed."""

import json
import subprocess
import zlib

# Both engines hold the same: pages, revisions, and what each of the two tables has of them.
SMALL = ("--histories=10", "--revisions=4")
RECORDS = 40
IN_EACH = 20


def gzdeflate(text):
    """What PHP's function of that name writes."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15, 9)
    return deflate.compress(text) + deflate.flush()


class ExternalStore:
    """A part of the tests, which needs the server and `bench` of the others."""

    def external(self, engine, *arguments):
        """Runs it in the engine's database."""
        return self.bench("external-store", engine, f"--engine={engine}", *SMALL, *arguments)

    def outcome(self, engine, *arguments):
        """The same, where it must not fail; what it measured."""
        name = self.file(f"external-{engine}.json")
        status, output = self.external(engine, f"--json={name}", *arguments)
        assert status == 0 and "every value that was read was right" in output, output
        with open(name, encoding="utf-8") as file:
            return json.load(file)

    def values(self, engine):
        """What was loaded into both tables."""
        select = " UNION ALL ".join(f"SELECT {table} AS t, blob_id AS id, blob_text FROM blobs_cluster{table} WHERE blob_id <= {IN_EACH}" for table in (1, 2))
        return self.server.query(f"{select} ORDER BY t, id", database=engine.lower())

    def test_texts_are_the_same_in_all_engines_and_read_back_bit_for_bit(self):
        engines = ("Teak", "InnoDB")
        for engine in engines:
            measured = self.outcome(
                engine, "--replace", "--threads=3", "--group=400", "--runs=2", "--inserts=200", f"--pid={self.server.directory}/pid",
                f"--datadir={self.server.data}", f"--html={self.file('external.html')}")
            assert (measured["label"], measured["records"], measured["cold"]) == (engine, RECORDS, False)
            assert measured["load"]["rows_per_second"] > 0 and measured["disk_bytes"] > 0 and len(measured["last_curve"]) == 100
            assert measured["text_bytes"] > 2 * measured["value_bytes"] > 0
            for run in measured["runs"]:
                assert run["queries_per_second"] > 0 and run["times"]["count"] == 1200 and run["disk_bytes_per_query"] >= 0
            for times in [run["times"] for run in measured["runs"]]:
                assert 0 < times["p50"] <= times["p95"] <= times["p99"] <= times["p9999"] <= times["max"]
            inserts = measured["inserts"]
            assert inserts["verified"] == inserts["times"]["count"] == inserts["sent_times"]["count"]
            assert inserts["sent_times"]["max"] <= inserts["times"]["max"]
            tables = self.server.query("SELECT COUNT(*) FROM information_schema.tables WHERE table_name LIKE 'blobs%'", database=engine.lower())
            assert tables == ((0,),), tables
        both = [self.file(f"external-{engine}.json") for engine in engines]
        status, output = self.teak("report", *both, f"--html={self.file('external.html')}")
        assert status == 0, output
        with open(self.file("external.html"), encoding="utf-8") as file:
            page = file.read()
        assert all(engine in page for engine in engines) and page.count("<svg") == 3 and "<script" not in page
        with open(self.file("linkbench.json"), "w", encoding="utf-8") as file:
            json.dump({"format": "teak-linkbench-1"}, file)
        status, output = self.teak("report", both[0], self.file("linkbench.json"), f"--html={self.file('mixed.html')}")
        assert status == 2 and "linkbench.json" in output, output

    def test_values_are_what_php_makes_of_texts(self):
        kept = {}
        for engine in ("Teak", "InnoDB"):
            for form in ("gzip", "plain"):
                status, output = self.external(engine, "--runs=0", f"--form={form}", "--keep")
                assert status == 0, output
                kept[engine, form] = self.values(engine)
                self.server.query("DROP TABLE blobs_cluster1, blobs_cluster2", database=engine.lower())
        for form in ("gzip", "plain"):
            assert kept["Teak", form] == kept["InnoDB", form] and len(kept["Teak", form]) == RECORDS
        for packed, plain in zip(kept["Teak", "gzip"], kept["Teak", "plain"]):
            assert packed[2] == gzdeflate(plain[2])
        assert plain[2].decode("ascii").startswith("{{Infobox\n")

    def test_kept_tables_are_used_again_and_others_are_refused(self):
        quick = ("--threads=2", "--group=50", "--runs=1")
        self.outcome("Teak", "--keep", *quick)
        again = self.outcome("Teak", "--keep", *quick, f"--restart-command=echo once >> {self.file('restarted')}")
        assert again["load"] is None and again["records"] == RECORDS and again["cold"]
        with open(self.file("restarted"), encoding="utf-8") as file:
            assert file.read() == "once\n"
        for arguments, message in (((), "is there already: --replace"), (("--keep", "--seed=2"), "something else than is asked for"),
                                   (("--keep", "--restart-command=false"), "--restart-command failed")):
            status, output = self.external("Teak", *quick, *arguments)
            assert status == 2 and message in output, output
        self.server.query("DROP TABLE blobs_cluster2", database="teak")
        status, output = self.external("Teak", *quick, "--keep")
        assert status == 2 and "1 of 2 tables are there" in output, output
        self.outcome("Teak", "--replace", *quick)

    def test_wrong_and_lost_values_are_named(self):
        self.outcome("InnoDB", "--keep", "--runs=1", "--threads=1", "--group=10")
        for change, found in (("UPDATE blobs_cluster2 SET blob_text = 'x' WHERE blob_id = 3", "(1 bytes)"),
                              ("UPDATE blobs_cluster2 SET blob_text = NULL WHERE blob_id = 3", "NULL"),
                              ("DELETE FROM blobs_cluster2 WHERE blob_id = 3", "0 rows")):
            self.server.query(change, database="innodb")
            # So many that each id is among them.
            status, output = self.external("InnoDB", "--keep", "--runs=2", "--group=2000")
            assert status == 3 and "blobs_cluster2: the value of blob_id 3 is wrong" in output and found in output, output
        self.server.query("DROP TABLE blobs_cluster1, blobs_cluster2", database="innodb")

    def test_unknown_engines_and_options_are_refused(self):
        status, output = self.external("Teak", "--table-options=NO_SUCH_OPTION=1")
        assert status == 5 and "NO_SUCH_OPTION" in output, output
        status, output = self.bench("external-store", "Teak", "--engine=Nothing")
        assert status == 5 and "Nothing" in output, output

    def test_a_server_that_dies_ends_the_reads_with_an_error(self):
        command = [self.binary, "external-store", *SMALL, "--replace", "--group=1000000000", "--inserts=50", "--no-defaults",
                   f"--socket={self.server.socket}", "--user=root", "--database=teak"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
            try:
                # Reads have begun once there are records that were not loaded.
                while not self.inserted():
                    assert run.poll() is None, run.stdout.read()
                self.server.kill()
                output, _ = run.communicate(timeout=60)
            finally:
                run.kill()
        self.server.start(self.options)
        assert run.returncode == 5 and "connection to the server" in output, output

    def inserted(self):
        """Whether a table has more than was loaded."""
        there = self.server.query("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'teak' AND table_name = 'blobs_cluster2'")
        return there[0][0] == 1 and self.server.query("SELECT COUNT(*) FROM teak.blobs_cluster2")[0][0] > IN_EACH
