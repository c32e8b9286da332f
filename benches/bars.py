"""Bars beside each other: as text for a terminal, and as SVG that needs no script and nothing from the network."""

from dataclasses import dataclass
from html import escape

# Of the text's bars, in characters.
CELLS = 32
EIGHTHS = " ▏▎▍▌▋▊▉"
# Of the SVG, in pixels: where bars begin, how long the longest is, the width with what stands behind it, and the height
# of a line.
BEGIN, LONGEST, WIDTH, LINE = 128, 190, 490, 19

STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222}h1{font-size:1.5em}"
    "h2{font-size:1.15em;margin:1.8em 0 .2em}h3{font-size:1em;margin:.6em 0 .2em}.panels{display:flex;flex-wrap:wrap;gap:0 24px}"
    ".panels>div{flex:1 1 420px;min-width:0}svg{width:100%;max-width:480px;height:auto}text{font-size:11.5px;fill:#222;dominant-baseline:middle}"
    ".label{text-anchor:end}.group{font-weight:600}.little{fill:#b00020;font-weight:600}.axis{stroke:#999}.note{color:#555}.bad{color:#b00020}"
    "table{border-collapse:collapse;font-size:13px}td,th{padding:.15em .6em;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left}"
)


@dataclass(frozen=True)
class Bar:
    """One bar: whose it is, how long, what stands behind it. Without a value there is only that."""

    label: str
    value: float | None
    note: str
    color: str


def longest(groups):
    """The largest value of some groups, by which all of them are drawn: a group is a title and its bars."""
    return max((bar.value for _, bars in groups for bar in bars if bar.value), default=1)


def text(groups, largest):
    """Lines of text."""
    lines = []
    for title, bars in groups:
        lines.append(title)
        for bar in bars:
            eighths = round((bar.value or 0) / largest * CELLS * 8)
            drawn = "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
            lines.append(f"  {bar.label:<17}{drawn}{' ' if drawn else ''}{bar.note}")
    return lines


def svg(groups, largest):
    """The <svg> element. A bar that is too short to be seen has its figure in red."""
    parts, y = [], 0
    for title, bars in groups:
        parts.append(f'<text class="group" x="{BEGIN}" y="{y + LINE / 2 + 2}">{escape(title)}</text>')
        y += LINE
        parts.append(f'<line class="axis" x1="{BEGIN - .5}" x2="{BEGIN - .5}" y1="{y + 1}" y2="{y + LINE * len(bars) - 1}"/>')
        for bar in bars:
            length = (bar.value or 0) / largest * LONGEST
            seen = ' class="little"' if length < 1 else ""
            parts.append(
                f'<text class="label" x="{BEGIN - 7}" y="{y + LINE / 2}">{escape(bar.label)}</text>'
                f'<rect x="{BEGIN}" y="{y + 3}" width="{length:.1f}" height="{LINE - 6}" fill="{bar.color}"/>'
                f'<text{seen} x="{BEGIN + length + 6:.1f}" y="{y + LINE / 2}">{escape(bar.note)}</text>')
            y += LINE
        y += 6
    return f'<svg viewBox="0 0 {WIDTH} {y}" role="img">{"".join(parts)}</svg>'


def page(title, body):
    """An HTML page with the lines of `body`."""
    return "\n".join([
        "<!DOCTYPE html>", f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style></head><body>',
        f"<h1>{escape(title)}</h1>", *body, "</body></html>", "",
    ])
