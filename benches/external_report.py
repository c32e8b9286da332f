"""The table about what external.py measured."""

BASE = "InnoDB"
HEADS = [
    "engine", "stored MB", "server says", "disk MB", "ratio", "load MB/s", "cold q/s", "ratio", "last q/s", "ratio", "read kB/query, cold", "last",
]
TIMES = {"mean": "mean", "p50": "50 %", "p95": "95 %", "p99": "99 %", "p9999": "99.99 %", "max": "max"}


def disk(outcome):
    """Bytes of the files, or what the server says."""
    return outcome["disk_bytes"] or outcome["table_bytes"]


def rate(outcome, number):
    """Queries a second of a run, or None."""
    return outcome["runs"][number]["queries_per_second"] if outcome["runs"] else None


def shown(value, form):
    """A figure, if there is one."""
    return "-" if value is None else format(value, form)


def ratio(value, base):
    """To InnoDB's."""
    return f"{value / base:.2f}" if value and base else "-"


def row(outcome, base):
    """The cells of one engine: sizes and rates."""
    runs = outcome["runs"]
    def kilobytes(number):
        count = runs[number]["disk_bytes_per_query"] if runs else None
        return shown(None if count is None else count / 1e3, ".1f")
    def to_base(figure):
        return ratio(figure(outcome), figure(base) if base else None)
    return [
        outcome["label"], f"{outcome['value_bytes'] / 1e6:.0f}", f"{outcome['table_bytes'] / 1e6:.0f}", f"{disk(outcome) / 1e6:.0f}", to_base(disk),
        shown(outcome["load"] and outcome["load"]["mb_per_second"], ".1f"),
        shown(rate(outcome, 0), ".0f"), to_base(lambda one: rate(one, 0)), shown(rate(outcome, -1), ".0f"), to_base(lambda one: rate(one, -1)),
        kilobytes(0), kilobytes(-1),
    ]


def times(outcome):
    """The rows of one engine: times of the first run, the last, and of inserts."""
    found = {}
    if outcome["runs"]:
        found |= {"first run, cold" if outcome["cold"] else "first run": outcome["runs"][0]["times"], "last run": outcome["runs"][-1]["times"]}
    if outcome["inserts"]:
        found |= {"inserts": outcome["inserts"]["sent_times"], "inserts, from due": outcome["inserts"]["times"]}
    return [[outcome["label"], name, str(one["count"]), *(f"{one[figure]:.2f}" for figure in TIMES)] for name, one in found.items()]


def table(heads, words, rows):
    """Lines of a table whose first columns are so many of words."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * words + "--:|" * (len(heads) - words)]
    return lines + ["| " + " | ".join(cells) + " |" for cells in rows]


def markdown(result):
    """The table for each form of texts, and what it is of."""
    made, settings = result["machine"], result["settings"]
    lines = [
        "# A wiki's store of texts", "",
        f"{made['cores']} cores ({made['cpu']}), {made['server']}. {result['memory']}; {settings['cache']} of cache for InnoDB, Teak and MyRocks; flush mode 2,"
        f" no binlog. {settings['threads']} threads read {settings['group']} random ids{' of newest revisions' if settings['newest'] else ''} each in a run, {settings['runs']} runs, the first after a restart with"
        f" empty caches; {settings['inserts']:g} inserts a second beside them. Load average at the start {made['load_average']:.1f}.",
    ]
    if settings["quick"]:
        lines += ["", "**A quick look: everything is small, and the figures mean nothing.**"]
    forms = list(dict.fromkeys(outcome["settings"]["form"] for outcome in result["outcomes"]))
    for form in forms:
        outcomes = [outcome for outcome in result["outcomes"] if outcome["settings"]["form"] == form]
        base, first = next((outcome for outcome in outcomes if outcome["label"] == BASE), None), outcomes[0]
        lines += [
            "", f"## Texts {'as they are' if form == 'plain' else 'gzipped'}", "",
            f"{first['records']} records, {first['text_bytes'] / 1e6:.0f} MB of texts; ratios are to {BASE}.", "",
            *table(HEADS, 1, [row(outcome, base) for outcome in outcomes]), "", "Times in ms:", "",
            *table(["engine", "of", "count", *TIMES.values()], 2, [cells for outcome in outcomes for cells in times(outcome)]),
        ]
    lines += ["", f"errors: {len(result['errors'])}", *(f"- {error['engine']}, {error['where']}: {error['what']}" for error in result["errors"])]
    return "\n".join(lines) + "\n"
