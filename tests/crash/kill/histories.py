#!/usr/bin/env python3
"""Kills a server that puts together large values which are alike (SIMILARITY=YES, RECOMPRESS=YES), and compares each value.

Clients append versions of pages, each gzipped as PHP does it, change and delete old ones; checkpoints and OPTIMIZE TABLE come often, so that the
server is killed while values are read, bundled, exchanged and given back. What a row has to hold follows from its columns. Prints 'N passed, N failed'.
"""

import random
import sys
import time
import zlib

from kit.asking import rows
from kit.server import attempt

from kill import Client, check_structures
from rounds import rounds

CLIENTS = 2
PAGES = 5
# Older versions are deleted, so that bundles lose values.
KEPT = 120
# How many values were with others, at the ends of rounds in which some were.
BUNDLED = []
SCHEMA = ("CREATE TABLE texts (id BIGINT AUTO_INCREMENT PRIMARY KEY, client INT, number INT, edition INT, body LONGBLOB,"
          " UNIQUE KEY (client, number)) ENGINE=Teak RECOMPRESS=YES SIMILARITY=YES")


def words(seed, count):
    source = random.Random(seed)
    return " ".join(f"w{source.randrange(4000)}" for _ in range(count))


BODIES = {(client, page): words(f"{client} {page}", 1500) for client in range(CLIENTS) for page in range(PAGES)}


def body(client, number, edition):
    """The text with that number of a client's: a version of one of its pages; editions differ in a few words."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    text = f"{words(number * 7 + edition, 20)} {BODIES[client, number % PAGES]} {edition}"
    return packer.compress(text.encode()) + packer.flush()


class Author(Client):
    """Appends versions; now and then it changes an old one, or has the table looked after."""

    def step(self, cursor, number):
        chance = self.random.random()
        if chance < 0.02:
            cursor.execute(self.random.choice(["SET GLOBAL teak_checkpoint_now = 1", "OPTIMIZE TABLE texts"]))
            cursor.fetchall()
        insert = "INSERT INTO texts (client, number, edition, body) VALUES (%s, %s, 0, _binary %s)"
        statements = [(insert, (self.number, number, body(self.number, number, 0)))]
        if number > KEPT and number % 2:
            statements.append(("DELETE FROM texts WHERE client = %s AND number < %s AND number %% 7 > 0", (self.number, number - KEPT)))
        if chance > 0.9 and number > 3:
            changed = self.random.randrange(max(1, number - KEPT + 5), number)
            change = "UPDATE texts SET edition = %s, body = _binary %s WHERE client = %s AND number = %s"
            statements.append((change, (number, body(self.number, changed, number), self.number, changed)))
        return attempt(self.connection, statements, self.random)


def check(server, authors):
    """Every row has what its columns say, and all that was acknowledged and not deleted is there."""
    connection = server.connect()
    numbers = {author.number: set() for author in authors}
    for client, number, edition, found in rows(connection, "SELECT client, number, edition, body FROM texts"):
        if found != body(client, number, edition):
            raise AssertionError(f"text {number} of client {client}, edition {edition}: another value of {len(found)} bytes")
        numbers[client].add(number)
    for author in authors:
        last = max(numbers[author.number], default=0)
        if not author.acknowledged <= last <= author.acknowledged + 1:
            raise AssertionError(f"client {author.number} was told {author.acknowledged}, found {last}")
        missing = set(range(max(1, last - KEPT + 2), last + 1)) - numbers[author.number]
        if missing:
            raise AssertionError(f"client {author.number} misses {sorted(missing)}")
        author.acknowledged = last
    verdict = rows(connection, "CHECK TABLE texts EXTENDED")
    if verdict[-1][3] != "OK":
        raise AssertionError(f"CHECK TABLE: {verdict}")
    bundled = rows(connection, "SELECT bundled_values FROM information_schema.teak_tables WHERE table_name = 'texts' AND tree = 0")[0][0]
    connection.close()
    return bundled


def one_round(server, teak, _, acknowledged, random_source):
    options = ["--teak-flush-log-at-trx-commit=1"]
    server.start(options)
    authors = [Author(server, n, acknowledged.get(n, 0), f"{random_source.random()}") for n in range(CLIENTS)]
    for author in authors:
        author.start()
    time.sleep(0.3 + random_source.random() * 2)
    server.kill()
    for author in authors:
        author.join()
        if author.failure is not None:
            raise AssertionError(f"client {author.number}: {author.failure!r}")
    server.start(options)
    bundled = check(server, authors)
    server.kill()
    check_structures(server, teak)
    acknowledged.update((author.number, author.acknowledged) for author in authors)
    if bundled:
        BUNDLED.append(bundled)
    return f"{sum(acknowledged.values())} commits, {bundled} values with others"


if __name__ == "__main__":
    sys.exit(rounds(__doc__, 8, [SCHEMA], one_round, lambda: None if BUNDLED else "nothing was put together"))
