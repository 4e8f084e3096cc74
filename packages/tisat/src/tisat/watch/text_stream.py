"""Rows as text in, results as JSON lines out, with a state file from which a killed process goes on.

Lines are csv (with or without a header) or JSON (an object by channel, or a list). Each line gets exactly one result; a
line that cannot be read gets one too, with status ``refused`` and the reason, and changes nothing. A header that does not
fit the model ends the watch: what follows could only be scored wrongly. A last line without its newline is still being
written, and waits.

Exactly once. The state file, replaced whole every ``every`` lines and when the watch ends, holds the monitor, the number of
input lines it has seen and the number of output bytes written before it. A process that finds one cuts its output back to
that many bytes, passes over that many lines of input, and goes on: what was done after the last state is done again,
identically. So nothing is lost and nothing is doubled, whenever the process is killed, provided the input can be read
again from its beginning and the output is a file of its own. Without such an output (a pipe) the results since the last
state are written again; each carries its line number, counted from 1. This module does not know where the lines come from.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tisat.errors import SeriesError
from tisat.io.columns import DATE_NAMES, LABEL_NAMES, TIME_NAMES, UNNAMED, choose, listed, order_of, time_columns
from tisat.io.files import Reading
from tisat.io.missing_values import is_missing, is_word
from tisat.io.text_lines import SHOWN, Writing
from tisat.io.timestamps import epoch_unit
from tisat.utils.near_names import meant
from tisat.utils.types import JsonDict, JsonMap
from tisat.utils.validation import check_integer
from tisat.watch.clock import ABOUT_TIMES
from tisat.watch.fleet_stream import FleetLines
from tisat.watch.input_lines import LONGEST_LINE as LONGEST_LINE
from tisat.watch.input_lines import OPENING, fingerprint
from tisat.watch.input_lines import BoundedLines as BoundedLines
from tisat.watch.input_lines import HeaderError as HeaderError
from tisat.watch.input_lines import Note as Note
from tisat.watch.input_lines import after as after
from tisat.watch.line_results import ReadLine, answers, read_line, write_answers
from tisat.watch.line_results import judge_line as judge_line
from tisat.watch.monitor import Monitor
from tisat.watch.stray_words import StrayWords, is_status
from tisat.watch.switch import Interrupted as Interrupted
from tisat.watch.switch import Switch as Switch


class LineReader:
    """Turns a line of text into a row and its time, for a model with these channels.

    Parameters
    ----------
    channels : sequence of str
    header : list of str, optional
        The csv header, where it has been read before.
    how : Reading, optional
        What was said of how rows are written: the time column, columns to leave out, delimiter, decimal sign, dates.
    ignore_extra : bool
        Leave out whatever the model does not know.

    Examples
    --------
    >>> reader = LineReader(["cpu", "disk"])
    >>> reader("time,disk,cpu"), reader("60,2.5,")
    (None, ({'cpu': nan, 'disk': 2.5}, '60'))
    >>> reader('{"cpu": 1, "time": 120, "disk": 2}')
    ({'cpu': 1, 'disk': 2}, 120)
    """

    def __init__(
        self,
        channels: Sequence[str],
        *,
        header: Sequence[str] | None = None,
        how: Reading | None = None,
        ignore_extra: bool = False,
    ) -> None:
        self.channels = tuple(channels)
        self.header = None if header is None else list(header)
        self._writing = Writing(how or Reading())
        self._time = self._writing.how.time
        self._entity = self._writing.how.entity
        self._times = () if header is None else self._time_columns(header)
        self._ignore = frozenset(self._writing.how.drop)
        self._ignore_extra = ignore_extra
        self._begun = header is not None
        self._units_may_follow = False
        self._by_position = False
        self.remarks: list[str] = []  # on the lines since they were last cleared
        self.words = StrayWords(len(self.channels), self.remarks.append)

    def __call__(self, line: str) -> tuple[Any, Any] | None:
        """Row and time; None for an empty line or a csv header."""
        text = line.strip().lstrip("\ufeff")
        if not text:
            return None
        if text[0] in "{[":
            return self._json(text)
        if self._writing.is_comment(text):
            return None
        if not self._begun:
            self._writing.choose_delimiter(text, self.channels)
        cells = self._writing.cells(text, expected=None if self.header is None else len(self.header))
        if not self._begun:
            self._begun = True
            if self._names_columns(cells):
                self.header = self._check_names([cell.strip() for cell in cells])
                self._units_may_follow = True
                return None
        elif self._is_header(cells):  # a file was rotated: its columns go by their names from here on
            self.header = self._check_names([cell.strip() for cell in cells])
            self._units_may_follow = True
            return None
        if self._units_may_follow:
            self._units_may_follow = False
            if self._writing.are_units(cells, timed=bool(self._times)):
                return None
        return self._row_of_cells(cells)

    @property
    def encoding(self) -> str:
        """The encoding of the lines."""
        return self._writing.encoding

    def decode(self, line: bytes) -> str:
        """The text of a line.

        Bytes that are none do not matter in columns the model does not use. Where the encoding of the training files was only
        recognised, a line that is valid UTF-8 is taken for it.
        """
        if self._writing.how.encoding is None and not line.isascii():
            with suppress(UnicodeDecodeError):
                return line.decode()
        try:
            return line.decode(self.encoding)
        except UnicodeDecodeError:
            if self.header is not None:
                text = line.decode(self.encoding, errors="replace")
                cells = self._writing.cells(text.strip(), expected=len(self.header))
                used = (*self.channels, *self._times, self._entity)
                if len(cells) == len(self.header) and not any(
                    "\ufffd" in cell for name, cell in zip(self.header, cells, strict=True) if name in used
                ):
                    return text
            raise SeriesError(
                f"A row must be text in {self.encoding.upper()}, or --encoding must say what it is in. Got {line[:20]!r} instead."
            ) from None

    def _names_columns(self, cells: Sequence[str]) -> bool:
        """Whether the first line is a header, and not a row of which a channel has a word for its number."""
        numbers = [self._writing.is_number(cell) for cell in cells[1:] or cells]
        return not all(numbers) and not (
            any(numbers) and cells[0][:1].isdigit() and not any(cell in self.channels for cell in cells)
        )

    def _is_header(self, cells: Sequence[str]) -> bool:
        """Whether a line in mid-stream names columns: channels among them, and not one number."""
        return any(cell in self.channels for cell in cells) and not any(
            cell and self._writing.is_number(cell) for cell in cells
        )

    def _time_columns(self, names: Iterable[str]) -> tuple[str, ...]:
        free = [name for name in names if name not in self.channels]
        return time_columns(free, self._time, free)

    def _is_not_channel(self, name: str, times: Sequence[str]) -> bool:
        """Whether a name is the time's, the labels' or one to leave out, and not a channel's."""
        if name in self.channels:
            return False
        if name in (self._time, self._entity) or name in self._ignore or name == self._writing.how.label:
            return True
        return name in times or name.lower() in (*TIME_NAMES, *DATE_NAMES, *LABEL_NAMES)

    def _check_names(self, header: list[str]) -> list[str]:
        header[0] = header[0] or UNNAMED
        try:
            self._times = self._time_columns(header)
            for name in (*self._times, *(() if self._entity is None else (self._entity,))):
                choose(header, name, ())
            names = [name for name in header if not self._is_not_channel(name, self._times)]
            order_of(
                names, self.channels, whose="this model", what="header of the rows", ignore_extra=self._ignore_extra
            )
        except SeriesError as error:
            text = "".join(header)
            with suppress(UnicodeError):
                if text.encode(self.encoding).decode() != text:
                    raise HeaderError(f"{error} The header is in UTF-8: --encoding utf-8") from None
            raise HeaderError(str(error)) from None
        return header

    def _row_of_cells(self, cells: list[str]) -> tuple[Any, Any]:
        if self.header is None and self._entity is not None:
            raise SeriesError(f"Rows of several machines must have a header with a column {self._entity!r}. Got none.")
        if self.header is None:
            extra = len(cells) - len(self.channels)
            if extra not in (0, 1):
                raise SeriesError(
                    f"A row must have {len(self.channels)} values, or a time and as many. Got {len(cells)} instead."
                )
            values = self._numbers(cells[extra:])
            if not self._by_position:
                self._by_position = True
                order = listed([*["the time"] * extra, *self.channels])
                self.remarks.append(
                    f"the stream has no header; its columns are taken in the order of training: {order} (tail -n +1 sends the header)"
                )
            return values, self._writing.time(cells[0].strip() or None) if extra else None
        if len(cells) != len(self.header):
            raise SeriesError(f"A row must have the {len(self.header)} cells of the header. Got {len(cells)} instead.")
        named = dict(zip(self.header, cells, strict=True))
        row = dict(zip(self.channels, self._numbers([named[name] for name in self.channels]), strict=True))
        time = " ".join(named[name].strip() for name in self._times)
        counts = self._times == (UNNAMED,) and self._time is None and time.isdecimal()
        if counts and epoch_unit(float(time)) is None:  # it counts rows
            time = ""
        return self._of_machine(named, row), self._writing.time(time.strip() or None)

    def _numbers(self, cells: Sequence[str]) -> list[float]:
        """The numbers of the cells of the channels."""
        try:
            return list(map(self._writing.number, cells))
        except ValueError:
            return self.words.numbers(self.channels, cells, self._writing.number)

    def _of_machine(self, named: JsonMap, row: object) -> Any:
        """The row, beside the machine it is of where a column says so."""
        if self._entity is None:
            return row
        machine = named.get(self._entity)
        if machine is None or not str(machine).strip():
            raise SeriesError(f"A row must name its machine in {self._entity!r}. Got nothing.")
        return str(machine).strip(), row

    def _json_value(self, value: object) -> Any:
        """A value as JSON has it; None where it is a word for a missing one."""
        is_none = isinstance(value, str) and (is_missing(value) or is_word(value, self._writing.how.missing))
        return None if is_none else value

    def _without_words(self, values: JsonMap) -> JsonDict:
        """The values of an object by channel; None where one is a word."""
        words = {name: value for name, value in values.items() if isinstance(value, str) and is_status(value)}
        self.words.take(words, of=len(values))
        return {name: None if name in words else value for name, value in values.items()}

    def _json(self, text: str) -> tuple[Any, Any]:
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:  # also integers of thousands of digits
            raise SeriesError(
                f"A row in JSON must be whole. Got {text[:SHOWN]!r} instead ({str(error)[:SHOWN]})."
            ) from None
        if isinstance(row, list):
            if len(row) != len(self.channels):
                return row, None
            named = dict(zip(self.channels, map(self._json_value, row), strict=True))
            return list(self._without_words(named).values()), None
        times = self._time_columns(row)  # this line's: the next may be csv again
        values = {name: self._json_value(value) for name, value in row.items() if not self._is_not_channel(name, times)}
        unknown = [name for name in values if name not in self.channels]
        if self._ignore_extra:
            values = {name: value for name, value in values.items() if name in self.channels}
        elif unknown and not self._begun:  # the first object is a header too: it shows what the rows will look like
            raise HeaderError(
                f"The rows given to this model must have channels among {listed(self.channels)}. Got {listed(unknown)} besides."
                f"{meant(unknown[0], self.channels)} Extra columns can be left out: --ignore-extra."
            )
        self._begun = True
        values = self._without_words(values)
        moments = [row[name] for name in times if row.get(name) is not None]
        time = moments[0] if len(moments) == 1 else " ".join(map(str, moments)) or None
        return self._of_machine(row, values), self._writing.time(time)


