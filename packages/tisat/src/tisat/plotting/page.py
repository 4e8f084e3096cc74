"""One self-contained HTML page: the answer on top, then sections of text, tables, pictures and charts one can zoom into.

Style, script and data are inside the file, and it forbids itself the network (a content security policy with the hashes of its own
scripts): it can be mailed, archived, printed and opened anywhere. Every text goes through ``escape``. What the sections say is the
caller's business.
"""

from __future__ import annotations

import base64
import hashlib
import io
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from tisat import __version__
from tisat.plotting import static
from tisat.plotting.charts import Group, safe_json
from tisat.utils import palette as _palette
from tisat.utils.extras import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHORT = 20  # characters of a cell that is not broken
CONTENTS = 4  # sections from which a page has a list of them


@dataclass(frozen=True)
class Table:
    """A table; columns of figures stand to the right, columns of text to the left.

    ``strong`` rows and ``best`` cells are bold.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""
    strong: Collection[int] = ()
    best: Collection[tuple[int, int]] = ()
    terms: Sequence[tuple[str, str]] = ()  # words of the table, each explained beside it

    @property
    def text_columns(self) -> tuple[bool, ...]:
        """Which columns hold text."""
        return tuple(any(isinstance(row[index], str) for row in self.rows) for index in range(len(self.columns)))


@dataclass(frozen=True)
class Picture:
    """An inline picture with its caption."""

    svg: str
    caption: str = ""


@dataclass(frozen=True)
class Block:
    """HTML that the caller has made and escaped itself."""

    html: str


@dataclass(frozen=True)
class Dot:
    """One row of :class:`Dots`: a value, what may be known beside it, and words for the one who points at it."""

    name: str
    value: float
    baseline_score: float = math.nan
    low: float = math.nan
    high: float = math.nan
    tick: float = math.nan
    tone: str = "curve"  # a colour of the palette
    hollow: bool = False


@dataclass(frozen=True)
class Dots:
    """Values on one scale, a row each: a dot, its interval, a second value as a tick, and what a trivial baseline gets as a bar."""

    title: str
    rows: Sequence[Dot]
    top: float = 1.0  # the right end of the scale
    caption: str = ""
    shown: str = "{:.3f}"
    bar: str = "best trivial baseline"  # what the bar is, in words


@dataclass(frozen=True)
class Key:
    """A figure on top of the page, in words."""

    value: str
    words: str
    tone: str = "line"  # found, missed, alarm, onset: a colour of the palette


Item = str | Table | Picture | Block | Dots | Group


@dataclass(frozen=True)
class Section:
    """A heading with what stands below it, in this order."""

    title: str
    content: Sequence[Item] = field(default_factory=tuple)
    folded: bool = False  # details: closed until somebody wants them


def format_cell(value: object) -> str:
    """A table cell: three decimals below 1000, thousands separated, a dash for what is undefined."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        number = float(value)
        return "–" if not math.isfinite(number) else f"{number:.3f}" if abs(number) < 1000 else f"{number:,.0f}"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return "–" if value is None else str(value)


