"""MediaWiki whose texts are in external storage: tables `blobs` of two clusters. Written by its own scripts, moved, compressed, deleted and undeleted by them,
and after each step read back through its API and compared with what was written. recompressTracked.php is left out: that of MediaWiki 1.39 fails on
InnoDB, too (its child processes refuse their options, and have a transaction open where external storage wants none).

On Teak all of it is done once more with the table options OPTIONS, if the server has them, and the steps are compared with those without."""

import collections
import hashlib
import os
import subprocess
import time

import pymysql

from kit.server import free_port

import mediawiki_place
import wiki_reader
import wiki_texts
from mediawiki_place import Wiki

# Table options that the second form of the test gives to the tables of blobs.
OPTIONS = "SIMILARITY=YES RECOMPRESS=YES"
UNKNOWN_OPTION = 1911
CLUSTERS = ("cluster22", "cluster23")
COPIES = {cluster: f"{cluster}_copy" for cluster in CLUSTERS}
SETTINGS = """
$wgCompressRevisions = true;
$wgMainCacheType = $wgParserCacheType = $wgMessageCacheType = CACHE_NONE;
$wgJobRunRate = 0;
$wgAPIMaxResultSize = 32 << 20;
foreach ( [ 'apihighlimits', 'deletedhistory', 'deletedtext' ] as $right ) {
    $wgGroupPermissions['*'][$right] = true;
}
$wgExternalStores = [ 'DB' ];
$wgDefaultExternalStore = getenv( 'TEXT_INSIDE' ) ? false : [ %(stores)s ];
foreach ( [ %(clusters)s ] as $cluster ) {
    $wgExternalServers[$cluster] = [ [
        'host' => '127.0.0.1:%(port)d', 'user' => 'root', 'password' => '', 'dbname' => $cluster, 'type' => 'mysql', 'load' => 1,
    ] ];
}
"""


def install(place):
    """Debian's packages of MediaWiki, PHP and the documentation that is the wiki's text, unpacked."""
    mediawiki_place.install(place)
    for package in wiki_texts.PACKAGES:
        place.debian(package)


def run(place, server):
    """What came of each step; for Teak with and without OPTIONS."""
    pages = wiki_texts.histories(place)
    outcomes = Course(place, server, pages, "").go()
    if place.engine != "Teak":
        return outcomes
    refusal = refused(server, OPTIONS)
    if refusal:
        print(f"mediawiki_external: the form with {OPTIONS} is skipped: the server says {refusal}", flush=True)
        return outcomes
    again = Course(place, server, pages, OPTIONS).go()
    for step in outcomes.keys() | again.keys():
        alike = outcomes.get(step) == again.get(step)
        outcomes[f"{step}, {OPTIONS}"] = "passed" if alike else f"{again.get(step, 'nothing')}, and without {outcomes.get(step, 'nothing')}"
    return outcomes


def refused(server, options):
    """What the server says if it does not know table options; None if it does. By default an unknown one is an error, and a warning with
    IGNORE_BAD_TABLE_OPTIONS."""
    try:
        server.query(f"CREATE TABLE probe (a INT PRIMARY KEY) ENGINE=Teak {options}", init_command="SET sql_mode = 'STRICT_TRANS_TABLES'")
    except pymysql.err.MySQLError as error:
        if error.args[0] == UNKNOWN_OPTION:
            return error.args[1]
        raise
    server.query("DROP TABLE probe")
    return None


