"""Compares what the same MariaDB tests printed with two engines, with the engines' names masked.

                  [--without REGEX] [--again TREE TREE] [--accept | --only-names] TREE TREE

The trees are those of mtr.sh, the reference's first; of the tests in the --again trees only those runs count. A test is
good when both engines print the same, or when expected-differences.txt gives a reason for a difference and
rdiff/<test>.rdiff has exactly that difference. --accept writes those files anew (for the tests that are listed),
--only-names prints the names of the tests that are not good. Otherwise prints the expected differences with their
reasons, each test that is not good with its difference, and at last 'N passed, N failed'.

The suite is storage_engine with its parts, which each engine runs as an overlay, and the files about differences are
those in tests/answers/mtr; for another suite, which engines run as it is, they are in tests/*/NAME. Lines that match the REGEX
as a whole are left out, for files that only one engine has.

With --lists the trees are those of suites.sh, and what is known is in the lists that it describes; a test is called as
mysql-test-run.pl calls it, with its combinations behind it: binlog.binlog_stm_mix,row. What the optimizer plans and
counts is left out of those outputs, and so are numbers and seconds of who is connected, which tests print where they
have waited in vain.
"""

import argparse
import difflib
import itertools
import pathlib
import re
import sys

import lists

# Debian 13 has all that is the server's under its new name.
STOCK = next(path for path in map(pathlib.Path, ("/usr/share/mariadb/mariadb-test", "/usr/share/mysql/mysql-test")) if path.exists())
SUITES = STOCK.relative_to("/")
RELEASE = re.match(r"\d+\.\d+", (pathlib.Path(__file__).parents[3] / "build/mariadb-version").read_text(encoding="ascii"))[0]


def known_of_release(directory):
    """Where it stands how a suite differs on this release of the server: where it did on the first, unless there is a directory for it."""
    return directory / RELEASE if (directory / RELEASE).exists() else directory


class Suite:
    """Where the outputs of a suite are, and what is known of it. `without` leaves out lines, or is None."""

    OVERLAID = "storage_engine"
    PROCESS_HEAD = re.compile(r"Id\tUser\tHost\tdb\tCommand\tTime\t.*")
    PROCESS_ROW = re.compile(r"\d+((?:\t[^\t]*){4}\t)\d+(\t.*)")

    def __init__(self, name, without):
        self.name, self.without = name, without and re.compile(without)
        self.known = known_of_release(next(pathlib.Path(__file__).parents[2].glob("*/" + ("mtr" if name == self.OVERLAID else name))))
        engine = r"-\w+" if name == self.OVERLAID else ""
        self.status = re.compile(
            rf"^{name}(?P<part>(?:/\w+)*){engine}\.(?P<test>\w+)\s.*\[ (?P<status>[\w-]+) \]\s*(?P<comment>.*)$")

    def test_of(self, match):
        """The name of the test that a line of mysql-test-run.pl is about."""
        part = (match["part"] or "")[1:]
        return f"{part}.{match['test']}" if part else match["test"]

    def results(self, engine, name):
        """Where in a tree the output of a test may have been recorded."""
        part, _, test = name.rpartition(".")
        suite = f"plugin/{engine.lower()}" if self.name == self.OVERLAID else "suite"
        directory = pathlib.Path(SUITES, suite, self.name, part)
        return [directory / f"{test}.result", directory / "r" / f"{test}.result"]

    def timeless(self, lines):
        """Without the numbers of connections in lists of them, and how long each has been at it."""
        in_processes = False
        for line in lines:
            process = self.PROCESS_ROW.fullmatch(line) if in_processes else None
            in_processes = bool(process or self.PROCESS_HEAD.fullmatch(line))
            yield f"<N>{process[1]}<N>{process[2]}" if process else line

    def masked(self, lines, engine):
        lines = [re.sub(rf"\b{engine}\b", "<ENGINE>", line, flags=re.IGNORECASE) for line in self.timeless(lines)]
        return [line for line in lines if not (self.without and self.without.fullmatch(line))]

    def reasons(self):
        """Why tests may differ: {'trx.insert': 'the reason', ...}."""
        return lists.described(self.known / "expected-differences.txt")

    def wanted(self, _name):
        return True


