"""Turns what memory.py measured into charts: as text, as a markdown file, and as an HTML page."""

from html import escape

import bars
import engine_report
from report import middle, ratio, spread

TITLE = "Tables in memory: MEMORY and Teak"
LABELS = {"Teak-in-memory": "Teak, in memory", "MEMORY": "MEMORY, btree", "MEMORY-hash": "MEMORY, hash"}
COLORS = {"InnoDB": "#8a8a8a", "Teak": "#7fbf7b", "Teak-in-memory": "#1b7837", "MEMORY": "#e08214", "MEMORY-hash": "#c51b7d"}
ABOUT = {
    "point-select": "one row by its primary key",
    "ranges": "read-only without its look-ups: four ranges of 100 keys",
    "read-only": "ten rows by primary key, four ranges of 100 keys",
    "read-write": "the same, then two UPDATEs, a DELETE and an INSERT",
    "write-only": "two UPDATEs, a DELETE and an INSERT",
}


def label(form):
    """A form of table, as the reader knows it."""
    return LABELS.get(form, form)


def count(number, what):
    """A number of things."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def setting(tables, threads):
    """Where a figure comes from."""
    return f"{count(tables, 'table')}, {count(threads, 'thread')}"


def rate(value):
    """Three digits or more."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def duration(microseconds):
    """In the unit that suits it."""
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= 10 * size:
            return f"{rate(microseconds / size)} {unit}"
    return f"{rate(microseconds)} µs"


def bar(form, value, note):
    """Of one form of table."""
    return bars.Bar(label(form), value, note, COLORS.get(form, "#2166ac"))


class Figures:
    """What was measured, by what it was measured of."""

    def __init__(self, result):
        self.result = result
        self.forms = result["engines"]
        self.rows = {(row["workload"], row["tables"], row["threads"]): row for row in result["workloads"]}
        self.tables, self.threads = (sorted({key[at] for key in self.rows}) for at in (1, 2))
        self.bytes = {(one["shape"], one["form"]): one for one in result["bytes"]}

    def of(self, form, workload, tables, threads, field="tps"):
        """Median, or None where nothing was measured."""
        row = self.rows.get((workload, tables, threads))
        return middle(row["runs"].get(form, []), field) if row else None

    def workloads(self):
        """In their order: name, and for each number of tables groups of bars by threads."""
        for name in ABOUT:
            panels = [(tables, [self.group(name, tables, threads) for threads in self.threads if (name, tables, threads) in self.rows])
                      for tables in self.tables]
            if any(groups for _, groups in panels):
                yield name, panels

    def group(self, workload, tables, threads):
        """The bars of one number of threads."""
        drawn = []
        for form in self.forms:
            value, processor = (self.of(form, workload, tables, threads, field) for field in ("tps", "cpu_us"))
            drawn.append(bar(form, value, "failed" if value is None else f"{rate(value)}/s, {duration(processor)}"))
        return count(threads, "thread"), drawn

    def weights(self):
        """Groups of bars: bytes for a row, by shape."""
        for shape in dict.fromkeys(shape for shape, _ in self.bytes):
            of_shape = [self.bytes[shape, form] for form in self.forms if (shape, form) in self.bytes]
            yield shape, [bar(one["form"], one["grown"], f"{rate(one['grown'])} bytes (own: {rate(one['own'])})") for one in of_shape]

    def sizes(self, tables):
        """What so many tables are."""
        return f"{count(tables, 'table')} of {self.result['settings']['rows'] // tables:,} rows"


def findings(figures):
    """What the figures say, in sentences; of what was not measured nothing is said."""
    if not figures.rows:
        return []
    return [sentence for sentence in (hash_ranges(figures), btree_ranges(figures), table_locks(figures)) if sentence]


def hash_ranges(figures):
    """A range over MEMORY's default keys."""
    tables, shown = figures.tables[0], []
    plan = figures.result["plans"].get(str(tables), {}).get("MEMORY-hash")
    for threads in (figures.threads[0], figures.threads[-1]):
        hashed, first = (figures.of(form, "read-only", tables, threads) for form in ("MEMORY-hash", figures.forms[0]))
        if None in (plan, hashed, first):
            return None
        shown.append(f"{rate(hashed)} transactions a second with {count(threads, 'thread')} ({label(figures.forms[0])}: {rate(first)})")
    return (f"MEMORY's default keys are hashes, which have no order: each range reads the whole table (EXPLAIN of a range of 100 keys in"
            f" {figures.sizes(tables)}: type {plan['type']}, {plan['rows']:,} rows). sysbench's read-only work has four ranges in a transaction: "
            + ", ".join(dict.fromkeys(shown)) + ". The larger the table, the slower.")


