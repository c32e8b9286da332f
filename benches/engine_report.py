"""Turns what engine.py measured into a markdown file."""

from report import middle, ratio, spread


def milliseconds(row, side, field):
    """Median, as text."""
    value = middle(row["runs"][side], field)
    return "-" if value is None else f"{value * 1e3:.0f}"


def cells(row, sides):
    """Of one statement: the first side's figures, and how many times as fast each other one is."""
    first, others = sides[0], sides[1:]
    found = [row["workload"], " / ".join(milliseconds(row, first, field) for field in ("wall", "cpu"))]
    for side in others:
        # The other way round: a statement takes time, and more of it is less speed.
        ratios = [ratio(row, (side, first), field) for field in ("wall", "cpu")]
        found.append("-" if None in ratios else " / ".join(f"{value:.2f}" for value in ratios))
    spreads = max(spread(runs, "cpu") for runs in row["runs"].values())
    return [*found, f"{spreads * 100:.0f}%"]


def table(result):
    """Heads and rows of the report."""
    sides = [side["name"] for side in result["sides"]]
    rows = [{"workload": name, "runs": runs} for name, runs in result["measured"].items() if any(runs.values())]
    return ["statement", f"{sides[0]}, ms", *sides[1:], "spread"], [cells(row, sides) for row in rows]


def about(result):
    """What the figures are of."""
    machine, settings = result["machine"], result["settings"]
    return (f"{machine['cores']} cores ({machine['cpu']}), {machine['server']}. {settings['rows']} rows, {settings['cache']} of cache each, flush mode 2, no"
            f" binlog. Medians of {settings['runs']} runs; load average at the start {machine['load_average']:.1f}. Time / processor time of the server, of"
            f" {result['sides'][0]['name']} in milliseconds, of the others how many times as fast: higher is better. spread: of the processor time, where it"
            " is largest.")


def markdown(result):
    """The whole result."""
    heads, rows = table(result)
    lines = [
        f"# Statements inside the server: {result['sides'][0]['name']} = 1.00, higher is faster", "", about(result), "",
        "| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 1), *("| " + " | ".join(row) + " |" for row in rows), "",
        f"errors: {len(result['errors'])}",
    ]
    lines += [f"- {error['engine']}, {error['where']}: {error['what']}" for error in result["errors"]]
    return "\n".join(lines) + "\n"
