#!/usr/bin/env python3
"""Checks what a script can of docs/style.md, in all files that git knows. Prints each finding and 'N passed, N failed',
where each rule counts as one.

usage: scripts/style.py
"""
import re
import subprocess
import sys
from pathlib import Path

COLUMNS = 120
FILE_LINES = 600
BODY_LINES = 80
# So far above an atomic's ordering its reason may stand.
REASON_WITHIN = 10
SOURCES = {".rs", ".cc", ".h", ".py", ".sh"}

# Files that may be longer, each with its lines at most and why. Nothing is added here.
LONGER = {
    "crates/core/src/log/tests.rs": (614, "one frame for all tests of the log"),
    "tests/beside/definitions/definitions.py": (632, "all statements that define tables"),
}

# Types of one name that several rooms of a crate have, though the glossary of architecture.md has no such word. Nothing
# is added here; who renames one takes it off. `api` and `model` have the names of what they stand for: not on the list.
SAME_NAMES = {
    "core": """
        Batch Bundles Bytes Clock Content Counted Cut Failure Findings Found Index Kept Known Mark Memory
        Merge Newest Packing Progress Slot SnapshotInfo Span TableFile Touched Watch Written""",
    "bench": "Load Options Plan Run Settings Snapshot",
    "cli": "Arguments Server",
}
STAND_FOR_OTHERS = {"api", "model"}

# Places in the shim at which releases of the server differ (server_version.h), at most.
ISLANDS = 12


class File:
    """A file, and the answers that several rules need of it."""

    def __init__(self, path):
        self.path, self.suffix = Path(path), Path(path).suffix
        self.lines = self.path.read_text(encoding="utf-8").split("\n")
        parts = self.path.parts
        self.is_test = "tests" in parts or "benches" in parts or self.path.stem == "tests"
        if self.suffix == ".rs" and not self.is_test:
            ends = [n for n, line in enumerate(self.lines) if line == "#[cfg(test)]"]
            self.tests_from = ends[-1] if ends else len(self.lines)
        else:
            self.tests_from = 0 if self.is_test else len(self.lines)

    def unfenced(self):
        """Numbers and lines outside of ``` fences, which hold pictures and programs."""
        fenced = False
        for number, line in enumerate(self.lines, 1):
            if re.match(r"\s*(?:(?://[/!]|#)\s*)?```", line):
                fenced = not fenced
            elif not fenced:
                yield number, line


def too_long(file):
    """Files have at most 600 lines, but for those that scripts/style.py names, which do not grow."""
    lines = len(file.lines) - 1
    most, _ = LONGER.get(str(file.path), (FILE_LINES, ""))
    if file.suffix in SOURCES and lines > most:
        yield lines, f"{lines} lines"
    elif lines <= FILE_LINES < most:
        yield lines, f"{lines} lines: it can be taken off the list"


def not_in_table(file):
    """The table of files in a mod.rs names all files of its folder."""
    if file.path.name != "mod.rs":
        return
    head = [line for line in file.lines if line.startswith("//!")]
    if not any(re.match(r"//! \| `[\w/]+(?:\.rs)?`", line) for line in head):
        return
    named = set(re.findall(r"`([\w/.]+)`", "\n".join(head)))
    for part in sorted(file.path.parent.iterdir()):
        name = part.name + "/" if part.is_dir() else part.name
        has_file = part.is_dir() and part.with_suffix(".rs").exists()
        is_named = name in named or part.stem in named
        if part.stem != "mod" and not part.stem.endswith("tests") and not has_file and not is_named:
            yield 1, f"its table has no {name}"


def too_wide(file):
    """Comments and paragraphs wrap at 120 columns; tables, pictures and addresses do not wrap."""
    comment = r"\s*(?:#(?![!\[])|//)" if file.suffix in (".py", ".sh", ".rs") else r"\s*(?://|/\*)"
    inside = False
    for number, line in file.unfenced():
        if file.suffix == ".md":
            wraps = not line.lstrip().startswith("|")
        elif file.suffix in (".cc", ".h"):
            inside = inside or bool(re.match(comment, line))
            wraps = inside
            inside = inside and "*/" not in line and not line.lstrip().startswith("//")
        else:
            wraps = file.suffix in SOURCES and re.match(comment, line)
        if wraps and len(line) > COLUMNS and not re.search(r"\S{60}", line):
            yield number, f"{len(line)} columns"


def unsafe_without_reason(file):
    """Each `unsafe` block or impl has a SAFETY comment directly above its statement."""
    if file.suffix != ".rs":
        return
    for number, line in enumerate(file.lines):
        if not re.search(r"\bunsafe\s*(?:\{|impl\b)", line) or line.lstrip().startswith("//"):
            continue
        above = number
        # The statement may have begun some lines before.
        while above > 0 and not re.search(r"[;{}]$|^\s*$|^\s*//", file.lines[above - 1]):
            above -= 1
        while above > 0 and re.match(r"\s*(?://|#\[)", file.lines[above - 1]):
            above -= 1
        if not any("SAFETY:" in text for text in file.lines[above:number + 1]):
            yield number + 1, "unsafe without SAFETY"


