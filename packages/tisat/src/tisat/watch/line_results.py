"""The results on lines that were read: one at a time, or many rows together where many have come."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NamedTuple, Protocol, TypeAlias

from tisat.errors import InputError, SeriesError
from tisat.gap_filling import Silence
from tisat.utils.types import JsonDict
from tisat.watch.fleet_stream import FleetLines
from tisat.watch.input_lines import LONGEST_LINE, HeaderError
from tisat.watch.monitor import Monitor
from tisat.watch.row_blocks import LEAST, leading

ReadLine: TypeAlias = "tuple[Any, Any] | InputError | None"  # row and time, why it is none, or a line without a row


class Reader(Protocol):
    """A reader of lines: :class:`tisat.watch.text_stream.LineReader`."""

    def __call__(self, line: str) -> tuple[Any, Any] | None:
        """Row and time; None for a line without a row."""

    def decode(self, line: bytes) -> str:
        """The text of a line."""


class Answers(NamedTuple):
    """The results on some lines, as plain values."""

    lines: int
    answers: Sequence[JsonDict]


def read_line(reader: Reader, line: bytes) -> ReadLine:
    """Read a line; the reason where it cannot be read.

    Raises
    ------
    HeaderError
        Where the names of the columns do not fit the model.
    """
    try:
        if len(line) > LONGEST_LINE:
            raise SeriesError(f"A row must be at most {LONGEST_LINE} bytes long. Got a longer one.")
        return reader(reader.decode(line))
    except HeaderError:
        raise
    except InputError as error:
        return error


def judge_line(monitor: Monitor | FleetLines, reader: Reader, line: bytes, number: int) -> JsonDict | None:
    """The result on one line as plain values; None for an empty line or a header."""
    return _answer(monitor, read_line(reader, line), number)


def _answer(monitor: Monitor | FleetLines, read: ReadLine, number: int) -> JsonDict | None:
    if read is None:
        return None
    try:
        if isinstance(read, InputError):
            raise read
        result = monitor.update(*read)
    except InputError as error:
        result = monitor.refuse(str(error))
    named = {"entity": result.entity} if isinstance(monitor, FleetLines) else {}
    return {"line": number, **named, **result.to_json()}


def answers(monitor: Monitor | FleetLines, lines: Sequence[ReadLine], before: int) -> Iterator[Answers]:
    """The results on lines, ``before`` of which were read earlier: usual rows of a monitor together, all others one by one."""
    done = tried = 0
    while done < len(lines):
        if isinstance(monitor, Monitor) and done >= tried and len(lines) - done >= LEAST:
            tried = done + LEAST  # not again before so many single rows
            rows = []
            for read in lines[done:]:
                if not isinstance(read, tuple):
                    break
                rows.append(read)
            results = leading(monitor, [row for row, _ in rows], [time for _, time in rows])
            if results:
                yield Answers(
                    len(results),
                    [{"line": before + done + 1 + place, **one.to_json()} for place, one in enumerate(results)],
                )
                done += len(results)
                tried = done
                continue
        answer = _answer(monitor, lines[done], before + done + 1)
        done += 1
        yield Answers(1, [] if answer is None else [answer])


def write_answers(
    output: IO[bytes], answers: Sequence[JsonDict], report: Callable[[str], None], *, alarms_only: bool
) -> int:
    """Write results, and report what somebody should know of each; how many bytes that are."""
    written = []
    for answer in answers:
        if answer["status"] == "refused":
            report(f"line {answer['line']} refused: {answer['reason']}")
        elif answer.get("reason"):
            who = f"{answer['entity']}: " if answer.get("entity") else ""
            report(f"line {answer['line']}: {who}{answer['reason']}")
        for one in answer.get("data", ()):
            report(Silence(**{key: value for key, value in one.items() if key != "kind"}).words)
        if not alarms_only or answer["alarm"] is not None or "data" in answer or "ended" in answer:
            written.append(json.dumps(answer, allow_nan=False) + "\n")
    content = "".join(written).encode()
    if content:
        output.write(content)
        output.flush()
    return len(content)
