"""MediaWiki: installed with its tables in InnoDB, which `teak convert` makes tables of Teak; filled, edited and rebuilt by its maintenance scripts."""

import os
import shutil

from place import Unavailable

SCRIPTS = {
    "statistics": ["initSiteStats", "--update"], "links": ["refreshLinks"], "jobs": ["runJobs", "--maxjobs=2000"], "special pages": ["updateSpecialPages"],
    "search": ["rebuildtextindex"], "recent changes": ["rebuildrecentchanges"], "compress": ["storage/compressOld"], "orphans": ["purgeOldText", "--purge"],
    "update": ["update", "--quick"], "delete": ["deleteBatch", "delete.txt"], "undelete": ["undelete", "Page 3"], "old revisions": ["deleteOldRevisions", "--delete"],
}


def install(place):
    """Debian's packages, unpacked."""
    place.interpreter = place.php("mysqlnd", "mysqli", "mbstring", "xml", "dom", "simplexml", "xmlreader", "tokenizer", "ctype", "fileinfo", "iconv", "intl", "posix", "calendar")
    place.sources = [os.path.join(place.debian(package), "usr/share/mediawiki") for package in ("mediawiki", "mediawiki-classes")]


def run(place, server):
    """How each script ended, and what the pages are in the end."""
    # FULLTEXT of the search index, which is written as a table of MyISAM, cannot be enforced.
    server.query("SET GLOBAL enforce_storage_engine = NULL", database=None)
    root = place.path("wiki")
    shutil.rmtree(root, ignore_errors=True)
    for source in place.sources:
        shutil.copytree(source, root, symlinks=True, dirs_exist_ok=True)
    for link in ("LocalSettings.php", "config", "extensions", "images"):
        os.unlink(os.path.join(root, link))
    for directory in ("extensions", "images", "cache"):
        os.makedirs(os.path.join(root, directory), exist_ok=True)

    def script(name, *arguments, **settings):
        return place.command(*place.interpreter, f"maintenance/{name}.php", *arguments, cwd=root, check=False, **settings)

    outcomes = {"install": script("install", "--dbtype=mysql", f"--dbserver=127.0.0.1:{server.port}", "--dbname=wiki", "--dbuser=root", "--dbpass=", "--installdbuser=root",
                                  "--pass=longenough123", "--server=http://localhost", "--scriptpath=/w", "Wiki", "Admin")}
    if outcomes["install"]:
        raise Unavailable("its installation failed: see the log")
    teak = os.path.join(place.directory, "..", "..", "bin", "teak")
    outcomes["convert"] = place.command(teak, "convert", "--no-defaults", f"--socket={server.socket}", "--user=root", "--skip", f"--to={place.engine.lower()}", "wiki", check=False)
    outcomes["tables of the engine"] = server.query(f"SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'wiki' AND ENGINE = '{place.engine}'")[0][0]
    pages = place.path("pages")
    shutil.rmtree(pages, ignore_errors=True)
    os.makedirs(pages)
    for revision in (1, 2, 3):
        for number in range(60):
            with open(os.path.join(pages, f"Page {number}.txt"), "w", encoding="utf-8") as out:
                out.write(f"[[Page {number + 1}]] [[Category:C{number % 5}]] revision {revision} ä😀 " + f"word{number} " * 200)
        outcomes[f"import {revision}"] = script("importTextFiles", "--overwrite", "--user=Admin", *(os.path.join(pages, name) for name in sorted(os.listdir(pages))))
    with open(os.path.join(root, "delete.txt"), "w", encoding="utf-8") as out:
        out.write("Page 3\nPage 4\n")
    for name, arguments in SCRIPTS.items():
        outcomes[name] = script(*arguments)
    lines = place.output(*place.interpreter, "maintenance/dumpBackup.php", "--current", "--quiet", cwd=root)
    outcomes["pages"] = [line.strip() for line in lines if "<title>" in line or "<sha1>" in line or "<text" in line]
    for table in ("page", "category", "categorylinks", "pagelinks", "archive"):
        outcomes[f"rows of {table}"] = server.query(f"SELECT COUNT(*) FROM {table}", database="wiki")[0][0]
    return {step: "passed" if outcome == 0 and not step.startswith("rows") else str(outcome) for step, outcome in outcomes.items()}
