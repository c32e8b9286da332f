"""Reads a wiki through MediaWiki's API, which PHP's own web server serves on the loopback interface."""

import contextlib
import json
import socket
import subprocess
import time
import urllib.parse
import urllib.request

START_SECONDS = 60
# With the right `apihighlimits`, to which this is the most that the API gives at once.
BATCH = 500


@contextlib.contextmanager
def served(place, wiki, port):
    """PHP's web server for the wiki, as long as it is needed; the address of the API."""
    command = [*place.interpreter, "-S", f"127.0.0.1:{port}", "-t", wiki.root]
    with open(place.path(f"log-{place.engine}-api.txt"), "a", encoding="utf-8") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=wiki.root)
        try:
            began = time.monotonic()
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    if server.poll() is not None or time.monotonic() - began > START_SECONDS:
                        raise RuntimeError(f"PHP's web server does not answer: see {log.name}") from None
                    time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/api.php"
        finally:
            server.terminate()
            server.wait()


def query(address, **parameters):
    """All parts of an answer to action=query, one after the other."""
    following = {}
    while True:
        form = {"action": "query", "format": "json", "formatversion": 2, **parameters, **following}
        with urllib.request.urlopen(f"{address}?{urllib.parse.urlencode(form)}", timeout=600) as answer:
            found = json.load(answer)
        if "error" in found or "warnings" in found:
            raise ValueError(f"the API answers {form} with {found.get('error') or found.get('warnings')}")
        yield found["query"]
        if "continue" not in found:
            return
        following = found["continue"]


def revisions(pages):
    """{title: [(number, text, SHA-1 of the text as the wiki has it in its own table), ...]} out of pages of an answer, oldest first. A text that the wiki
    cannot read is None."""
    texts = {}
    for page in pages:
        for revision in page.get("revisions", ()):
            content = revision["slots"]["main"].get("content")
            texts.setdefault(page["title"], []).append((revision["revid"], content, revision["sha1"]))
    return {title: sorted(found) for title, found in texts.items()}


def all_revisions(address):
    """Revisions of all pages."""
    parts = query(address, list="allrevisions", arvprop="ids|content|sha1", arvslots="main", arvlimit=BATCH, arvdir="newer")
    return revisions(page for part in parts for page in part["allrevisions"])


def deleted_revisions(address):
    """Revisions of all pages that are deleted."""
    parts = query(address, list="alldeletedrevisions", adrprop="ids|content|sha1", adrslots="main", adrlimit=BATCH, adrdir="newer")
    return revisions(page for part in parts for page in part["alldeletedrevisions"])


def revisions_of(address, title):
    """Revisions of one page, asked for by its title."""
    parts = query(address, titles=title, prop="revisions", rvprop="ids|content|sha1", rvslots="main", rvlimit=BATCH, rvdir="newer")
    return revisions(page for part in parts for page in part["pages"])
