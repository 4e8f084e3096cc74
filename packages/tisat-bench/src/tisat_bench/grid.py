"""The grid most tables are: systems down, data sets across, and beside each what was printed elsewhere. It knows no score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tisat.utils.tables import DASH, Layout, percent
from tisat_bench.captions import FEWER
from tisat_bench.figures import Adjusted, Figure
from tisat_bench.frozen import Frozen
from tisat_bench.published_figures import Printed


class Grid:
    """Columns and rows of a table over the systems that are shown, the paper's first, then those that are not in it.

    Parameters
    ----------
    frozen : Frozen
    systems : iterable of str
        Those that are shown, in any order and as often as one likes.
    headers : sequence of str
        The columns of each data set.
    printed : Printed, optional
        One more column for each data set it covers, and one for each that was printed and that we do not have.
    names : sequence of str
        The columns before the first data set.
    """

    def __init__(
        self,
        frozen: Frozen,
        systems: Iterable[str],
        headers: Sequence[str],
        *,
        printed: Printed | None = None,
        names: Sequence[str] = ("System",),
    ) -> None:
        there = set(systems)
        named = sorted((one for one in frozen.about["systems"] if one["name"] in there), key=lambda one: one["ours"])
        self.systems = [one["name"] for one in named]
        self.theirs = sum(not one["ours"] for one in named)  # before this row a line is drawn
        self.datasets = list(frozen.about["data"])
        self.printed = printed or Printed(None, "spd")
        self.absent = self.printed.absent(self.datasets)
        self.columns = [("", name) for name in names]
        for dataset in self.datasets:
            beside = [self.printed.header] if self.printed.covers(dataset) else []
            self.columns += [(frozen.titles[dataset], header) for header in (*headers, *beside)]
        self.columns += [(frozen.titles[name], self.printed.header) for name in self.absent]

    def row(self, name: str, cells: Callable[[str, str], Sequence[str]], *more: str) -> list[str]:
        """The row of a system, or of whatever has the name: ``cells(name, data set)``, and what was printed of it."""
        row_cells = [name, *more]
        for dataset in self.datasets:
            row_cells += cells(name, dataset)
            row_cells += [self.printed.cell(name, dataset)] if self.printed.covers(dataset) else []
        return row_cells + [self.printed.cell(name, dataset) for dataset in self.absent]

    def rows(self, cells: Callable[[str, str], Sequence[str]]) -> list[list[str]]:
        """The row of every system."""
        return [self.row(system, cells) for system in self.systems]

    def layout(self, title: str, rows: list[list[str]], below: str, *, feet: int = 0, **more: Any) -> Layout:
        """The table; the last ``feet`` rows are no systems."""
        lines = (self.theirs, len(rows) - feet) if feet else (self.theirs,)
        return Layout(title, self.columns, rows, below, rules=lines, **more)


def fewer(figure: Figure | Adjusted | None) -> str:
    """The mark of a figure on fewer entities than the others."""
    return FEWER if figure is not None and figure.entities < figure.of else ""


def percents(figure: Figure | Adjusted | None, *fields: str) -> list[str]:
    """Fields of a figure in percent, marked where it is on fewer entities.

    Dashes where there is none.
    """
    return [DASH if figure is None else percent(getattr(figure, name)) + fewer(figure) for name in fields]
