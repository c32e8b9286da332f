"""The tables of small.py: its counts as markdown, a table for each kind of count, and what grew against those that are checked in."""

from collections import Counter

from callgrind import FIELDS, LAYERS, LIBRARIES, OTHER, SERVER, WHOLE

# The sum over the layers and the libraries they call.
ENGINE = "engine, all"
# What a count may grow by without a new table. Lines depend on where objects happen to be, and what the server does on
# how long it waits for a packet.
GROWTH, GROWTH_OF_LINES, GROWTH_OF_SERVER = 0.02, 0.05, 0.04
# What is lost when few executions have a mean.
SLACK = 0.1
# From the whole of a statement to its parts.
COLUMNS = [("Teak", WHOLE), ("Teak", ENGINE), *(("Teak", layer) for layer in LAYERS), ("Teak", OTHER), ("Teak", LIBRARIES), ("Teak", SERVER),
           ("InnoDB", WHOLE), ("InnoDB", ENGINE), ("InnoDB", LIBRARIES), ("InnoDB", SERVER)]
# Of each part, what is compared with the table. Misses are not: they depend on everything else that the server does.
CHECKED = {(ENGINE, field): GROWTH_OF_LINES if field.endswith("lines") else GROWTH for field in FIELDS if not field.endswith("misses")}
CHECKED[WHOLE, "instructions"] = GROWTH_OF_SERVER
HEADING, VERSION = "## ", "server: "


def differences(first, second, count):
    """Of two runs, the second with `count` executions more: what one execution takes."""
    found = {}
    for name in {*first, *second}:
        before, after = first.get(name, Counter()), second.get(name, Counter())
        found[name] = Counter({field: (after[field] - before[field]) / count for field in {*before, *after}})
    return found


def set_lines(counts, single):
    """Takes lines from executions with empty caches, and sums up the engine."""
    for name in {*counts, *single}:
        counts.setdefault(name, Counter())
        for field in ("I lines", "D lines"):
            counts[name][field] = single.get(name, Counter())[field]
    parts = [of for name, of in counts.items() if name not in (WHOLE, SERVER)]
    counts[ENGINE] = Counter({field: sum(of[field] for of in parts) for field in FIELDS})
    for layer in (*LAYERS, OTHER, LIBRARIES, SERVER):
        counts.setdefault(layer, Counter())


def shown(field, value):
    """A figure: what is rare with a digit more."""
    return f"{value:.1f}" if field in ("allocations", "locked") else f"{value:.0f}"


def row(cells):
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def markdown(counts, server):
    """Counts by statement and engine."""
    lines = [
        "# What a small statement takes", "",
        "Counted by callgrind for one execution; written by `benches/small.sh --record`, explained in [README.md](README.md).", "", VERSION + server, "",
    ]
    for field in FIELDS:
        lines += [HEADING + field, "", row(["statement", *map(": ".join, COLUMNS)]), "|---|" + "--:|" * len(COLUMNS)]
        for statement, of in counts.items():
            lines.append(row([statement, *(shown(field, of[engine][name][field]) if engine in of else "" for engine, name in COLUMNS)]))
        lines.append("")
    return "\n".join(lines)


def read(path):
    """The server of a file of tables, and Teak's counts in it by statement, part and field."""
    server, found, field, heads = None, {}, None, []
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if line.startswith(VERSION):
                server = line.removeprefix(VERSION).strip()
            elif line.startswith(HEADING):
                field = line.removeprefix(HEADING).strip()
            elif cells[0] == "statement":
                heads = cells
            elif line.startswith("| "):
                found.update({(cells[0], head.removeprefix("Teak: "), field): float(cell) for head, cell in zip(heads, cells) if head.startswith("Teak: ")})
    return server, found


def growth(path, counts, server):
    """What of Teak's grew beyond a file of tables, as lines of text."""
    known_server, known = read(path)
    if known_server != server:
        print(f"The tables are of another server, {known_server}: what the server takes is not compared.")
    found = []
    for statement, of in counts.items():
        for (name, field), by in CHECKED.items() if "Teak" in of else ():
            if name == WHOLE and known_server != server:
                continue
            before, now = known.get((statement, name, field)), of["Teak"][name][field]
            if before is None:
                found.append(f"{statement}: the table of {field} does not have it")
            elif now > before * (1 + by) + SLACK:
                found.append(f"{statement}, {name}: {field} grew from {shown(field, before)} to {shown(field, now)}")
    return found
