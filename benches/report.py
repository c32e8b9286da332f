"""Turns what sysbench.py measured into lines, a summary and a markdown file."""

import math
from statistics import median

# The least acceptable ratio, and the goals by kind of workload.
FLOOR = 0.9
GOALS = {"read": 1.15, "write": 1.5}


def middle(runs, field):
    """Median of a figure over the runs, or None where every run failed."""
    return median(run[field] for run in runs) if runs else None


def spread(runs, field="tps"):
    """How far the runs lie apart in a figure: (largest - smallest) / median."""
    if len(runs) < 2:
        return 0.0
    rates = [run[field] for run in runs]
    return (max(rates) - min(rates)) / median(rates)


def ratio(row, engines, field="tps"):
    """Second engine to first, or None."""
    first, second = (middle(row["runs"][engine], field) for engine in engines)
    return second / first if first and second else None


def verdict(row, engines):
    """Where a ratio stands."""
    value = ratio(row, engines)
    if value is None:
        return "failed"
    if value < FLOOR:
        return f"below {FLOOR}"
    goal = GOALS.get(row["kind"])
    return "goal" if goal and value >= goal else ""


def columns(row, engines):
    """The cells of one row, as text. Cells with a slash name the engines in their order."""
    def text(value, form):
        return "-" if value is None else format(value, form)
    runs = [row["runs"][engine] for engine in engines]
    def pair(field, form):
        return "/".join(text(middle(r, field), form) for r in runs)
    return [
        row["workload"], str(row["threads"]), *(text(middle(r, "tps"), ".0f") for r in runs), text(ratio(row, engines), ".2f"),
        pair("p95_ms", ".2f"), pair("cpu_us", ".0f"), pair("conflicts", ".0f"), f"{max(map(spread, runs)) * 100:.0f}%", verdict(row, engines),
    ]


def titles(engines):
    """The heads of `columns`."""
    return ["workload", "threads", *(f"{engine} tps" for engine in engines), "ratio", "p95 ms", "cpu us/trx", "conflicts", "spread", ""]


WIDTHS = (22, 7, 11, 11, 6, 13, 13, 11, 7, 9)


def aligned(cells, widths=WIDTHS):
    """Cells of the printed table, in columns."""
    first, *others = zip(cells, widths)
    return f"{first[0]:<{first[1]}}" + "".join(f" {cell:>{width}}" for cell, width in others)


def head(engines):
    """The head of the printed table."""
    return aligned(titles(engines))


def line(row, engines):
    """A row of the printed table."""
    return aligned(columns(row, engines))


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def summary(result):
    """Ratios by kind, loading, disk, and every error."""
    engines, lines = result["engines"], []
    for kind in ("read", "mixed", "write"):
        rows = [row for row in result["workloads"] if row["kind"] == kind]
        ratios = [value for value in (ratio(row, engines) for row in rows) if value]
        if ratios:
            goal = f", goal {GOALS[kind]}" if kind in GOALS else ""
            lines.append(f"{kind}: geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}, most {max(ratios):.2f}{goal}")
    below = [row for row in result["workloads"] if (ratio(row, engines) or 0) < FLOOR]
    lines.append(f"below {FLOOR} or failed: {len(below)} of {len(result['workloads'])}")
    first, second = (result["load"].get(engine, {}) for engine in engines)
    for field, name, unit, scale in (("seconds", "load", "s", 1), ("disk_bytes", "disk after loading", "MiB", 2**20), ("disk_bytes_at_end", "disk at the end", "MiB", 2**20)):
        if first.get(field) and second.get(field):
            lines.append(f"{name}: {engines[0]} {first[field] / scale:.1f} {unit}, {engines[1]} {second[field] / scale:.1f} {unit},"
                         f" ratio {second[field] / first[field]:.2f}")
    lines.append(f"errors: {len(result['errors'])}")
    lines += [f"  {error['engine']} {error['where']}: {error['what']}" for error in result["errors"]]
    return "\n".join(lines)


def markdown(result):
    """The whole result as one file."""
    engines, machine, settings = result["engines"], result["machine"], result["settings"]
    heads = titles(engines)
    lines = [
        f"# sysbench: {engines[1]} against {engines[0]}", "",
        f"{machine['cores']} cores ({machine['cpu']}), {machine['server']}. 4 tables of {settings['rows']} rows ({settings['charset']}),"
        f" {settings['cache']} cache each, flush mode 2. Medians of {settings['runs']} runs of {settings['seconds']} s;"
        f" load average at the start {machine['load_average']:.1f}.", "",
        "| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 2) + "---|",
        *("| " + " | ".join(columns(row, engines)) + " |" for row in result["workloads"]), "",
        "```", summary(result), "```", "",
    ]
    for error in result["errors"]:
        if "error_log" in error:
            lines += [f"Error log at: {error['engine']} {error['where']}", "", "```", error["error_log"], "```", ""]
    return "\n".join(lines)
