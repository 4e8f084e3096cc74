"""Rows that come one by one, read as the training files were: delimiter, decimal sign, thousands, dates, local time."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from typing import Any

from tisat.errors import SeriesError
from tisat.io.dates import ISO, DateReader
from tisat.io.dialect import COMMENTS, DELIMITERS, are_words, is_unit, number_text, sign
from tisat.io.files import Reading
from tisat.io.missing_values import is_number, is_word, read_number
from tisat.io.text_encoding import check_encoding
from tisat.io.time_zones import offsets_of_local, zone_of
from tisat.io.timestamps import Moment, read_time, say

SHOWN = 80  # characters of a line that a sentence repeats


class Writing:
    """How lines are written: what the user said, else how the training files were written, else plain csv.

    Examples
    --------
    >>> writing = Writing(Reading(seen={"delimiter": ";", "decimal": ",", "time_format": "day-first"}))
    >>> cells = writing.cells("09.03.2026 14:20;52,1;4,2")
    >>> writing.time(cells[0]), [writing.number(cell) for cell in cells[1:]]
    ('2026-03-09T14:20:00', [52.1, 4.2])
    """

    def __init__(self, how: Reading) -> None:
        self.how = how
        dialect = how.seen
        self.delimiter = sign(how.delimiter, "delimiter", list(DELIMITERS)) or dialect.get("delimiter", ",")
        self.decimal = sign(how.decimal, "decimal", [".", ","]) or dialect.get("decimal", ".")
        self.thousands = dialect.get("thousands", "")
        self.encoding = check_encoding(how.encoding) if how.encoding else dialect.get("encoding", "utf-8")
        self._comment = dialect.get("comment", "")
        form = how.time_format or dialect.get("time_format")
        self._read: Callable[[Any], Moment] = read_time if form in (None, ISO) else DateReader(str(form))
        self._plain = self._read is read_time and how.timezone is None
        self._zone = None if how.timezone is None else zone_of(how.timezone)
        self._last = -(2**63)
        self._settled = how.delimiter is not None

    def is_comment(self, text: str) -> bool:
        """Whether a line is one of comment."""
        return bool(self._comment) and self._comment in COMMENTS and text.startswith(self._comment)

    def choose_delimiter(self, text: str, channels: Sequence[str]) -> None:
        """Take the delimiter under which the header names the channels."""
        if self._settled:
            return
        wanted = set(channels)
        counts = {one: len(wanted & set(self._split(text, one))) for one in (self.delimiter, *DELIMITERS)}
        best = max(counts, key=counts.__getitem__)
        if counts[best] > counts[self.delimiter]:
            self._become(best)

    def _become(self, delimiter: str) -> None:
        self.delimiter = delimiter
        if delimiter == "," and self.how.decimal is None:
            self.decimal, self.thousands = ".", ""

    def _split(self, text: str, delimiter: str) -> list[str]:
        try:
            return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter))]
        except csv.Error as error:
            raise SeriesError(f"A row must be one line of csv. Got {text[:SHOWN]!r} instead ({error}).") from None

    def cells(self, text: str, *, expected: int | None = None) -> list[str]:
        """The cells of a line; under another delimiter where only that gives as many as expected."""
        cells = self._split(text, self.delimiter)
        if expected is not None and not self._settled:
            if len(cells) != expected:
                other = next((one for one in DELIMITERS if len(self._split(text, one)) == expected), None)
                if other is not None:
                    self._become(other)
                    cells = self._split(text, other)
            self._settled = len(cells) == expected
        return cells

    def is_number(self, cell: str) -> bool:
        """Whether a cell holds a number or says that it is missing."""
        return is_word(cell, self.how.missing) or is_number(
            number_text(cell, self.decimal, self.thousands), decimal=self.decimal
        )

    def number(self, cell: str) -> float:
        """The number of a cell; ValueError where it holds none."""
        if self.decimal == "." and not self.thousands and not self.how.missing and "_" not in cell and cell.isascii():
            try:
                return float(cell)
            except ValueError:
                return read_number(cell)
        if is_word(cell, self.how.missing):
            return float("nan")
        return read_number(number_text(cell, self.decimal, self.thousands), decimal=self.decimal)

    def are_units(self, cells: Sequence[str], *, timed: bool = False) -> bool:
        """Whether a line below the header only says in what units the channels are; ``timed``: every row of data has a time."""
        if not any(cells) or any(self.is_number(cell) for cell in cells if cell and cell != "-"):
            return False
        return all(map(is_unit, cells)) or (timed and are_words(cells))

    def time(self, cell: Any) -> Any:
        """The time of a row as a monitor takes it."""
        if self._plain or cell is None:
            return cell
        moment = self._read(cell)
        if self._zone is not None and moment.dates and moment.offset is None:
            local = int(moment.value)
            first, second = offsets_of_local(local, self._zone)
            moment = Moment.written(local, first)
            if first > second and moment.value <= self._last:  # the hour that comes twice, for the second time
                moment = Moment.written(local, second)
            self._last = max(self._last, int(moment.value))
        return say(moment.value, moment.offset, dates=moment.dates)
