"""One self-contained HTML page from sections of text, tables and pictures.

Pictures are inline SVG, the style is inline, and there is no script: the file can be mailed, archived and opened
anywhere. What the sections say is the caller's business.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tisat._extras import require
from tisat._version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Table:
    """A table; columns of figures stand to the right, columns of text to the left; ``strong`` rows are bold."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    strong: Sequence[int] = ()

    @property
    def text(self) -> tuple[bool, ...]:
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
class Section:
    """A heading with paragraphs, tables and pictures below it, in this order of the sequence."""

    title: str
    content: Sequence[str | Table | Picture | Block] = field(default_factory=tuple)


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title><style>
:root { color-scheme: light dark; --ink: #1d2330; --soft: #5d6675; --line: #d9dde4; --paper: #ffffff; --mark: #f3f5f8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa4b5; --line: #363d4a; --paper: #14171d; --mark: #1f242d; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.2rem; margin: 2.25rem 0 .5rem; } .lead { color: var(--soft); margin: 0 0 1.5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .75rem 0; } caption { caption-side: bottom; text-align: left; color: var(--soft); font-size: .875rem; padding-top: .4rem; }
th, td { padding: .25rem .8rem; border-bottom: 1px solid var(--line); text-align: right; } th { font-weight: 600; border-bottom-width: 2px; }
th.left, td.left { text-align: left; } tr.strong { font-weight: 600; background: var(--mark); } td.best { font-weight: 700; }
figure { margin: 1rem 0; background: #fff; border: 1px solid var(--line); border-radius: 6px; padding: .75rem; overflow-x: auto; } figure svg { max-width: 100%; height: auto; display: block; }
figcaption { color: #5d6675; font-size: .875rem; margin-top: .5rem; } pre { background: var(--mark); padding: .75rem 1rem; border-radius: 6px; overflow-x: auto; }
.answer { font-size: 1.25rem; font-weight: 600; } .wide { overflow-x: auto; }
@media (max-width: 40rem) { figure svg { max-width: none; width: 44rem; } th, td { padding: .25rem .5rem; } td.left { min-width: 6rem; } }
@media print { body { margin: 0; max-width: none; font-size: 11px; } section { break-inside: auto; } figure { break-inside: avoid; } }
footer { color: var(--soft); font-size: .8rem; border-top: 1px solid var(--line); margin-top: 3rem; padding-top: .75rem; }
</style></head><body>
<h1>{{ title }}</h1>{% if lead %}<p class="lead">{{ lead }}</p>{% endif %}
{% for section in sections %}<section><h2>{{ section.title }}</h2>
{% for item in section.content %}{% if item is string %}<p>{{ item }}</p>
{% elif item.html is defined %}{{ item.html | safe }}
{% elif item.svg is defined %}<figure>{{ item.svg | safe }}{% if item.caption %}<figcaption>{{ item.caption }}</figcaption>{% endif %}</figure>
{% else %}<div class="wide"><table>{% if item.caption %}<caption>{{ item.caption }}</caption>{% endif %}<thead><tr>
{% for column in item.columns %}<th{% if item.text[loop.index0] %} class="left"{% endif %}>{{ column }}</th>{% endfor %}</tr></thead><tbody>
{% for row in item.rows %}<tr{% if loop.index0 in item.strong %} class="strong"{% endif %}>{% for value in row %}<td{% if item.text[loop.index0] %} class="left"{% endif %}>{{ value | cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>{% endif %}{% endfor %}</section>
{% endfor %}<footer>Written by tisat {{ version }}{% if command %} with <code>{{ command }}</code>{% endif %}.</footer></body></html>
"""


def format_cell(value: Any) -> str:
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
    """A matplotlib figure as SVG text, with the same bytes for the same figure; the figure is closed."""
    pyplot = require("matplotlib.pyplot", whose="The report")
    buffer = io.StringIO()
    with pyplot.rc_context({"svg.hashsalt": "tisat", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": "tisat"}, bbox_inches="tight")
    pyplot.close(figure)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def render_page(title: str, sections: Sequence[Section], *, lead: str = "", command: str = "") -> str:
    """The page as text.

    Parameters
    ----------
    title, lead : str
        The heading, and one sentence below it.
    sections : sequence of Section
    command : str
        The command that made it, printed at the foot.

    Examples
    --------
    >>> page = render_page("Demo", [Section("One", ["A <sentence>.", Table(("a", "b"), [("x", 0.5)])])])
    >>> "A &lt;sentence&gt;." in page, "0.500" in page
    (True, True)
    """
    jinja2 = require("jinja2", whose="The report")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=False)
    environment.filters["cell"] = format_cell
    page: str = environment.from_string(PAGE).render(
        title=title, sections=sections, lead=lead, command=command, version=__version__
    )
    return page
