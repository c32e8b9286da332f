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
FILE_LINES = 700
BODY_LINES = 80
# So far above an atomic's ordering its reason may stand.
REASON_WITHIN = 10
SOURCES = {".rs", ".cc", ".h", ".py", ".sh"}


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
    """Files have at most 700 lines."""
    if file.suffix in SOURCES and len(file.lines) > FILE_LINES:
        yield len(file.lines), f"{len(file.lines)} lines"


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
    """Nothing is left to do that only a comment knows of."""
    for number, line in enumerate(file.lines, 1):
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


RULES = [too_long, too_wide, unsafe_without_reason, ordering_without_reason, left_to_do, says_nothing,
         more_than_a_screen, sleeping_test]


def main():
    listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.split("\n")
    wanted = SOURCES | {".md"}
    files = [File(path) for path in listed if Path(path).suffix in wanted and Path(path).exists()]
    failed = 0
    for rule in RULES:
        findings = [f"{file.path}:{number}: {text}" for file in files for number, text in rule(file)]
        if findings:
            failed += 1
            print(f"{rule.__doc__}\n    " + "\n    ".join(findings))
    print(f"{len(RULES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
