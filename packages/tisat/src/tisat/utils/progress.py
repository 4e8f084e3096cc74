"""Progress: a bar on a terminal.

Elsewhere, where asked for, a line every ten seconds to the logger ``tisat.training``.

A log file or a pipe never sees a bar.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from typing import Protocol

SECONDS = 10.0  # between two lines
REPORT = logging.getLogger("tisat.training")  # the command line prints it


_open: list[str] = []  # descriptions


class Bar(Protocol):
    """Interface of a progress display."""

    def advance(self, steps: float = 1, note: str = "") -> None:
        """Move on by ``steps``; ``note`` replaces the text behind the bar."""


class _Silent:
    def advance(self, steps: float = 1, note: str = "") -> None:
        return


class _Lines:
    def __init__(self, description: str, total: float, unit: str = "") -> None:
        self.description, self.total, self.unit, self.done = description, total, unit, 0.0
        self.began = self.last = time.monotonic()

    def advance(self, steps: float = 1, note: str = "") -> None:
        self.done += steps
        now = time.monotonic()
        if steps and now - self.last >= SECONDS and self.done < self.total:
            left = (now - self.began) * (self.total / self.done - 1.0)
            share = (
                f"{self.unit} {self.done + 1:.0f} of {self.total:.0f}"
                if self.unit
                else f"{100 * self.done / self.total:.0f} %"
            )
            REPORT.info("%s: %s, about %.0f s left", self.description, share, left)
            self.last = now


@contextmanager
def progress(
    description: str, *, total: float | None, disable: bool = False, lines: bool = False, unit: str = ""
) -> Iterator[Bar]:
    """A bar on standard error while it is a terminal.

    Else, with ``lines``, a line now and then to the logger; with a ``unit`` it counts steps ("model 2 of 6").

    Examples
    --------
    >>> with progress("training", total=3) as bar:
    ...     bar.advance(note="loss 0.5")
    """
    _open.append(description)
    try:
        with _display(description, total, disable=disable, lines=lines, unit=unit) as bar:
            yield bar
    finally:
        _open.remove(description)


def is_shown() -> bool:
    """Whether a progress is open already, or this is a worker whose caller has one: another within it is not wanted."""
    return bool(_open) or parent_process() is not None


@contextmanager
def _display(description: str, total: float | None, *, disable: bool, lines: bool, unit: str) -> Iterator[Bar]:
    if disable or not sys.stderr.isatty():
        yield _Lines(description, total, unit) if lines and total and not disable else _Silent()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total, note="")

        class _Shown:
            def advance(self, steps: float = 1, note: str = "") -> None:
                bar.update(task, advance=steps, note=note or bar.tasks[task].fields["note"])

        yield _Shown()
