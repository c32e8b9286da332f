"""Turns apt's index files into rows for LOAD DATA: one line a package, fields separated by tabs.

usage: catalogue.py --packages FILE... --translations [FILE...] >packages.tsv

The files may be compressed in any way that apt knows. Long descriptions stand in the Translation files and are
joined by Description-md5; a package without one keeps its short description.
"""

import argparse
import subprocess
import sys

COLUMNS = [
    "Package", "Version", "Architecture", "Section", "Priority", "Maintainer", "Installed-Size", "Size",
    "Filename", "SHA256", "Homepage", "Depends", "Description",
]
REQUIRED = ["Package", "Version", "Architecture", "Filename", "SHA256", "Size"]


def stanzas(path):
    """Yields each paragraph of an index file as a dictionary; continuation lines keep their line ends."""
    reader = subprocess.Popen(["/usr/lib/apt/apt-helper", "cat-file", path], stdout=subprocess.PIPE)
    fields, name = {}, None
    for raw in reader.stdout:
        line = raw.decode("utf-8", "replace").rstrip("\n")
        if not line:
            if fields:
                yield fields
            fields, name = {}, None
        elif line[0] in " \t":
            if name:
                text = line[1:]
                fields[name] += "\n" + ("" if text == "." else text)
        else:
            name, _, value = line.partition(":")
            fields[name] = value.strip()
    if fields:
        yield fields
    if reader.wait() != 0:
        sys.exit(f"catalogue.py: apt-helper could not read {path}")


def escaped(value):
    """NULL is \\N; the rest escapes what LOAD DATA takes specially."""
    if value is None:
        return "\\N"
    return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\0", "\\0")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--packages", nargs="+", required=True)
    arguments.add_argument("--translations", nargs="*", default=[])
    options = arguments.parse_args()

    long_descriptions = {}
    for path in options.translations:
        for stanza in stanzas(path):
            if "Description-md5" in stanza and "Description-en" in stanza:
                long_descriptions[stanza["Description-md5"]] = stanza["Description-en"]

    seen = set()
    out = open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n")
    for path in options.packages:
        for stanza in stanzas(path):
            if any(name not in stanza for name in REQUIRED):
                continue
            # The same file can be listed by two archives (main and updates).
            if stanza["Filename"] in seen or stanza["SHA256"] in seen:
                continue
            seen.update((stanza["Filename"], stanza["SHA256"]))
            stanza["Description"] = long_descriptions.get(
                stanza.get("Description-md5"), stanza.get("Description"))
            out.write("\t".join(escaped(stanza.get(name)) for name in COLUMNS) + "\n")


main()