def watch_lines(
    monitor: Monitor | FleetLines,
    lines: Iterable[bytes],
    output: IO[bytes],
    *,
    reader: LineReader | None = None,
    state: str | Path | None = None,
    every: int = 100,
    note: Note | None = None,
    alarms_only: bool = False,
    any_period: bool = False,
    report: Callable[[str], None] = lambda _: None,
    switch: Switch | None = None,
    ahead: Callable[[], bool] = lambda: False,
) -> Note:
    """Judge every line until there are no more or somebody turns the switch.

    Where input and output stand then.

    Parameters
    ----------
    monitor : Monitor
    lines : iterable of bytes
        Those not yet seen, each with its newline.
    output : binary file
    reader : LineReader, optional
    state : path, optional
        Where the state is kept; nowhere unless given.
    every : int
        Lines between two states.
    note : Note, optional
        Where input and output stood before these lines.
    alarms_only : bool
        Write only results that raise or clear an alarm, end an ongoing one, or that say that a channel or a machine fell silent or came back.
    any_period : bool
        Go on where rows come at another pace than in training.
    report : callable
        Gets a sentence when somebody should know something.
    switch : Switch, optional
    ahead : callable
        Whether the next line can be had without waiting: rows are then judged together.
    """
    check_integer(every, "every", "watch_lines", minimum=1)
    at = Note() if note is None else note
    read = LineReader(monitor.watch.channels, header=at.header) if reader is None else reader
    off = Switch() if switch is None else switch
    saved = at.lines
    warned: set[str] = set()  # each sentence about dates and zones, one about anything else

    def save() -> None:
        at.header = read.header
        if state is not None:
            if output.seekable() and stat.S_ISREG(os.fstat(output.fileno()).st_mode):
                os.fsync(output.fileno())
            monitor.snapshot(state, note=vars(at))

    def handle(read_lines: list[ReadLine]) -> None:
        """Judge lines that were read, and say what there is to say after each that is not a usual row."""
        for some in answers(monitor, read_lines, at.lines):
            at.lines += some.lines
            at.bytes += write_answers(output, some.answers, report, alarms_only=alarms_only)
            if not some.answers:
                continue
            pace = None if any_period else monitor.wrong_pace
            if pace is not None:
                save()  # so that a restart goes on behind these rows
                raise SeriesError(pace)
            trouble = monitor.trouble
            kind = "" if trouble is None else trouble if trouble.startswith(ABOUT_TIMES) else "clock"
            if trouble is not None and kind not in warned:
                warned.add(kind)
                report(trouble)

    coming, waiting = iter(lines), list[ReadLine]()  # lines that are read and not judged yet
    while (line := off.next(coming)) is not None:
        if not line.endswith(b"\n"):
            handle(waiting)
            waiting.clear()
            if b"\r" in line.strip():
                raise SeriesError(
                    "Lines must end with a newline. Got carriage returns alone; turn them into newlines: tr '\\r' '\\n'."
                )
            report(f"line {at.lines + 1} has no end yet and waits; add a newline to have it judged")
            break
        if at.lines + len(waiting) < OPENING:
            at.first += fingerprint(line)
        try:
            waiting.append(read_line(read, line))
            for remark in read.remarks:
                report(f"line {at.lines + len(waiting)}: {remark}")
            read.remarks.clear()
        except HeaderError:
            handle(waiting)
            raise
        if ahead() and (state is None or at.lines + len(waiting) - saved < every):
            continue
        handle(waiting)
        waiting.clear()
        if at.lines - saved >= every:
            save()
            saved = at.lines
    handle(waiting)  # somebody turned the switch
    save()
    return at
