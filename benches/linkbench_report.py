"""Turns what linkbench.py measured into a markdown file: figures of each engine, and goals."""

from statistics import median

MIB = 2**20


def phase(run, index):
    """Operations per second, and GET_LINKS_LIST's mean, of a phase."""
    this = run["phases"][index]
    return this["operations_per_second"], this["operations"].get("GET_LINKS_LIST", {"mean": 0.0})["mean"]


FIGURES = {
    "ops/s before": lambda run: phase(run, 0)[0],
    "snapshot": lambda run: phase(run, 1)[0],
    "after": lambda run: phase(run, 2)[0],
    "snapshot/before": lambda run: phase(run, 1)[0] / phase(run, 0)[0],
    "list ms before": lambda run: phase(run, 0)[1],
    "list ms snapshot": lambda run: phase(run, 1)[1],
    "list snapshot/before": lambda run: phase(run, 1)[1] / phase(run, 0)[1],
    "p99 ms before": lambda run: run["phases"][0]["total"]["p99"],
    "p99 ms snapshot": lambda run: run["phases"][1]["total"]["p99"],
    "max ms": lambda run: max(one["total"]["max"] for one in run["phases"]),
    "repeated": lambda run: sum(sum(one["retries"].values()) for one in run["phases"]),
    "cpu us/op": lambda run: run["cpu_seconds"] * 1e6 / run["operations"],
    "load s": lambda run: run["load"]["seconds"],
    "MiB loaded": lambda run: run["loaded_bytes"] / MIB,
    "MiB after": lambda run: run["disk_bytes"] / MIB,
    "written bytes/op": lambda run: run["written"] / run["operations"],
}


def figure(result, engine, name):
    """The median over the runs, or None if there was none."""
    return middle(result["linkbench"].get(engine, []), FIGURES[name])


def middle(runs, value):
    return median(map(value, runs)) if runs else None


def number(value):
    """A figure with three digits or more."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(head, rows):
    """Lines of a markdown table."""
    return ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|", *("| " + " | ".join(row) + " |" for row in rows), ""]


def to(mine, its):
    """A ratio, or None if one side is missing."""
    return mine / its if mine is not None and its else None


def goals(result):
    """What must be shown: the number of the point, what it is, its value for each engine, Teak's value that counts, the goal."""
    def of(engine, name):
        return figure(result, engine, name)

    def all_of(value):
        return [value(engine) for engine in result["engines"]]

    def hot(engine):
        return middle(result["hotrow"].get(engine, []), lambda run: run["ratio"])

    def queue(engine):
        return middle(result["queue"].get(engine, []), lambda run: run["under_snapshot"]["median"])

    points = [
        ("1", "ops/s, snapshot to before", all_of(lambda e: of(e, "snapshot/before")), of("Teak", "snapshot/before"), ">=", 0.97),
        ("1", "GET_LINKS_LIST mean, snapshot to before", all_of(lambda e: of(e, "list snapshot/before")), of("Teak", "list snapshot/before"), "<=", 1.05),
    ]
    for other, shown in (("InnoDB", "InnoDB"), ("RocksDB", "MyRocks")):
        points.append(("2", f"ops/s without snapshot, to {shown}'s", all_of(lambda e, o=other: to(of(e, "ops/s before"), of(o, "ops/s before"))),
                       to(of("Teak", "ops/s before"), of(other, "ops/s before")), ">=", 1.2))
    for other, shown, goal in (("InnoDB", "InnoDB", 0.33), ("RocksDB", "MyRocks", 1.0)):
        points.append(("3", f"disk after the run, to {shown}'s", all_of(lambda e, o=other: to(of(e, "MiB after"), of(o, "MiB after"))),
                       to(of("Teak", "MiB after"), of(other, "MiB after")), "<=", goal))
    points.append(("3", "bytes written per operation, to InnoDB's", all_of(lambda e: to(of(e, "written bytes/op"), of("InnoDB", "written bytes/op"))),
                   to(of("Teak", "written bytes/op"), of("InnoDB", "written bytes/op")), "<=", 0.5))
    points.append(("4", "hot row, rate with snapshot to without", all_of(hot), hot("Teak"), ">=", 0.95))
    points.append(("5", "queue's first row under a snapshot, ms", all_of(queue), queue("Teak"), "<=", 10.0))
    return points


def verdict(value, sign, goal):
    """Whether the goal is reached."""
    if value is None:
        return "not measured"
    reached = value >= goal if sign == ">=" else value <= goal
    return "reached" if reached else "missed"


def markdown(result):
    """The whole result as one file."""
    about, settings = result["machine"], result["settings"]
    engines = result["engines"]
    rate = f"{settings['rate']} requests a second" if settings["rate"] else "as many requests as possible"
    lines = [
        "# LinkBench with a long-running snapshot", "",
        f"{about['cores']} cores ({about['cpu']}), {about['server']}. {settings['maxid']} nodes, {settings['requesters']} requesters, {rate}, warm-up of"
        f" {settings['warmup']} s, three phases of {settings['phase']} s, {settings['cache']} cache each, flush mode 2. Medians of {settings['runs']} runs;"
        f" load average at the start {about['load_average']:.1f}. RocksDB is MyRocks with zstd.", "",
        *table(["point", *engines, "goal for Teak", ""], [
            [f"{point}. {what}", *map(number, values), f"{sign} {goal}", verdict(value, sign, goal)]
            for point, what, values, value, sign, goal in goals(result)
        ]),
        "## LinkBench", "",
        *table(["", *engines], [[name, *(number(figure(result, engine, name)) for engine in engines)] for name in FIGURES]),
        "## Hot row and queue", "",
        *table(["", *engines], [
            ["updates/s without snapshot", *(number(middle(result["hotrow"][e], lambda run: run["without"]["per_second"])) for e in engines)],
            ["updates/s with snapshot", *(number(middle(result["hotrow"][e], lambda run: run["with"]["per_second"])) for e in engines)],
            ["in its last second", *(number(middle(result["hotrow"][e], lambda run: run["with"]["series"][-1])) for e in engines)],
            ["the snapshot's read, ms", *(number(middle(result["hotrow"][e], lambda run: run["snapshot_read_ms"])) for e in engines)],
            ["first row of the queue, ms, before", *(number(middle(result["queue"][e], lambda run: run["before"]["median"])) for e in engines)],
            ["under the snapshot", *(number(middle(result["queue"][e], lambda run: run["under_snapshot"]["median"])) for e in engines)],
            ["slowest of all under it", *(number(middle(result["queue"][e], slowest)) for e in engines)],
            ["after it", *(number(middle(result["queue"][e], lambda run: run["after"]["median"])) for e in engines)],
            ["rows turned over/s", *(number(middle(result["queue"][e], lambda run: run["rows"] / run["seconds"])) for e in engines)],
        ]),
        f"errors: {len(result['errors'])}", "",
        *(f"- {error['engine']} {error['where']}: {error['what']}" for error in result["errors"]),
    ]
    for error in result["errors"]:
        if "error_log" in error:
            lines += ["", f"Error log at: {error['engine']} {error['where']}", "", "```", error["error_log"], "```"]
    return "\n".join(lines) + "\n"


def slowest(run):
    """The longest of all queries that were timed while the snapshot was open."""
    return max(point["timing"]["max"] for point in run["points"])
