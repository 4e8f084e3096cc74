"""Progress bars, on a terminal and nowhere else: a log file or a pipe never sees one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Bar(Protocol):
    """What long work reports to."""

    def advance(self, steps: float = 1, note: str = "") -> None:
        """Move on by ``steps``; ``note`` replaces the text behind the bar."""


class _Silent:
    def advance(self, steps: float = 1, note: str = "") -> None:
        return


@contextmanager
def progress(description: str, *, total: float | None, disable: bool = False) -> Iterator[Bar]:
    """A bar on standard error while it is a terminal; silence otherwise.

    Examples
    --------
    >>> with progress("training", total=3) as bar:
    ...     bar.advance(note="loss 0.5")
    """
    if disable or not sys.stderr.isatty():
        yield _Silent()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(description, total=total, note="")

        class _Shown:
            def advance(self, steps: float = 1, note: str = "") -> None:
                shown.update(task, advance=steps, note=note or shown.tasks[task].fields["note"])

        yield _Shown()