def btree_ranges(figures):
    """The same work with ordered keys, and in Teak."""
    tables, threads, first = figures.tables[0], figures.threads[-1], figures.forms[0]
    row, shown = figures.rows.get(("read-only", tables, threads)), []
    for form in figures.forms[1:]:
        if row and form != "MEMORY-hash" and ratio(row, (first, form)):
            shown.append(f"{label(form)} {ratio(row, (first, form)):.2f} times")
    if not shown:
        return None
    return f"With ordered keys there is no such scan. The read-only rate of {setting(tables, threads)} to {label(first)}'s: " + ", ".join(shown) + "."


def table_locks(figures):
    """Who waits for whole tables."""
    threads, shown = figures.threads[-1], []
    if threads == 1:
        return None
    for form in figures.forms:
        waits = [(figures.of(form, "write-only", tables, threads, "lock_waits"), tables) for tables in figures.tables]
        waits = [f"{wait:.2f} ({count(tables, 'table')})" for wait, tables in waits if wait is not None]
        if waits:
            shown.append(f"{label(form)} {', '.join(waits)}")
    if not shown:
        return None
    return (f"Each write locks the whole table in MEMORY. How often a write-only transaction of {count(threads, 'thread')} waited for a table's lock: "
            + "; ".join(shown) + ".")


def about(result):
    """What the figures are of."""
    machine, settings = result["machine"], result["settings"]
    found = (f"{machine['cores']} cores ({machine['cpu']}), {machine['server']}. {settings['charset']}, {settings['cache']} of cache each for InnoDB and Teak,"
             f" flush mode 2, no binlog; load average at the start {machine['load_average']:.1f}.")
    if result["workloads"]:
        found += f" sysbench: medians of {count(settings['runs'], 'run')} of {settings['seconds']} s, the forms in turns on one server."
        if settings["runs"] > 1:
            spreads = sorted(spread(runs) for row in result["workloads"] for runs in row["runs"].values())
            half, most = spreads[len(spreads) // 2], spreads[-1]
            found += f" Between runs half of the rates differ by at most {half * 100:.0f} %, all by at most {most * 100:.0f} %."
    return found


RATES = "Transactions a second (longer is better), and the server's processor time for one transaction (less is better)."
BYTES = ("What the server's resident memory grows by for a row (shorter is better). Own: what the engine itself says they take, which is the"
         " table's file for InnoDB and Teak.")


def text(result):
    """Charts and findings for a terminal; it is markdown as well."""
    figures = Figures(result)
    lines = [f"# {TITLE}", "", about(result), "", *(f"- {sentence}" for sentence in findings(figures)), ""]
    if figures.rows:
        lines += ["## sysbench", "", RATES, ""]
    for name, panels in figures.workloads():
        largest = bars.longest([group for _, groups in panels for group in groups])
        lines += [f"### {name}: {ABOUT[name]}", "", "```"]
        for tables, groups in panels:
            lines += bars.text([(f"{figures.sizes(tables)}, {title}", drawn) for title, drawn in groups], largest)
        lines += ["```", ""]
    if figures.bytes:
        lines += ["## Bytes for a row", "", BYTES, "", "```"]
        for group in figures.weights():
            lines += bars.text([group], bars.longest([group]))
        lines += ["```", ""]
    lines += [f"errors: {len(result['errors'])}", *(f"- {error['engine']}, {error['where']}: {error['what']}" for error in result["errors"])]
    return "\n".join(lines) + "\n"


def markdown(result):
    """The charts, and the statements' table."""
    statements = result["statements"]
    return text(result) + (f"\n{engine_report.markdown(statements)}" if statements else "")


def page(result):
    """The same as one page of HTML."""
    figures = Figures(result)
    body = [f'<p class="note">{escape(about(result))}</p>', "<ul>", *(f"<li>{escape(sentence)}</li>" for sentence in findings(figures)), "</ul>"]
    body += [f'<p class="bad">{escape(error["engine"])}, {escape(error["where"])}: {escape(error["what"])}</p>' for error in result["errors"]]
    if figures.rows:
        body += ["<h2>sysbench</h2>", f"<p>{RATES}</p>"]
    for name, panels in figures.workloads():
        largest = bars.longest([group for _, groups in panels for group in groups])
        body += [f"<h2>{name}: {ABOUT[name]}</h2>", '<div class="panels">']
        body += [f"<div><h3>{figures.sizes(tables)}</h3>{bars.svg(groups, largest)}</div>" for tables, groups in panels]
        body.append("</div>")
    if figures.bytes:
        body += ["<h2>Bytes for a row</h2>", f"<p>{BYTES}</p>", '<div class="panels">']
        body += [f"<div>{bars.svg([group], bars.longest([group]))}</div>" for group in figures.weights()]
        body.append("</div>")
    if result["statements"]:
        heads, rows = engine_report.table(result["statements"])
        body += ["<h2>Statements inside the server</h2>", f"<p>{escape(engine_report.about(result['statements']))}</p>", "<table>"]
        body += ["<tr>" + "".join(f"<th>{escape(label(head))}</th>" for head in heads) + "</tr>"]
        body += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
        body.append("</table>")
    return bars.page(TITLE, body)