def figure_to_svg(figure: Figure) -> str:
    """A matplotlib figure as SVG text in the colours of the page, with the same bytes for the same figure; the figure is closed."""
    pyplot = require("matplotlib.pyplot", whose="The report")
    buffer = io.StringIO()
    with pyplot.rc_context({"svg.hashsalt": "tisat", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": "tisat"}, bbox_inches="tight")
    pyplot.close(figure)
    text = buffer.getvalue()
    names = {colour: name for name, colour in reversed(_palette.LIGHT.items()) if colour.startswith("#")}
    names |= {"#000000": "ink", "#ffffff": "paper"}
    return re.sub(
        r"(fill|stroke): (#[0-9a-f]{6})",
        lambda found: f"{found[1]}: var(--{names[found[2]]})" if found[2] in names else found[0],
        text[text.index("<svg") :],
    )


def render_page(
    title: str,
    sections: Sequence[Section],
    *,
    lead: str = "",
    answer: str = "",
    more: Sequence[str] = (),
    keys: Sequence[Key] = (),
    next_steps: Sequence[str] = (),
    command: str = "",
) -> str:
    """The page as text.

    Parameters
    ----------
    title, lead : str
        The heading, and one sentence below it.
    sections : sequence of Section
    answer : str
        The whole in one sentence, on top.
    more : sequence of str
        Sentences below the answer.
    keys : sequence of Key
        The figures of the answer.
    next_steps : sequence of str
        What to type or do next, at the end.
    command : str
        The command that made it, printed on top and at the foot.

    Examples
    --------
    >>> page = render_page("Demo", [Section("One", ["A <sentence>.", Table(("a", "b"), [("x", 0.5)])])])
    >>> "A &lt;sentence&gt;." in page, "0.500" in page
    (True, True)
    """
    groups: list[Group] = []
    body = [_section(number, section, groups) for number, section in enumerate(sections)]
    scripts = [static.read("uPlot.iife.min.js"), static.read("charts.js")] if groups else []
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts
    )
    style = "\n".join([static.read("uPlot.min.css") if groups else "", _palette.css(), static.read("page.css")])
    contents = (
        "<nav class='contents' aria-label='Contents'>"
        + "".join(f"<a href='#s{number}'>{escape(section.title)}</a>" for number, section in enumerate(sections))
        + "</nav>"
    )
    icon = quote(static.read("icon.svg"))
    typed = f"<p class='typed'><code>{escape(command)}</code></p>" if command else ""
    data = safe_json([group.document() for group in groups])
    return "\n".join(
        [
            "<!doctype html>",
            "<html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'>",
            f"<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {hashes or chr(39) + 'none' + chr(39)}; base-uri 'none'; form-action 'none'\">",
            f"<title>{escape(title)}</title><link rel='icon' href='data:image/svg+xml,{icon}'><style>{style}</style></head><body>",
            f"<header><h1>{escape(title)}</h1>",
            f"<p class='answer'>{escape(answer)}</p>" if answer else "",
            "".join(f"<p>{_inline_html(sentence)}</p>" for sentence in more),
            "<div class='keys'>" + "".join(map(_key, keys)) + "</div>" if keys else "",
            f"<p class='soft'>{escape(lead)}</p>" if lead else "",
            typed,
            "</header>",
            contents if len(sections) >= CONTENTS else "",
            *body,
            _next(next_steps),
            f"<footer>Written by tisat {escape(__version__)}{' with <code>' + escape(command) + '</code>' if command else ''}."
            f"{' Charts: uPlot, MIT licence, Leon Sorokin.' if groups else ''}</footer>",
            *([f"<script type='application/json' id='data'>{data}</script>"] if groups else []),
            *(f"<script>{text}</script>" for text in scripts),
            "</body></html>",
        ]
    )


def _key(key: Key) -> str:
    return f"<div class='key' style='border-left-color:var(--{key.tone})'><b>{escape(key.value)}</b><span>{escape(key.words)}</span></div>"


def _next(steps: Sequence[str]) -> str:
    if not steps:
        return ""
    return (
        "<section class='next'><h2>What to do next</h2><ul>"
        + "".join(f"<li>{_inline_html(step)}</li>" for step in steps)
        + "</ul></section>"
    )


def _section(number: int, section: Section, groups: list[Group]) -> str:
    inside = "".join(_item(item, groups) for item in section.content)
    if section.folded:
        return f"<section id='s{number}'><details><summary><h2>{escape(section.title)}</h2></summary>{inside}</details></section>"
    return f"<section id='s{number}'><h2>{escape(section.title)}</h2>{inside}</section>"


def _item(item: Item, groups: list[Group]) -> str:
    if isinstance(item, str):
        return f"<p>{_inline_html(item)}</p>"
    if isinstance(item, Block):
        return item.html
    if isinstance(item, Picture):
        return f"<figure>{item.svg}{_caption(item.caption)}</figure>"
    if isinstance(item, Dots):
        return _dots(item)
    if isinstance(item, Group):
        groups.append(item)
        return _group(item, len(groups) - 1)
    return _table(item)


def _inline_html(text: str) -> str:
    """A sentence as HTML: escaped, what stands between backquotes as something to type."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _caption(text: str) -> str:
    return f"<figcaption>{_inline_html(text)}</figcaption>" if text else ""


def _group(group: Group, number: int) -> str:
    words = "".join(f"<span><i class='k-{kind}'></i>{escape(_palette.WORDS[kind])}</span>" for kind in group.legend)
    return (
        f"<figure class='group'>{f'<p class=legend>{words}</p>' if words else ''}<div class='charts' data-group='{number}'></div>"
        f"<noscript><p>The charts need a script; the tables have every figure.</p></noscript>{_caption(group.caption)}</figure>"
    )


def _table(item: Table) -> str:
    text = item.text_columns
    head = "".join(
        f"<th{' class=left' if left else ''}>{escape(name)}</th>" for name, left in zip(item.columns, text, strict=True)
    )
    body = []
    for i, row in enumerate(item.rows):
        cells = "".join(
            f"<td class='{_cell_class(value, left=left, best=(i, j) in item.best)}'>{escape(format_cell(value))}</td>"
            for j, (value, left) in enumerate(zip(row, text, strict=True))
        )
        body.append(f"<tr{' class=strong' if i in item.strong else ''}>{cells}</tr>")
    table = (
        "<div class='wide' tabindex='0'><table>"
        + (f"<caption>{escape(item.caption)}</caption>" if item.caption else "")
        + f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )
    if not item.terms:
        return table
    words = "".join(f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in item.terms)
    return f"<div class='beside'>{table}<dl class='terms'>{words}</dl></div>"


def _cell_class(value: object, *, left: bool, best: bool) -> str:
    short = isinstance(value, str) and len(value) <= SHORT
    said = _palette.tone(value) if isinstance(value, str) else ""
    return " ".join(name for name, on in (("left", left), ("best", best), ("short", short), (f"t-{said}", said)) if on)


def _dots(item: Dots) -> str:
    def place(value: float) -> float:
        return round(100.0 * min(max(value / item.top, 0.0), 1.0), 2)

    rows = []
    for row in item.rows:
        parts, words = [], [f"{row.name}: {item.shown.format(row.value)}"]
        if math.isfinite(row.baseline_score):
            parts.append(f"<i class='baseline' style='left:{place(row.baseline_score)}%'></i>")
            words.append(f"{item.bar} {item.shown.format(row.baseline_score)}")
        if math.isfinite(row.low) and math.isfinite(row.high):
            left, right = place(row.low), place(row.high)
            parts.append(
                f"<i class='range' style='left:{left}%;width:{right - left:.2f}%;background:var(--{row.tone})'></i>"
            )
            words.append(f"interval {item.shown.format(row.low)} to {item.shown.format(row.high)}")
        if math.isfinite(row.tick):
            parts.append(f"<i class='tick' style='left:{place(row.tick)}%;background:var(--{row.tone})'></i>")
            words.append(f"mean {item.shown.format(row.tick)}")
        look = (
            f"border:2px solid var(--{row.tone});background:var(--paper)"
            if row.hollow
            else f"background:var(--{row.tone})"
        )
        if math.isfinite(row.value):
            parts.append(f"<i class='dot' style='left:{place(row.value)}%;{look}'></i>")
        value = item.shown.format(row.value) if math.isfinite(row.value) else "–"
        rows.append(
            f"<div class='dots-row' tabindex='0' title='{escape('; '.join(words), quote=True)}'><span>{escape(row.name)}</span><div class='track'>{''.join(parts)}</div><b>{escape(value)}</b></div>"
        )
    scale = "".join(f"<span>{item.top * share:.3g}</span>" for share in (0.0, 0.5, 1.0))
    return (
        f"<figure class='dots'><h3>{escape(item.title)}</h3>{''.join(rows)}<div class='dots-row scale'><span></span><div>{scale}</div><b></b></div>"
        f"{_caption(item.caption)}</figure>"
    )
