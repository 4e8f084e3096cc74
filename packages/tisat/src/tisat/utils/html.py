"""Tables for notebooks: plain HTML, every cell escaped.

Found, missed and false in the colours of every page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from tisat.utils.palette import BASELINE, FALSE, FOUND, tone

STYLE = "text-align:left;white-space:pre-wrap;vertical-align:top;padding:2px 10px 2px 0"
LOOKS = {
    "found": f";color:{FOUND}",
    "missed": ";font-weight:700",
    "false": f";color:{FALSE}",
    "baseline": f";color:{BASELINE}",
}


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, note: str = "") -> str:
    """A table as HTML; without rows its title and note alone.

    Examples
    --------
    >>> "&lt;b&gt;" in table("t", ["a"], [["<b>"]])
    True
    """
    head = "".join(f'<th style="{STYLE}">{escape(column)}</th>' for column in columns)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{STYLE}{LOOKS.get(tone(str(cell)), "")}">{escape(str(cell))}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    below = f"<div><small>{escape(note)}</small></div>" if note else ""
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if body else ""
    return f"<div><strong>{escape(title)}</strong></div>{whole}{below}"


def text(content: object) -> str:
    """Format text of fixed width as HTML."""
    return f"<pre>{escape(str(content))}</pre>"


class Printed:
    """Base of results that print as a table of fixed width, also in notebooks."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return text(self)
