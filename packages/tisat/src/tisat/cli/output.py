"""Print the results of verbs as tables or as JSON."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

WIDEST = 10_000  # characters of a table in a pipe or a file, where nothing is gained by folding its cells
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")]


def plain(value: object) -> Any:
    """``value`` as JSON can say it: numpy becomes Python, NaN becomes null."""
    import numpy as np

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


@contextmanager
def training_reported() -> Iterator[None]:
    """Print on standard error where the training of networks stands, also into a log file."""

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            typer.echo(record.getMessage(), err=True)

    logger, lines = logging.getLogger("tisat.training"), Lines()
    before = logger.level
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(lines)
        logger.setLevel(before)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(plain(value), indent=2, ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, note: str = "") -> None:
    """A table; columns of figures stand to the right, columns of text to the left. Without rows the title and the note alone. What is undefined is a dash; found, missed and false have their colours."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    from tisat.plotting.page import format_cell
    from tisat.utils.palette import TERMINAL, tone

    if not rows:  # a head over nothing helps nobody
        for words in filter(None, (title, note)):
            Console(soft_wrap=False).print(Text(words))
        return
    table = Table()
    for index, column in enumerate(columns):
        text = any(isinstance(row[index], str) for row in rows)
        table.add_column(escape(column), justify="left" if text else "right", no_wrap=index == 0, overflow="fold")
    for row in rows:
        cells = [format_cell(value) for value in row]
        table.add_row(*(Text(cell, style=TERMINAL.get(tone(cell), "")) for cell in cells))
    before, after = Text(title, style="table.title"), Text(note, style="table.caption")
    usual = Console(soft_wrap=False)
    fits = usual.is_terminal or "COLUMNS" in os.environ
    for part in (before, table, after):  # not of the table: beside a narrow one words would be folded
        if part:
            console = usual if fits or part is not table else Console(width=WIDEST)
            console.print(part)