class ListedSuites(Suite):
    """MariaDB's suites as they are, of which the tests in lists are run (suites.sh)."""

    # An engine's name stands also in what a test says about itself, and in the names of variables that both have.
    NAMES = re.compile(r"\b(?:innodb|teak)(_lock_wait_timeout|_rollback_on_timeout|_snapshot_isolation)?\b", re.IGNORECASE)
    PLAN_HEAD = re.compile(r"id\tselect_type\ttable\t.*")
    PLAN_ROW = re.compile(r"(?:\d+|NULL)\t(?:SIMPLE|PRIMARY|(?:LATERAL )?DERIVED|(?:DEPENDENT |UNCACHEABLE )*"
                          r"(?:SUBQUERY|UNION)|MATERIALIZED|UNION RESULT|RECURSIVE UNION|INSERT|UNIT RESULT)\t.*")
    # What was counted while rows were read, and what plans in other forms estimate.
    COUNTED = re.compile(r"((?:Handler|Innodb|Last_query)_\w+\t|(?:rows|filtered)\t|\s*\"(?:r_)?(?:rows|filtered)\": )"
                         r"[\d.]+(,?)")

    def __init__(self, directory, groups):
        self.directory, self.known = directory, directory
        self.listed = lists.tests(directory, groups)
        self.status = re.compile(r"^(?P<test>[\w/]+\.[\w-]+)\s+(?:'(?P<combinations>[^']*)'\s+)?(?:w\d+ )?"
                                 r"\[ (?P<status>[\w-]+) \]\s*(?P<comment>.*)$")

    def test_of(self, match):
        return match["test"] + (f",{match['combinations']}" if match["combinations"] else "")

    def results(self, engine, name):
        suite, _, test = name.partition(".")
        stock = STOCK / "suite" / suite
        directory = pathlib.Path(SUITES, suite) if suite == "main" else \
            pathlib.Path(SUITES, "suite", suite, "r" if (stock / "r").exists() else "")
        # The file's name has the combinations in another order than what mysql-test-run.pl prints.
        test, *combinations = test.split(",")
        return [directory / (",".join([test, *order]) + ".result") for order in itertools.permutations(combinations)]

    def masked(self, lines, engine):
        kept, in_plan = [], False
        for line in self.timeless(lines):
            if in_plan and self.PLAN_ROW.fullmatch(line):
                continue
            in_plan = bool(self.PLAN_HEAD.fullmatch(line))
            line = self.NAMES.sub(r"<ENGINE>\1", line)
            kept.append(self.COUNTED.sub(r"\1<N>\2", line))
        return kept

    def reasons(self):
        return {name: reason for name, reason in self.listed.items() if reason}

    def wanted(self, name):
        return name in self.listed or name.partition(",")[0] in self.listed


def statuses(suite, tree):
    """What mysql-test-run.pl said of each test: {'trx.insert': ('pass', '12'), ...}."""
    found = {}
    for line in (tree / "mtr.log").read_text(errors="replace").splitlines():
        match = suite.status.match(line)
        if match:
            name = suite.test_of(match)
            # A failed test can be named again when its server's log has complaints: the worse one counts.
            if name not in found or found[name][0] == "pass":
                found[name] = (match["status"], match["comment"])
    return found


def output(suite, tree, engine, name, status):
    """The recorded lines of one test; None: it has passed, and what it printed is not there. How a test ended belongs to
    its output: a skip or a failure is a difference."""
    found = [path for path in (tree / result for result in suite.results(engine, name)) if path.exists()]
    if not found and status[0] == "pass":
        return None
    lines = found[0].read_text(errors="replace").splitlines() if found else []
    # Where the tree is says nothing about the engine; the tests may have masked an engine's name within the path.
    lines = [re.sub(r"[^\s'\"]*/build/(?:mtr|atomic)/[^/]+/(var/\d+/)?",
                    lambda at: "<TREE>/var/" if at[1] else "<TREE>/", line) for line in lines]
    lines = suite.masked(lines, engine)
    if status[0] != "pass":
        lines.append(f"[ {status[0]} ] " + (status[1] if status[0] == "skipped" else ""))
    return lines


def difference(reference, tested):
    return [line.rstrip() for line in difflib.unified_diff(reference, tested, "reference", "tested", lineterm="", n=1)]


def verdict(suite, name, diff, reasons, accept):
    """None when good, else what is wrong, in one line."""
    rdiff = suite.known / "rdiff" / f"{name}.rdiff"
    if not diff:
        return "is listed as one that differs but has no difference any more" if name in reasons else None
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
        if suite.wanted(name) and any(status[0] != "disabled" for status in pair):
            result[name] = [output(suite, tree, engine, name, status)
                            for tree, engine, status in zip(trees, engines, pair)]
    return result


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference", required=True)
    parser.add_argument("--tested", required=True)
    parser.add_argument("--suite", default=Suite.OVERLAID)
    parser.add_argument("--without")
    parser.add_argument("--lists", type=pathlib.Path)
    parser.add_argument("--groups", nargs="*", default=[])
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
    suite = ListedSuites(options.lists, options.groups) if options.lists else Suite(options.suite, options.without)
    results = runs(suite, options.trees, engines)
    if options.again:
        results.update(runs(suite, options.again, engines))
    reasons = suite.reasons()
    alike = excused = failed = 0
    for name in sorted(results):
        missing = None in results[name]
        diff = [] if missing else difference(*results[name])
        wrong = "has passed, but its output is missing" if missing else verdict(suite, name, diff, reasons, options.accept)
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
