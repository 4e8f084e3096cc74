"""Rows as text in, verdicts as JSON lines out, with a state file from which a killed process goes on.

Lines are csv (with or without a header) or JSON (an object by channel, or a list). Each line gets exactly one verdict; a
line that cannot be read gets one too, with status ``refused`` and the reason, and changes nothing.

Exactly once. The state file, replaced whole every ``every`` lines, holds the monitor, the number of input lines it has
seen and the number of output bytes written before it. A process that finds one cuts its output back to that many
bytes, passes over that many lines of input, and goes on: what was done after the last state is done again, identically.
So nothing is lost and nothing is doubled, whenever the process is killed, provided the input can be read again from
its beginning and the output is a file of its own. Without such an output (a pipe) the verdicts since the last state are
written again; each carries its line number. This module does not know where the lines come from.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from tisat._validation import check_integer
from tisat.errors import InputError, SeriesError
from tisat.online.monitor import Monitor
from tisat.reading.columns import LABEL_NAMES, TIME_NAMES

MISSING_WORDS = ("", "nan", "null", "none", "na", "n/a")


def _number(cell: str) -> float:
    text = cell.strip()
    return float("nan") if text.lower() in MISSING_WORDS else float(text)


def _time(cell: str) -> Any:
    text = cell.strip()
    try:
        return float(text)
    except ValueError:
        return text or None


def _is_number(cell: str) -> bool:
    try:
        _number(cell)
    except ValueError:
        return False
    return True


class LineReader:
    """Turns a line of text into a row and its time, for a detector with these channels.

    Parameters
    ----------
    channels : sequence of str
    header : list of str, optional
        The csv header, where it has been read before.

    Examples
    --------
    >>> reader = LineReader(["cpu", "disk"])
    >>> reader("time,disk,cpu"), reader("60,2.5,")
    (None, ({'cpu': nan, 'disk': 2.5}, 60.0))
    >>> reader('{"cpu": 1, "time": 120}')
    ({'cpu': 1}, 120)
    """

    def __init__(self, channels: Sequence[str], *, header: Sequence[str] | None = None) -> None:
        self.channels = tuple(channels)
        self.header = None if header is None else list(header)
        self._begun = header is not None

    def __call__(self, line: str) -> tuple[Any, Any] | None:
        """Row and time; None for an empty line or a csv header."""
        text = line.strip().lstrip("\ufeff")
        if not text:
            return None
        if text[0] in "{[":
            return self._json(text)
        try:
            cells = next(csv.reader([text]))
        except csv.Error as error:
            raise SeriesError(f"A row must be one line of csv. Got {text[:80]!r} instead ({error}).") from None
        if not self._begun:
            self._begun = True
            if not all(_is_number(cell) for cell in cells[1:]) or (len(cells) == 1 and not _is_number(cells[0])):
                self.header = self._check_header([cell.strip() for cell in cells])
                return None
        return self._cells(cells)

    def _check_header(self, header: list[str]) -> list[str]:
        names = [name for name in header if name.lower() not in (*TIME_NAMES, *LABEL_NAMES) or name in self.channels]
        unknown = [name for name in names if name not in self.channels]
        absent = [name for name in self.channels if name not in names]
        if unknown or absent:
            raise SeriesError(
                f"The header of the rows must name the channels {', '.join(self.channels)}. "
                f"Got {', '.join(unknown) or 'nothing'} besides, and {', '.join(absent) or 'none'} missing."
            )
        return header

    def _cells(self, cells: list[str]) -> tuple[Any, Any]:
        try:
            if self.header is None:
                extra = len(cells) - len(self.channels)
                if extra not in (0, 1):
                    raise SeriesError(
                        f"A row must have {len(self.channels)} values, or a time and as many. Got {len(cells)} instead."
                    )
                return [_number(cell) for cell in cells[extra:]], _time(cells[0]) if extra else None
            if len(cells) != len(self.header):
                raise SeriesError(
                    f"A row must have the {len(self.header)} cells of the header. Got {len(cells)} instead."
                )
            named = dict(zip(self.header, cells, strict=True))
            time = next(
                (name for name in self.header if name.lower() in TIME_NAMES and name not in self.channels), None
            )
            return {name: _number(named[name]) for name in self.channels}, None if time is None else _time(named[time])
        except ValueError as error:
            if isinstance(error, SeriesError):
                raise
            raise SeriesError(f"A row must hold numbers. Got {','.join(cells)[:80]!r} instead.") from None

    def _json(self, text: str) -> tuple[Any, Any]:
        try:
            row = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise SeriesError(f"A row in JSON must be whole. Got {text[:80]!r} instead ({error}).") from None
        if isinstance(row, list):
            return [np.nan if value is None else value for value in row], None
        time = next((name for name in row if name.lower() in TIME_NAMES and name not in self.channels), None)
        values = {name: value for name, value in row.items() if name != time and name.lower() not in LABEL_NAMES}
        return values, None if time is None else row[time]


def judge_line(monitor: Monitor, reader: LineReader, line: str, number: int) -> str | None:
    """The verdict on one line as a line of JSON; None for an empty line or a header."""
    try:
        read = reader(line)
        if read is None:
            return None
        answer = monitor.update(*read).to_json()
    except InputError as error:
        answer = {"row": None, "status": "refused", "reason": str(error), "active": monitor.alarm is not None}
    return json.dumps({"line": number, **answer}) + "\n"


def watch(
    monitor: Monitor,
    lines: Iterable[str],
    output: IO[bytes],
    *,
    state: str | Path | None = None,
    every: int = 100,
    header: Sequence[str] | None = None,
    seen: int = 0,
    written: int = 0,
    report: Callable[[str], None] = lambda _: None,
) -> int:
    """Judge every line until there are no more; the number of lines seen.

    Parameters
    ----------
    monitor : Monitor
    lines : iterable of str
        Those not yet seen.
    output : binary file
    state : path, optional
        Where the state is kept; nowhere unless given.
    every : int
        Lines between two states.
    header : list of str, optional
        The csv header, where it was among the lines already seen.
    seen, written : int
        Lines seen and bytes written before these.
    report : callable
        Gets a sentence when a line is refused.
    """
    check_integer(every, "every", "watch", minimum=1)
    reader = LineReader(monitor.detector.channels_, header=header)
    saved = seen

    def save() -> None:
        if state is not None:
            if output.seekable():
                os.fsync(output.fileno())
            monitor.snapshot(state, note={"lines": seen, "bytes": written, "header": reader.header})

    for line in lines:
        answer = judge_line(monitor, reader, line, seen)
        seen += 1
        if answer is not None:
            if '"status": "refused"' in answer:
                report(f"line {seen}: {json.loads(answer)['reason']}")
            content = answer.encode()
            output.write(content)
            output.flush()
            written += len(content)
        if seen - saved >= every:
            save()
            saved = seen
    save()
    return seen
