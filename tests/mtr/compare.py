"""Compares what the same MariaDB tests printed with two engines, with the engines' names masked.

usage: compare.py --reference ENGINE --tested ENGINE [--suite NAME] [--without REGEX] [--again TREE TREE]
                  [--accept | --only-names] TREE TREE

The trees are those of run.sh, the reference's first; of the tests in the --again trees only those runs count. A test is
good when both engines print the same, or when expected-differences.txt gives a reason for a difference and
rdiff/<test>.rdiff has exactly that difference. --accept writes those files anew (for the tests that are listed),
--only-names prints the names of the tests that are not good. Otherwise prints the expected differences with their
reasons, each test that is not good with its difference, and at last 'N passed, N failed'.

The suite is storage_engine with its parts, which each engine runs as an overlay, and the files about differences are
those in tests/mtr; for another suite, which engines run as it is, they are in tests/NAME. Lines that match the REGEX
as a whole are left out, for files that only one engine has.
"""

import argparse
import difflib
import pathlib
import re
import sys

SUITES = "usr/share/mysql/mysql-test"


class Suite:
    """Where the outputs of a suite are, and what is known of it. `without` leaves out lines, or is None."""

    OVERLAID = "storage_engine"

    def __init__(self, name, without):
        self.name, self.without = name, without and re.compile(without)
        self.known = pathlib.Path(__file__).parent.parent / ("mtr" if name == self.OVERLAID else name)
        engine = r"-\w+" if name == self.OVERLAID else ""
        self.status = re.compile(
            rf"^{name}(?P<part>/\w+)?{engine}\.(?P<test>\w+)\s.*\[ (?P<status>[\w-]+) \]\s*(?P<comment>.*)$")

    def results(self, engine):
        """The directory with what was recorded, in a tree."""
        return pathlib.Path(SUITES, f"plugin/{engine.lower()}" if self.name == self.OVERLAID else "suite", self.name)


def statuses(suite, tree):
    """What mysql-test-run.pl said of each test: {'trx.insert': ('pass', '12'), ...}."""
    found = {}
    for line in (tree / "mtr.log").read_text(errors="replace").splitlines():
        match = suite.status.match(line)
        if match:
            part = (match["part"] or "")[1:]
            name = f"{part}.{match['test']}" if part else match["test"]
            # A failed test can be named again when its server's log has complaints: the worse one counts.
            if name not in found or found[name][0] == "pass":
                found[name] = (match["status"], match["comment"])
    return found


def output(suite, tree, engine, name, status):
    """The recorded lines of one test. How a test ended belongs to its output: a skip or a failure is a difference."""
    part, _, test = name.rpartition(".")
    path = tree / suite.results(engine) / part / f"{test}.result"
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    # Where the tree is says nothing about the engine; the tests may have masked an engine's name within the path.
    lines = [re.sub(r"[^\s'\"]*/build/(?:mtr|atomic)/[^/]+/(var/\d+/)?",
                    lambda at: "<TREE>/var/" if at[1] else "<TREE>/", line) for line in lines]
    lines = [re.sub(rf"\b{engine}\b", "<ENGINE>", line, flags=re.IGNORECASE) for line in lines]
    if suite.without:
        lines = [line for line in lines if not suite.without.fullmatch(line)]
    if status[0] != "pass":
        lines.append(f"[ {status[0]} ] " + (status[1] if status[0] == "skipped" else ""))
    return lines


def accepted_reasons(suite):
    reasons = {}
    path = suite.known / "expected-differences.txt"
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.partition(":")
            if not reason.strip():
                sys.exit(f"compare.py: {path.name}: '{name}' has no reason")
            reasons[name.strip()] = reason.strip()
    return reasons


def difference(reference, tested):
    return [line.rstrip() for line in difflib.unified_diff(reference, tested, "reference", "tested", lineterm="", n=1)]


def verdict(suite, name, diff, reasons, accept):
    """None when good, else what is wrong, in one line."""
    rdiff = suite.known / "rdiff" / f"{name}.rdiff"
    if not diff:
        return "is listed in expected-differences.txt but has no difference any more" if name in reasons else None
    if name not in reasons:
        return "differs"
    text = "\n".join(diff) + "\n"
    if accept:
        rdiff.parent.mkdir(exist_ok=True)
        rdiff.write_text(text)
    if not rdiff.exists():
        return f"has a reason, but no rdiff/{name}.rdiff"
    return None if rdiff.read_text() == text else f"differs in another way than rdiff/{name}.rdiff"


def runs(suite, trees, engines):
    """What both engines did in a pair of trees: {'trx.insert': (reference lines, tested lines), ...}."""
    trees = [pathlib.Path(tree) for tree in trees]
    found = [statuses(suite, tree) for tree in trees]
    result = {}
    for name in found[0].keys() | found[1].keys():
        pair = [status.get(name, ("missing", "")) for status in found]
        if any(status[0] != "disabled" for status in pair):
            result[name] = [output(suite, tree, engine, name, status)
                            for tree, engine, status in zip(trees, engines, pair)]
    return result


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference", required=True)
    parser.add_argument("--tested", required=True)
    parser.add_argument("--suite", default=Suite.OVERLAID)
    parser.add_argument("--without")
    parser.add_argument("--again", nargs=2)
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("--only-names", action="store_true")
    parser.add_argument("trees", nargs=2)
    return parser.parse_args()


def explain(name, wrong, diff):
    print(f"{name} {wrong}")
    for line in diff[:40]:
        print("    " + line)
    if len(diff) > 40:
        print(f"    ... {len(diff) - 40} more lines")


def main():
    options = arguments()
    engines = (options.reference, options.tested)
    suite = Suite(options.suite, options.without)
    results = runs(suite, options.trees, engines)
    if options.again:
        results.update(runs(suite, options.again, engines))
    reasons = accepted_reasons(suite)
    alike = excused = failed = 0
    for name in sorted(results):
        diff = difference(*results[name])
        wrong = verdict(suite, name, diff, reasons, options.accept)
        if wrong is None:
            if diff and not options.only_names:
                print(f"{name} differs as expected: {reasons[name]}")
            excused += bool(diff)
            alike += not diff
            continue
        failed += 1
        if options.only_names:
            print(name)
        else:
            explain(name, wrong, diff)
    if options.only_names:
        return
    print(f"{options.tested} against {options.reference}: {alike} alike, {excused} differ as expected, {failed} wrong")
    print(f"{alike + excused} passed, {failed} failed")
    sys.exit(1 if failed or not results else 0)


main()