class Course:
    """One wiki from its installation to the end. `written` is what it must have: {title: texts}."""

    def __init__(self, place, server, pages, options):
        self.place, self.server, self.options = place, server, options
        titles = list(pages)
        # Every third page is written to the wiki's own table first, and of the special ones `Short`.
        inside = {title for number, title in enumerate(titles) if number % 3 == 0} | {"Short"}
        self.inside = {title: pages[title] for title in titles if title in inside}
        self.outside = {title: pages[title] for title in titles if title not in inside}
        self.written = {}
        self.outcomes = {}
        self.seconds = collections.defaultdict(float)
        self.wiki = self.api = None

    def go(self):
        """All steps; what came of them."""
        self.create()
        with wiki_reader.served(self.place, self.wiki, free_port()) as self.api:
            for step in (self.write, self.compress, self.move, self.delete, self.keep, self.write_again):
                step()
        self.report()
        outcomes = {step: "passed" if outcome == 0 else str(outcome) for step, outcome in self.outcomes.items()}
        # What fails on both engines is no difference, but then this compares less than it says.
        for step, outcome in outcomes.items():
            if outcome != "passed" and not outcome.startswith("rows: "):
                print(f"mediawiki_external:   {step}: {outcome}", flush=True)
        return outcomes

    def create(self):
        """The wiki and its clusters."""
        for database in (mediawiki_place.DATABASE, *CLUSTERS, *COPIES.values()):
            self.server.query(f"DROP DATABASE IF EXISTS {database}", database=None)
        self.wiki = Wiki(self.place, self.server)
        self.outcomes.update(self.wiki.create())
        with open(os.path.join(self.wiki.root, "maintenance/storage/blobs.sql"), encoding="utf-8") as definition:
            table = definition.read().replace("/*$wgDBprefix*/", "").replace("ENGINE=InnoDB", f"ENGINE={self.place.engine} {self.options}")
        for cluster in CLUSTERS:
            self.server.query(f"CREATE DATABASE {cluster}", database=None)
            self.server.query(table, database=cluster)
        quoted = {"clusters": ", ".join(f"'{cluster}'" for cluster in CLUSTERS), "stores": ", ".join(f"'DB://{cluster}'" for cluster in CLUSTERS)}
        with open(os.path.join(self.wiki.root, "LocalSettings.php"), "a", encoding="utf-8") as out:
            out.write(SETTINGS % {**quoted, "port": self.server.port})

    def script(self, step, name, *arguments, **settings):
        """Runs one of MediaWiki's scripts as a step, and reads all back."""
        self.outcomes[step] = self.wiki.script(name, *arguments, **settings)
        self.read(step)

    def read(self, step):
        """Compares all that the API gives with what was written."""
        began = time.monotonic()
        found = wiki_reader.all_revisions(self.api)
        self.seconds["reading"] += time.monotonic() - began
        self.seconds["readings"] += 1
        found.pop("Main Page", None)
        self.outcomes[f"{step}: all revisions"] = difference(found, self.written)

    def count(self, step, where):
        """How many rows of the wiki's own table of texts are of some kind, as an outcome that is compared."""
        self.outcomes[f"{step}: rows"] = f"rows: {self.wiki.query(f'SELECT COUNT(*) FROM text WHERE {where}')[0][0]}"

    def write(self):
        """Two dumps, one into the wiki's own table and one into the clusters; then edits."""
        for name, pages, environment in (("inside", self.inside, {"TEXT_INSIDE": "1"}), ("outside", self.outside, {})):
            wiki_texts.write_dump(self.place.path(f"{name}.xml"), pages)
            self.written.update({title: list(texts) for title, texts in pages.items()})
            self.script(f"import {name}", "importDump", self.place.path(f"{name}.xml"), env={**os.environ, **environment})
            self.count(f"import {name}", "old_flags LIKE '%external%'")
        counts = [len(blobs) for blobs in self.blobs(CLUSTERS).values()]
        self.outcomes["both clusters have texts"] = 0 if all(counts) else f"blobs: {counts}"
        self.edit("edits")

    def edit(self, step):
        """Edits by importTextFiles.php and edit.php."""
        texts = {title: f"{self.written[title][-1]}\n\n{step} of {title}".strip() for title in list(self.outside)[:60:2]}
        for title, text in texts.items():
            self.written[title].append(text)
        self.script(f"{step} by files", "importTextFiles", "--overwrite", "--user=Admin", *wiki_texts.write_files(self.place.path("texts"), texts))
        for title in list(self.outside)[1:20:4]:
            self.written[title].append(f"{step}: {title}\n\n{self.written[title][-1]}")
            self.outcomes[f"{step}: {title}"] = self.wiki.script("edit", "--user=Admin", title, input=self.written[title][-1].encode())
        self.read(f"{step} by hand")

    def compress(self):
        """compressOld.php packs old revisions of pages, a third into a cluster and a third in the wiki's own table."""
        numbers = [row[0] for row in self.wiki.query("SELECT page_id FROM page WHERE page_title <> 'Main_Page' ORDER BY page_id")][:len(self.inside)]
        third = len(numbers) // 3
        for step, part, more in (("compress outside", numbers[:third], [f"--extdb={CLUSTERS[0]}"]), ("compress inside", numbers[third:2 * third], [])):
            self.script(step, "storage/compressOld", "-t", "concat", "-s", str(part[0]), "-n", str(part[-1]), *more)
            self.count(step, "old_flags LIKE '%object%' OR old_text REGEXP '^DB://.*/.*/'")

    def move(self):
        """moveToExternal.php moves what is left in the wiki's own table, packed revisions too; resolveStubs.php lets the others of a pack point to it."""
        self.script("move", "storage/moveToExternal", "DB", CLUSTERS[1])
        self.count("move", "old_flags LIKE '%external%'")
        self.script("stubs", "storage/resolveStubs")
        self.count("stubs", "old_flags LIKE '%external%'")

    def delete(self):
        """deleteBatch.php and undelete.php; the texts of deleted pages are read meanwhile."""
        titles = [*list(self.inside)[::6], *list(self.outside)[::9], "Letters"]
        with open(self.place.path("delete.txt"), "w", encoding="utf-8") as out:
            out.write("\n".join(titles) + "\n")
        deleted = {title: self.written.pop(title) for title in dict.fromkeys(titles)}
        self.script("delete", "deleteBatch", self.place.path("delete.txt"))
        self.outcomes["delete: deleted revisions"] = difference(wiki_reader.deleted_revisions(self.api), deleted)
        for title in deleted:
            self.outcomes[f"undelete {title}"] = self.wiki.script("undelete", title)
        self.written.update(deleted)
        self.read("undelete")
        self.outcomes["undelete: deleted revisions"] = difference(wiki_reader.deleted_revisions(self.api), {})
        for title in list(deleted)[:5]:
            self.outcomes[f"undelete {title}: by title"] = difference(wiki_reader.revisions_of(self.api, title), {title: deleted[title]})

    def blobs(self, databases):
        """{database: {blob_id: its SHA-256}}."""
        found = {}
        for database in databases:
            rows = self.server.query("SELECT blob_id, blob_text FROM blobs", database=database)
            found[database] = {number: hashlib.sha256(blob).hexdigest() for number, blob in rows}
        return found

    def keep(self):
        """What is done to the tables of blobs leaves their content as it is."""
        before = self.blobs(CLUSTERS)

        def unchanged(step):
            self.outcomes[f"{step}: blobs"] = 0 if self.blobs(CLUSTERS) == before else "other blobs than before"

        self.server.stop()
        self.server.start(self.server.options)
        unchanged("restart")
        self.server.kill()
        self.server.start(self.server.options)
        unchanged("kill")
        for statement in ("CHECK TABLE blobs EXTENDED", "OPTIMIZE TABLE blobs", "CHECK TABLE blobs EXTENDED"):
            for cluster in CLUSTERS:
                rows = self.server.query(statement, database=cluster)
                self.outcomes[f"{statement} of {cluster}"] = 0 if rows[-1][2:] == ("status", "OK") else rows
            unchanged(statement)
        for cluster, copy in COPIES.items():
            self.server.query(f"CREATE DATABASE {copy}", database=None)
            own = ["--no-defaults", f"--socket={self.server.socket}", "--user=root"]
            dump = subprocess.run(["mariadb-dump", *own, cluster, "blobs"], stdout=subprocess.PIPE, check=True).stdout
            subprocess.run(["mariadb", *own, copy], input=dump, check=True)
            options = self.server.query(f"SELECT CREATE_OPTIONS FROM information_schema.TABLES WHERE TABLE_NAME = 'blobs' AND TABLE_SCHEMA IN ('{cluster}', '{copy}')")
            self.outcomes[f"dump of {cluster}: table options"] = 0 if options[0] == options[1] else options
        self.outcomes["dumps: blobs"] = 0 if list(self.blobs(COPIES.values()).values()) == list(before.values()) else "other blobs than were dumped"
        self.read("after all that")

    def write_again(self):
        """Edits go on."""
        self.edit("later edits")

    def report(self):
        """Sizes and times, for information only."""
        rows = self.server.query("SELECT TABLE_SCHEMA, TABLE_ROWS, DATA_LENGTH, DATA_FREE FROM information_schema.TABLES WHERE TABLE_NAME = 'blobs' "
                                 f"AND TABLE_SCHEMA IN {CLUSTERS} ORDER BY 1", database=None)
        written = sum(len(text.encode()) for texts in self.written.values() for text in texts)
        print(f"mediawiki_external: {self.place.engine} {self.options}".rstrip() + f": {sum(map(len, self.written.values()))} revisions of {len(self.written)} pages, "
              f"{written} bytes of text; reading all takes {self.seconds['reading'] / self.seconds['readings']:.1f} s", flush=True)
        for database, count, length, free in rows:
            print(f"mediawiki_external:   {database}.blobs: about {count} rows, {length} bytes, {free} free", flush=True)


def difference(found, written):
    """0 if the revisions that the API gave are those that were written, else where they differ first."""
    if found.keys() != written.keys():
        return f"pages: {sorted(found.keys() ^ written.keys())[:5]} are on one side only"
    for title, texts in written.items():
        if len(found[title]) != len(texts):
            return f"{title}: {len(found[title])} revisions, written were {len(texts)}"
        for number, ((revision, content, sha1), text) in enumerate(zip(found[title], texts)):
            if content != text:
                return f"{title}, text {number}, revision {revision}: {str(content)[:80]!r}, written was {text[:80]!r}"
            if sha1 != hashlib.sha1(text.encode()).hexdigest():
                return f"{title}, text {number}, revision {revision}: SHA-1 {sha1}"
    return 0
