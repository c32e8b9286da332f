"""Compares what the same MariaDB tests printed with two engines, with the engines' names masked.

usage: compare.py REFERENCE-TREE REFERENCE-ENGINE TESTED-TREE TESTED-ENGINE [--accept]

A test is good when both engines print the same, or when tests/mtr/expected-differences.txt gives a reason for a
difference and tests/mtr/rdiff/<test>.rdiff has exactly that difference. --accept writes those files anew (for the
tests that are listed). Prints each test that is not good with its difference, and at last 'N passed, N failed'.
"""

import difflib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
SUITES = "usr/share/mysql/mysql-test"
STATUS = re.compile(r"^storage_engine(?P<part>/\w+)?-\w+\.(?P<test>\w+)\s.*\[ (?P<status>[\w-]+) \]\s*(?P<comment>.*)$")


def statuses(tree):
    """What mysql-test-run.pl said of each test: {'trx.insert': ('pass', '12'), ...}."""
    found = {}
    for line in (tree / "mtr.log").read_text(errors="replace").splitlines():
        match = STATUS.match(line)
        if match:
            part = (match["part"] or "")[1:]
            name = f"{part}.{match['test']}" if part else match["test"]
            # A failed test can be named again when its server's log has complaints: the worse one counts.
            if name not in found or found[name][0] == "pass":
                found[name] = (match["status"], match["comment"])
    return found


def output(tree, engine, name, status):
    """The recorded lines of one test. How a test ended belongs to its output: a skip or a failure is a difference."""
    part, _, test = name.rpartition(".")
    path = tree / SUITES / "plugin" / engine.lower() / "storage_engine" / part / f"{test}.result"
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    lines = [re.sub(rf"\b{engine}\b", "<ENGINE>", line, flags=re.IGNORECASE) for line in lines]
    if status[0] != "pass":
        lines.append(f"[ {status[0]} ] " + (status[1] if status[0] == "skipped" else ""))
    return lines


def accepted_reasons():
    reasons = {}
    path = HERE / "expected-differences.txt"
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.partition(":")
            if not reason.strip():
                sys.exit(f"compare.py: {path.name}: '{name}' has no reason")
            reasons[name.strip()] = reason.strip()
    return reasons


def difference(reference, tested):
    return [line.rstrip() for line in difflib.unified_diff(reference, tested, "reference", "tested", lineterm="", n=1)]


def verdict(name, diff, reasons, accept):
    """None when good, else what is wrong, in one line."""
    rdiff = HERE / "rdiff" / f"{name}.rdiff"
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


def main():
    accept = "--accept" in sys.argv
    paths = [argument for argument in sys.argv[1:] if argument != "--accept"]
    if len(paths) != 4:
        sys.exit(__doc__)
    trees = [(pathlib.Path(paths[0]), paths[1]), (pathlib.Path(paths[2]), paths[3])]
    reference_status, tested_status = (statuses(tree) for tree, _ in trees)
    reasons = accepted_reasons()
    missing = ("missing", "")
    passed = failed = excused = 0
    for name in sorted(tested_status.keys() | reference_status.keys()):
        status = (reference_status.get(name, missing), tested_status.get(name, missing))
        reference, tested = (output(tree, engine, name, s) for (tree, engine), s in zip(trees, status))
        diff = difference(reference, tested)
        wrong = verdict(name, diff, reasons, accept)
        if wrong is None:
            passed += 1
            excused += bool(diff)
            continue
        failed += 1
        print(f"{name} {wrong}")
        for line in diff[:40]:
            print("    " + line)
        if len(diff) > 40:
            print(f"    ... {len(diff) - 40} more lines")
    print(f"{trees[1][1]} against {trees[0][1]}: {passed - excused} alike, {excused} differ as expected, {failed} wrong")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


main()
