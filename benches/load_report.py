"""Turns what load.py measured into lines, a summary and a markdown file."""

from report import aligned, middle, spread

REFERENCE = ("default", "InnoDB")
TITLES = ["variant", "engine", "load s", "keys s", "total s", "ratio", "flush s", "cpu s", "MiB", "ratio", "written/size", "spread"]
WIDTHS = (9, 10, 8, 8, 8, 6, 8, 8, 9, 6, 12, 7)


def text(value, form):
    return "-" if value is None else format(value, form)


def ratio(row, result, field):
    """A figure to that of InnoDB's load of the dump as it is, or None."""
    for other in result["loads"]:
        if (other["variant"], other["engine"]) == REFERENCE:
            mine, its = middle(row["runs"], field), middle(other["runs"], field)
            return mine / its if mine and its else None
    return None


def amplification(row):
    """Bytes written for one byte of the final size, or None for an engine that keeps none."""
    size = middle(row["runs"], "disk_bytes")
    return middle(row["runs"], "written") / size if size else None


def columns(row, result):
    """The cells of one row, as text."""
    runs = row["runs"]
    size = middle(runs, "disk_bytes")
    return [
        row["variant"], row["engine"], text(middle(runs, "load_seconds"), ".1f"), text(middle(runs, "keys_seconds") or None, ".1f"),
        text(middle(runs, "seconds"), ".1f"), text(ratio(row, result, "seconds"), ".2f"), text(middle(runs, "flush_seconds"), ".1f"),
        text(middle(runs, "cpu_seconds"), ".1f"), text(size / 2**20 if size else None, ".1f"), text(ratio(row, result, "disk_bytes"), ".2f"),
        text(amplification(row), ".2f"), f"{spread(runs, 'seconds') * 100:.0f}%",
    ]


def head():
    """The head of the printed table."""
    return aligned(TITLES, WIDTHS)


def line(row, result):
    """A row of the printed table."""
    return aligned(columns(row, result), WIDTHS)


def summary(result):
    """The whole table with medians, and every error."""
    lines = [head(), *(line(row, result) for row in result["loads"])]
    lines += key_lines(result)
    lines.append(f"errors: {len(result['errors'])}")
    lines += [f"  {error['engine']} {error['where']}: {error['what']}" for error in result["errors"]]
    return "\n".join(lines)


def key_lines(result):
    """Seconds of each ADD INDEX, where they were done one by one."""
    rows = [row for row in result["loads"] if row["variant"] == "each" and row["runs"]]
    if not rows:
        return []
    lines = ["ADD INDEX one by one, s:"]
    for at, step in enumerate(rows[0]["runs"][0]["steps"][1:], 1):
        times = ", ".join(f"{row['engine']} {middle([run['steps'][at] for run in row['runs']], 'seconds'):.1f}" for row in rows)
        lines.append(f"  {step['name']}: {times}")
    return lines


def markdown(result):
    """The whole result as one file."""
    machine, settings = result["machine"], result["settings"]
    lines = [
        "# Import of a dump of forum articles", "",
        f"{machine['cores']} cores ({machine['cpu']}), {machine['server']}. {result.get('rows')} rows, a dump of"
        f" {result.get('dump_bytes', 0) / 2**20:.0f} MiB; {settings['cache']} cache each, flush mode 2. Medians of {settings['runs']} runs;"
        f" load average at the start {machine['load_average']:.1f}.", "",
        "| " + " | ".join(TITLES) + " |", "|---|---|" + "--:|" * (len(TITLES) - 2),
        *("| " + " | ".join(columns(row, result)) + " |" for row in result["loads"]), "",
        "```", *key_lines(result), f"errors: {len(result['errors'])}",
        *(f"  {error['engine']} {error['where']}: {error['what']}" for error in result["errors"]), "```", "",
    ]
    for error in result["errors"]:
        if "error_log" in error:
            lines += [f"Error log at: {error['engine']} {error['where']}", "", "```", error["error_log"], "```", ""]
    return "\n".join(lines)
