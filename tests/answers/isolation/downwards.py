#!/usr/bin/env python3
"""Looks at the greatest keys beside writers that append: what was seen once must not be missed by a later look.

All loops are procedures, so that a second has tens of thousands of looks. Each way of looking has a table of its own with a writer and a reader. Prints the number
of looks and of steps back, a way each, and 'N passed, N failed'.
"""

import sys
import threading

from kit.options import parser
from kit.server import Server

OPTIONS = ["--teak-flush-log-at-trx-commit=0", "--innodb-flush-log-at-trx-commit=0"]
SCHEMA = "(id BIGINT PRIMARY KEY, k INT NOT NULL, place BIGINT NOT NULL, filler VARCHAR(40) NOT NULL, KEY (place), UNIQUE KEY (k, place))"
# How the greatest number is looked for.
LOOKS = {
    "greatest": "SELECT MAX(id) INTO found FROM {table}",
    "descending": "SELECT id INTO found FROM {table} ORDER BY id DESC LIMIT 1",
    "locking_row": "SELECT id INTO found FROM {table} ORDER BY id DESC LIMIT 1 LOCK IN SHARE MODE",
    "by_index": "SELECT MAX(place) INTO found FROM {table} FORCE INDEX (place)",
    "by_prefix": "SELECT MAX(place) INTO found FROM {table} FORCE INDEX (k) WHERE k = 7",
    "row_by_index": "SELECT place INTO found FROM {table} FORCE INDEX (k) WHERE k = 7 ORDER BY place DESC LIMIT 1",
}
# The greatest key first, then many below it, between others of the same part of a leaf's delta; some is rolled back.
WRITER = """CREATE PROCEDURE write_{table}(till DATETIME(6)) BEGIN
  DECLARE number BIGINT DEFAULT 0;
  SET SESSION tx_isolation = 'READ-COMMITTED';
  WHILE SYSDATE(6) < till DO
    SET number = number + 1000;
    INSERT INTO {table} VALUES (number, 7, number, REPEAT('x', number / 1000 % 40));
    START TRANSACTION;
    INSERT INTO {table} SELECT number - 1000 + seq, 7, number - 1000 + seq, '' FROM seq_1_to_400;
    IF number % 7000 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
    DELETE FROM {table} WHERE id BETWEEN number - 51000 AND number - 50000;
  END WHILE;
END"""
READER = """CREATE PROCEDURE look_{table}(till DATETIME(6)) BEGIN
  DECLARE found, latest, looks, back BIGINT DEFAULT 0;
  SET SESSION tx_isolation = 'READ-COMMITTED';
  WHILE SYSDATE(6) < till DO
    {look};
    SET looks = looks + 1;
    IF COALESCE(found, 0) < latest THEN SET back = back + 1; ELSE SET latest = COALESCE(found, 0); END IF;
  END WHILE;
  SELECT looks, back, latest;
END"""


def call(server, statement, answers):
    """Carries a procedure out in a connection of its own; its last answer, or the error, goes to `answers`."""
    try:
        answers.append(server.query(statement))
    except Exception as error:  # pylint: disable=broad-exception-caught
        answers.append(error)


def beside_a_writer(server, name, look, engine, seconds):
    """Whether no look of `name` steps back."""
    server.query(f"CREATE TABLE {name} {SCHEMA} ENGINE={engine}")
    server.query(WRITER.format(table=name))
    server.query(READER.format(table=name, look=look.format(table=name)))
    till, answers, threads = f"SYSDATE(6) + INTERVAL {seconds} SECOND", {"write": [], "look": []}, []
    for verb, answer in answers.items():
        threads.append(threading.Thread(target=call, args=(server, f"CALL {verb}_{name}({till})", answer)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    failed = [answer[0] for answer in answers.values() if isinstance(answer[0], Exception)]
    if failed:
        print(f"FAILED: {engine} {name}: {failed[0]}", flush=True)
        return False
    looks, back, latest = answers["look"][0][0]
    good = back == 0 and latest > 0
    print(f"{'ok' if good else 'FAILED'}: {engine} {name}: {looks} looks beside {latest // 1000} rounds, {back} steps back", flush=True)
    return good


def main():
    """All ways, one after the other, each for its part of the time."""
    options = parser(__doc__, engine='Teak')
    options.add_argument("--seconds", type=float, default=3, help="in all")
    arguments = options.parse_args()
    server, results = Server(arguments.directory, arguments.plugin_dir), []
    server.install()
    server.start(OPTIONS)
    try:
        server.query("CREATE DATABASE IF NOT EXISTS test", database=None)
        for name, look in LOOKS.items():
            results.append(beside_a_writer(server, name, look, arguments.engine, arguments.seconds / len(LOOKS)))
    finally:
        server.kill()
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
