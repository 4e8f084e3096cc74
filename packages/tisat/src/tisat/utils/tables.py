"""A table as plain text in four formats: Markdown, LaTeX, csv, and the page's own HTML table. It knows cells, not what they mean."""

from __future__ import annotations

import contextlib
import csv
import io
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

DASH = "–"


def percent(value: float | None) -> str:
    """A share as a percentage with one decimal, a dash where it is undefined.

    Examples
    --------
    >>> percent(0.5678), percent(float("nan"))
    ('56.8', '–')
    """
    return DASH if value is None or math.isnan(value) else f"{100 * value:.1f}"


def signed(value: float) -> str:
    """A difference in percentage points with its sign.

    Examples
    --------
    >>> signed(-0.012), signed(0.0)
    ('-1.2', '+0.0')
    """
    return DASH if math.isnan(value) else f"{100 * value:+.1f}"


@dataclass(frozen=True)
class Layout:
    """A table: grouped columns, rows of text, and a caption that says everything needed to read it."""

    title: str
    columns: Sequence[tuple[str, str]]  # (group, header); the group may be empty
    rows: Sequence[Sequence[str]]
    caption: str
    left: int = 1  # columns of words
    rules: Sequence[int] = ()  # rows before which a line is drawn
    strong: Collection[tuple[int, int]] = ()  # (row, column) of cells printed bold

    @property
    def headers(self) -> list[str]:
        """One line of headers, groups spelled out."""
        return [f"{group} {header}".strip() for group, header in self.columns]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The line of groups above the headers: each with the number of columns it spans."""
        # Columns without a group stand alone.
        runs = groupby(enumerate(self.columns), key=lambda one: one[1][0] or one[0])
        return [(found[0][1][0], len(found)) for found in (list(run) for _, run in runs)]

    def markdown(self) -> str:
        """GitHub's tables."""
        right = ["---" if i < self.left else "---:" for i in range(len(self.columns))]
        lines = [f"### {self.title}", "", _line(self.headers), _line(right)]
        for i, row in enumerate(self.rows):
            lines.append(_line([f"**{cell}**" if (i, j) in self.strong else cell for j, cell in enumerate(row)]))
        return "\n".join([*lines, "", self.caption, ""])

    def latex(self) -> str:
        """A booktabs table."""
        top = " & ".join(
            f"\\multicolumn{{{n}}}{{c}}{{{_tex(group)}}}" if n > 1 or group else "" for group, n in self.groups
        )
        rules, column = [], 1
        for group, n in self.groups:
            if group:
                rules.append(f"\\cmidrule(lr){{{column}-{column + n - 1}}}")
            column += n
        lines = [
            r"\begin{table*}",
            r"\centering\small",
            f"\\begin{{tabular}}{{{'l' * self.left}{'r' * (len(self.columns) - self.left)}}}",
            r"\toprule",
            *([f"{top} \\\\ {''.join(rules)}"] if rules else []),
            " & ".join(_tex(header) for _, header in self.columns) + r" \\",
            r"\midrule",
        ]
        for i, row in enumerate(self.rows):
            if i in self.rules:
                lines.append(r"\midrule")
            cells = [f"\\textbf{{{_tex(cell)}}}" if (i, j) in self.strong else _tex(cell) for j, cell in enumerate(row)]
            lines.append(" & ".join(cells) + r" \\")
        lines += [
            r"\bottomrule",
            r"\end{tabular}",
            f"\\caption{{{_tex(self.title)}. {_tex(self.caption)}}}",
            r"\end{table*}",
            "",
        ]
        return "\n".join(lines)

    def csv(self) -> str:
        """Plain csv with one line of headers."""
        return csv_text(self.headers, self.rows)


def csv_text(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """A header and rows as csv."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def best_cells(rows: Sequence[Sequence[str]], columns: Iterable[int]) -> frozenset[tuple[int, int]]:
    """The highest figure of each of some columns.

    What is marked as not comparable does not take part, ties share.

    Examples
    --------
    >>> sorted(best_cells([["a", "1.0"], ["b", "3.5"], ["c", "9.9*"], ["d", "3.5"]], [1]))
    [(1, 1), (3, 1)]
    """
    cells = set()
    for j in columns:
        figures = {}
        for i, row in enumerate(rows):
            with contextlib.suppress(ValueError):
                figures[i] = float(row[j])
        top = max(figures.values(), default=None)
        cells |= {(i, j) for i, figure in figures.items() if figure == top}
    return frozenset(cells)


def _line(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


TEX = {letter: f"\\{letter}" for letter in "{}$&%#_"}
TEX |= {"\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\~{}", "<": "$<$", ">": "$>$", "–": "--", "`": "", "*": ""}


def _tex(text: str) -> str:
    return "".join(TEX.get(letter, letter) for letter in text)
