"""MediaWiki out of Debian's packages: unpacked, installed into a server, and its maintenance scripts."""

import os
import shutil

from place import Unavailable

EXTENSIONS = ("mysqlnd", "mysqli", "mbstring", "xml", "dom", "simplexml", "xmlreader", "tokenizer", "ctype", "fileinfo", "iconv", "intl", "posix", "calendar")
DATABASE = "wiki"


def install(place):
    """Debian's packages, unpacked."""
    place.interpreter = place.php(*EXTENSIONS)
    place.sources = [os.path.join(place.debian(package), "usr/share/mediawiki") for package in ("mediawiki", "mediawiki-classes")]


class Wiki:
    """A wiki in a directory of its own, whose database is `wiki` of a server. Making another one replaces it."""

    def __init__(self, place, server):
        self.place, self.server = place, server
        self.root = place.path("wiki")
        shutil.rmtree(self.root, ignore_errors=True)
        for source in place.sources:
            shutil.copytree(source, self.root, symlinks=True, dirs_exist_ok=True)
        for link in ("LocalSettings.php", "config", "extensions", "images"):
            os.unlink(os.path.join(self.root, link))
        for directory in ("extensions", "images", "cache"):
            os.makedirs(os.path.join(self.root, directory), exist_ok=True)

    def script(self, name, *arguments, **settings):
        """The exit status of one of MediaWiki's own scripts."""
        return self.place.command(*self.place.interpreter, f"maintenance/{name}.php", *arguments, cwd=self.root, check=False, **settings)

    def create(self):
        """Installs it, and makes its tables those of the place's engine; the exit statuses by step."""
        # FULLTEXT of the search index, which is written as a table of MyISAM, cannot be enforced.
        self.server.query("SET GLOBAL enforce_storage_engine = NULL", database=None)
        installed = self.script("install", "--dbtype=mysql", f"--dbserver=127.0.0.1:{self.server.port}", f"--dbname={DATABASE}", "--dbuser=root", "--dbpass=",
                                "--installdbuser=root", "--pass=longenough123", "--server=http://localhost", "--scriptpath=/w", "Wiki", "Admin")
        if installed:
            raise Unavailable("its installation failed: see the log")
        teak = os.path.join(self.place.directory, "..", "..", "bin", "teak")
        converted = self.place.command(teak, "convert", "--no-defaults", f"--socket={self.server.socket}", "--user=root", "--skip", f"--to={self.place.engine.lower()}",
                                       DATABASE, check=False)
        return {"install": installed, "convert": converted}

    def query(self, statement):
        """All rows of a statement on the wiki's database."""
        return self.server.query(statement, database=DATABASE)
