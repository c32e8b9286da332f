"""Lines of memory_bound.py as they come, and its markdown file."""

from report import aligned

BASE = "InnoDB"
HEADS = [
    "step", "side", "s", "ops/s", "ratio", "p99 ms", "max ms", "cpu us/op", "read KB/op", "written KB/op", "written MB", "spilled MB",
    "resident MB", "peak MB", "disk MB",
]
WIDTHS = (22, 14, 6, 8, 6, 8, 8, 9, 10, 13, 10, 10, 11, 8, 8)
# No insert may take longer.
LONGEST_INSERT_MS = 100
# A rate that was wanted counts as kept above this share: sysbench's events come at random.
KEPT = 0.9


def rate(line):
    """Operations a second, by the clients' own time where they say it; or None."""
    return line.get("rate") or (line["operations"] / line["seconds"] if line.get("operations") else None)


def per_operation(line, field, scale, form):
    """What one operation took of something, if there are operations and it was counted."""
    return format(line[field] / line["operations"] * scale, form) if line.get("operations") and field in line else "-"


def megabytes(line, field):
    """A size, if it was taken."""
    return f"{line[field] / 2**20:.0f}" if field in line else "-"


def shown_rate(line):
    """With the rate that was wanted, where it was missed."""
    if "outcome" in line:
        return line["outcome"]
    found = rate(line)
    if found and found < KEPT * line.get("wanted", 0):
        return f"{found:.0f} of {line['wanted']}"
    return f"{found:.0f}" if found else "-"


def longest(line):
    """With a mark, where an insert took longer than any should."""
    if "max_ms" not in line:
        return "-"
    changes = line["part"] == "inserts" and (line["step"].startswith("l.") or "wanted" in line)
    return f"{line['max_ms']:.1f}" + ("!" if changes and line["max_ms"] > LONGEST_INSERT_MS else "")


def cells(line, lines):
    """One line as text; its ratio is to InnoDB's of the same step, if that is there."""
    own = rate(line)
    others = (rate(other) for other in lines if (other["part"], other["step"], other["side"]) == (line["part"], line["step"], BASE))
    base = next(others, None)
    return [
        line["step"], line["side"], f"{line['seconds']:.1f}", shown_rate(line), f"{own / base:.2f}" if own and base else "-",
        f"{line['p99_ms']:.2f}" if "p99_ms" in line else "-", longest(line), per_operation(line, "cpu", 1e6, ".1f"),
        per_operation(line, "read", 1 / 1024, ".2f"), per_operation(line, "written", 1 / 1024, ".2f"),
        *(megabytes(line, field) for field in ("written", "spill", "resident", "peak", "disk")),
    ]


def head():
    """The head of the printed lines."""
    return aligned(HEADS, WIDTHS)


def line(one, lines):
    """A printed line."""
    return aligned(cells(one, lines), WIDTHS)


def table(lines):
    """The lines of one part: step by step, the sides below each other."""
    steps, sides = (list(dict.fromkeys(line[field] for line in lines)) for field in ("step", "side"))
    ordered = sorted(lines, key=lambda one: (steps.index(one["step"]), sides.index(one["side"])))
    return ["| " + " | ".join(HEADS) + " |", "|---|---|" + "--:|" * (len(HEADS) - 2),
            *("| " + " | ".join(cells(line, lines)) + " |" for line in ordered)]


def markdown(result):
    """The whole result."""
    made, settings = result["machine"], result["settings"]
    lines = [
        "# Data larger than memory", "",
        f"{made['cores']} cores ({made['cpu']}), {made['server']}. {result['memory']}; {settings['cache']} of cache, or (-whole) what the group has."
        f" Flush mode 2, no binlog. Runs of {settings['seconds']} s. Ratios are to {BASE}. Load average at the start {made['load_average']:.1f}.",
    ]
    if settings["quick"]:
        lines += ["", "**A quick look: everything is small, and the figures mean nothing.**"]
    titles = {
        "sysbench": f"sysbench: 4 tables of {settings['rows']} rows, uniform, 8 threads",
        "inserts": f"The Insert Benchmark: {settings['insert_rows']} rows, {settings['clients']} clients",
    }
    for part, title in titles.items():
        if own := [line for line in result["lines"] if line["part"] == part]:
            lines += ["", f"## {title}", "", *table(own)]
    lines += ["", f"errors: {len(result['errors'])}", *(f"- {error['engine']}, {error['where']}: {error['what']}" for error in result["errors"])]
    return "\n".join(lines) + "\n"
