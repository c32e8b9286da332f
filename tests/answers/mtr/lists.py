"""What the lists of tests say: which tests of MariaDB's suites are run, and why some print something else with Teak.

A group is a file GROUP.txt of the directory, with the name of a test in each line. Behind a test that differs there are
a colon and the names of reasons, separated by commas, which reasons.txt explains; words behind a semicolon are about
this test. A test may stand there with one of its combinations, behind a comma.
"""

import pathlib
import sys


def described(path):
    """The lines 'name: words' of a file."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.strip() and not line.startswith("#"):
            name, _, words = line.partition(":")
            if not words.strip():
                sys.exit(f"{path.name}: '{name}' has no reason")
            found[name.strip()] = words.strip()
    return found


def groups(directory):
    return sorted(path.stem for path in directory.glob("*.txt") if path.stem != "reasons")


def tests(directory, names):
    """The tests of groups (without names: of all), and why they may differ: {'main.xa': 'the reasons', 'gcol.x': ''}."""
    known = described(directory / "reasons.txt")
    found = {}
    for group in names or groups(directory):
        for line in (directory / f"{group}.txt").read_text().splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            name, colon, reasons = (part.strip() for part in line.partition(":"))
            keys, _, words = reasons.partition(";")
            keys = [key.strip() for key in keys.split(",")] if colon else []
            unknown = [key for key in keys if key not in known]
            if unknown or name in found:
                sys.exit(f"{group}.txt: '{name}' has unknown reasons {unknown}, or stands in the lists twice")
            found[name] = "; ".join([f"{key} ({known[key]})" for key in keys] + ([words.strip()] if words else []))
    return found


def main():
    directory, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:]
    whole = [name for name in wanted if name in groups(directory)]
    found = {name.partition(",")[0] for name in tests(directory, whole)} if whole or not wanted else set()
    everything = {name.partition(",")[0] for name in tests(directory, [])}
    for name in wanted:
        if name not in whole:
            if name not in everything:
                sys.exit(f"lists.py: there is no group and no test '{name}'")
            found.add(name)
    print("\n".join(sorted(found)))


if __name__ == "__main__":
    main()
