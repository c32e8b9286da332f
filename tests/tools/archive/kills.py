#!/usr/bin/python3
"""`teak archive`, killed at any moment of putting, removing and collecting: what was answered is there, what was removed does not come back, rows fit."""

import random
import subprocess
import sys
import time

from command import Archive, content

from kit.asking import expect
from kit.options import parser, seed


def killed(archive, chance, words, given=None):
    """Lines that a command wrote before it ended, or was killed, and whether it was."""
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        if given is not None:
            running.stdin.write(given)
        running.stdin.close()
        if chance.random() < 0.8:
            time.sleep(chance.random() ** 2 * 0.08)
            running.kill()
        lines = running.stdout.read().decode().split("\n")
        status = running.wait()
    return lines[:-1], status != 0


def main():
    arguments = parser(__doc__, rounds=40).parse_args()
    chance = random.Random(seed())
    archive = Archive(arguments.teak, arguments.directory)
    archive.ok("init", "--grace", "0")
    there, gone, kills = {}, set(), 0
    for number in range(arguments.rounds):
        kind = chance.choice(["put", "put", "put", "rm", "gc"])
        if kind == "put":
            contents = [content(chance.randrange(20), chance.choice([0, 10, 3000, 200_000, 6_000_000])) for _ in range(chance.randrange(1, 6))]
            paths = [archive.file(f"{at}", each) for at, each in enumerate(contents)]
            lines, was_killed = killed(archive, chance, archive.words("put", *paths))
            there.update(zip(lines, contents))
        elif kind == "rm":
            victims = chance.sample(sorted(there), min(len(there), 3))
            _, was_killed = killed(archive, chance, archive.words("rm", *victims)) if victims else ([], False)
            if was_killed:
                # They are removed one after the other, each as a whole.
                left = set(archive.query(""))
                victims = [oid for oid in victims if oid not in left]
            gone.update(victims)
            for oid in victims:
                del there[oid]
        else:
            _, was_killed = killed(archive, chance, archive.words("gc"))
        kills += was_killed
        found = set(archive.query(""))
        assert not found & gone, f"round {number}: removed records came back"
        assert set(there) <= found, f"round {number}: {set(there) - found} were answered"
        # What was stored and not answered is there as a whole.
        for oid in chance.sample(sorted(found), min(len(found), 4)) + sorted(found - set(there)):
            data = archive.get(oid)
            if oid in there:
                assert data == there[oid], f"round {number}: {oid} has other bytes"
            there[oid] = data
        expect(archive.ok("check"), "", f"round {number}")
    archive.ok("gc")
    assert "0 damaged" in archive.ok("scrub")
    expect(archive.ok("check"), "", "at the end")
    print(f"{arguments.rounds} rounds, {kills} kills, {len(there)} objects\n1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