def ordering_without_reason(file):
    """Each ordering of an atomic that is not SeqCst has a comment close above."""
    if file.suffix != ".rs":
        return
    for number, line in enumerate(file.lines[:file.tests_from]):
        if re.search(r"\bOrdering::(?:Relaxed|Acquire|Release|AcqRel)\b|^[^/]*\bRelaxed\)", line):
            if not any("//" in text for text in file.lines[max(0, number - REASON_WITHIN):number + 1]):
                yield number + 1, "a weak ordering without a word"


def left_to_do(file):
    """Nothing is left to do that only a comment knows of, nor of a merge."""
    for number, line in enumerate(file.lines, 1):
        if re.match(r"[<>]{7} ", line):
            yield number, line
        if file.suffix in SOURCES and file.path.name != "style.py" and re.search(r"\b(?:TODO|FIXME|XXX)\b", line):
            yield number, line.strip()


def says_nothing(file):
    """Files are named by what they are about."""
    if file.suffix in SOURCES and re.fullmatch(r"(?:.*_)?(?:utils?|helpers?|common|manager|misc)", file.path.stem):
        yield 1, "a name that says nothing"


def more_than_a_screen(file):
    """Functions fit a screen: bodies have at most 80 lines."""
    pattern = {
        ".rs": r'( *)(?:pub(?:\([^)]*\))? )?(?:const )?(?:unsafe )?(?:extern "C" )?fn (\w+)',
        ".cc": r"()(?!namespace|class|struct|enum|extern|typedef|static const)[A-Za-z].*?([\w:~]+)\(.*",
    }.get(file.suffix)
    if not pattern:
        return
    for number, line in enumerate(file.lines):
        if found := re.match(pattern, line):
            opened = next((n for n in range(number, len(file.lines)) if file.lines[n].endswith(("{", ";", "}"))), number)
            if not file.lines[opened].endswith("{"):
                continue
            closed = file.lines.index(found[1] + "}", opened) if found[1] + "}" in file.lines[opened:] else opened
            if closed - opened - 1 > BODY_LINES:
                yield number + 1, f"{found[2]} has {closed - opened - 1} lines"


def sleeping_test(file):
    """Tests in Rust wait for what they need, not for a while."""
    if file.suffix == ".rs" and "benches" not in file.path.parts:
        for number, line in enumerate(file.lines[file.tests_from:], file.tests_from + 1):
            if re.search(r"\bsleep\(", line):
                yield number, "a test that sleeps"


def same_names(files):
    """Types of two rooms of a crate have two names, or the glossary of architecture.md has the word."""
    rows = re.findall(r"^\| ([\w, ]+) \|", Path("docs/architecture.md").read_text(encoding="utf-8"), re.MULTILINE)
    glossary = {word.strip() for row in rows for word in row.split(",")}
    rooms = {}
    for file in files:
        parts = file.path.parts
        if file.suffix != ".rs" or parts[0] != "crates" or parts[2] != "src" or re.search(r"(?:tests|hostile)$", file.path.stem):
            continue
        room = Path(parts[3]).stem
        for line in file.lines[:file.tests_from]:
            found = re.match(r"pub(?:\([^)]*\))? (?:struct|enum|union|trait|type) (\w+)", line)
            if found and room not in STAND_FOR_OTHERS:
                rooms.setdefault((parts[1], found[1]), set()).add(room)
    shared = {name for name, those in rooms.items() if len(those) > 1 and name[1].lower() not in glossary}
    known = {(crate, name) for crate, names in SAME_NAMES.items() for name in names.split()}
    for crate, name in sorted(shared - known):
        yield f"crates/{crate}: {name} is in {', '.join(sorted(rooms[crate, name]))}"
    for crate, name in sorted(known - shared):
        yield f"crates/{crate}: {name} can be taken off the list in scripts/style.py"


def islands(files):
    """Releases of the server differ in few places of the shim."""
    found = [(file, number) for file in files if file.path.parts[:3] == ("crates", "plugin", "shim")
             for number, line in enumerate(file.lines, 1) if re.match(r"\s*#\s*(?:el)?if.*(?:MYSQL_VERSION_ID|MARIADB_NEW_COST_MODEL)", line)]
    if len(found) > ISLANDS:
        yield from (f"{file.path}:{number}: one of {len(found)} islands, {ISLANDS} at most" for file, number in found)


RULES = [too_long, not_in_table, too_wide, unsafe_without_reason, ordering_without_reason, left_to_do, says_nothing,
         more_than_a_screen, sleeping_test]


def main():
    listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.split("\n")
    wanted = SOURCES | {".md"}
    files = [File(path) for path in listed if Path(path).suffix in wanted and Path(path).exists()]
    findings_of = {rule: [f"{file.path}:{number}: {text}" for file in files for number, text in rule(file)]
                   for rule in RULES} | {rule: list(rule(files)) for rule in (same_names, islands)}
    failed = 0
    for rule, findings in findings_of.items():
        if findings:
            failed += 1
            print(f"{rule.__doc__}\n    " + "\n    ".join(findings))
    print(f"{len(findings_of) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
