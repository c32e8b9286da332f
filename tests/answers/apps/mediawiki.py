"""MediaWiki: installed with its tables in InnoDB, which `teak convert` makes tables of Teak; filled, edited and rebuilt by its maintenance scripts."""

import os
import shutil

import mediawiki_place
from mediawiki_place import Wiki

SCRIPTS = {
    "statistics": ["initSiteStats", "--update"], "links": ["refreshLinks"], "jobs": ["runJobs", "--maxjobs=2000"], "special pages": ["updateSpecialPages"],
    "search": ["rebuildtextindex"], "recent changes": ["rebuildrecentchanges"], "compress": ["storage/compressOld"], "orphans": ["purgeOldText", "--purge"],
    "update": ["update", "--quick"], "delete": ["deleteBatch", "delete.txt"], "undelete": ["undelete", "Page 3"], "old revisions": ["deleteOldRevisions", "--delete"],
}
install = mediawiki_place.install


def run(place, server):
    """How each script ended, and what the pages are in the end."""
    wiki = Wiki(place, server)
    outcomes = wiki.create()
    outcomes["tables of the engine"] = wiki.query(f"SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'wiki' AND ENGINE = '{place.engine}'")[0][0]
    pages = place.path("pages")
    shutil.rmtree(pages, ignore_errors=True)
    os.makedirs(pages)
    for revision in (1, 2, 3):
        for number in range(60):
            with open(os.path.join(pages, f"Page {number}.txt"), "w", encoding="utf-8") as out:
                out.write(f"[[Page {number + 1}]] [[Category:C{number % 5}]] revision {revision} ä😀 " + f"word{number} " * 200)
        outcomes[f"import {revision}"] = wiki.script("importTextFiles", "--overwrite", "--user=Admin", *(os.path.join(pages, name) for name in sorted(os.listdir(pages))))
    with open(os.path.join(wiki.root, "delete.txt"), "w", encoding="utf-8") as out:
        out.write("Page 3\nPage 4\n")
    for name, arguments in SCRIPTS.items():
        outcomes[name] = wiki.script(*arguments)
    lines = place.output(*place.interpreter, "maintenance/dumpBackup.php", "--current", "--quiet", cwd=wiki.root)
    outcomes["pages"] = [line.strip() for line in lines if "<title>" in line or "<sha1>" in line or "<text" in line]
    for table in ("page", "category", "categorylinks", "pagelinks", "archive"):
        outcomes[f"rows of {table}"] = wiki.query(f"SELECT COUNT(*) FROM {table}")[0][0]
    return {step: "passed" if outcome == 0 and not step.startswith("rows") else str(outcome) for step, outcome in outcomes.items()}
