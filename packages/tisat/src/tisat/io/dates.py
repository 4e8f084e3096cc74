"""Dates as people write them: 09.03.2026 14:20, 3/9/2026 2:20 PM, 9-Mar-2026, or by a pattern of strptime.

A dotted date begins with the day, as everywhere it is used. Between slashes or dashes the order is told by a number above
12 somewhere in the column, or by rows that go on from one day to the next in one order and jump a month in the other; where
neither helps it cannot be known, and the reader says so instead of guessing.
"""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Sequence

from tisat.errors import ParameterError, SeriesError
from tisat.io.timestamps import OFFSET, Moment, offset_minutes, read_time

DAY = 86_400 * 10**9
ISO, DAY_FIRST, MONTH_FIRST, YEAR_FIRST = "iso", "day-first", "month-first", "year-first"
EPOCHS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
WORDS = (ISO, DAY_FIRST, MONTH_FIRST, YEAR_FIRST, *EPOCHS)
MUST = f"{', '.join(WORDS)}, or a pattern such as '%d.%m.%Y %H:%M:%S'"
MONTHS = {name: i + 1 for i, name in enumerate(("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"))}  # fmt: skip

_CLOCK = (
    r"(?:[ T,]+(?P<H>\d{1,2})[:.h](?P<M>\d{2})(?:[:.](?P<S>\d{2})(?:[.,](?P<f>\d{1,9}))?)?\s*(?P<p>[AaPp]\.?[Mm]\.?)?)?"
)
_ZONE = rf"\s*(?P<z>{OFFSET})?"
_DATE = re.compile(
    rf"(?P<a>\d{{1,4}})(?P<sep>[./-])(?P<b>\d{{1,2}}|[A-Za-z]{{3,9}})(?P=sep)(?P<c>\d{{1,4}}){_CLOCK}{_ZONE}"
)
_ISO = re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}(?:[ T]\d{{2}}:\d{{2}}(?::\d{{2}}(?:\.\d{{1,9}})?)?)?{OFFSET}?")
_WORDY = re.compile(rf"(?P<a>\d{{1,2}})\.? (?P<b>[A-Za-z]{{3,9}}),? (?P<c>\d{{4}}){_CLOCK}{_ZONE}")
_PARTS = {
    "d": r"(?P<d>\d{1,2})", "m": r"(?P<m>\d{1,2})", "Y": r"(?P<Y>\d{4})", "y": r"(?P<y>\d{2})", "b": r"(?P<b>[A-Za-z]{3,9})",
    "B": r"(?P<b>[A-Za-z]{3,9})", "H": r"(?P<H>\d{1,2})", "I": r"(?P<H>\d{1,2})", "M": r"(?P<M>\d{1,2})", "S": r"(?P<S>\d{1,2})",
    "f": r"(?P<f>\d{1,9})", "p": r"(?P<p>[AaPp]\.?[Mm]\.?)", "z": rf"(?P<z>{OFFSET})", "j": r"(?P<j>\d{1,3})",
    "T": r"(?P<H>\d{1,2}):(?P<M>\d{2}):(?P<S>\d{2})", "F": r"(?P<Y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})", "%": "%",
}  # fmt: skip


def check_format(text: str) -> str:
    """The format as it is, or a sentence: one of the words, or a pattern with a year, a month and a day.

    Examples
    --------
    >>> check_format("day-first"), check_format("%d/%m/%Y")
    ('day-first', '%d/%m/%Y')
    """
    if text not in WORDS:
        _pattern(text)
    return text


def _pattern(text: str) -> re.Pattern[str]:
    wrong = ParameterError(f"--time-format must be {MUST}. Got {text!r} instead.")
    pieces = re.split(r"%(.)", text)
    if len(pieces) == 1 or any(letter not in _PARTS for letter in pieces[1::2]):
        raise wrong
    body = "".join(re.escape(piece) if i % 2 == 0 else _PARTS[piece] for i, piece in enumerate(pieces))
    try:
        pattern = re.compile(body.replace(r"\ ", r"\s+"))
    except re.error:  # the same part twice
        raise wrong from None
    named = pattern.groupindex
    if not (("Y" in named or "y" in named) and ("j" in named or ({"m", "b"} & set(named) and "d" in named))):
        raise wrong
    return pattern


class DateReader:
    """Reads times written in one format.

    Parameters
    ----------
    form : str
        ``iso``, ``day-first``, ``month-first``, ``year-first``, an epoch unit (``s``, ``ms``, ``us``, ``ns``), or a pattern.

    Examples
    --------
    >>> DateReader("day-first")("09.03.2026 14:20") == read_time("2026-03-09T14:20")
    True
    >>> DateReader("%m/%d/%Y %I:%M %p")("3/9/2026 2:20 PM") == read_time("2026-03-09T14:20")
    True
    """

    def __init__(self, form: str) -> None:
        self.form = check_format(form)
        self._match = None if form in WORDS else _pattern(form)

    def __call__(self, time: object) -> Moment:
        """The moment a cell means; a SeriesError where it is none."""
        if self.form in EPOCHS:
            return self._epoch(time)
        if self.form == ISO or not isinstance(time, str):
            return read_time(time)
        text = time.strip()
        found = _shape(text) if self._match is None else self._match.fullmatch(text)
        if found is None:
            raise self._wrong(time)
        parts = {name: value for name, value in found.groupdict().items() if value is not None}
        try:
            return _moment(parts, self.form)
        except (ValueError, KeyError):
            raise self._wrong(time) from None

    def _epoch(self, time: object) -> Moment:
        try:
            number = float(str(time))
            whole = int(str(time)) if str(time).strip().lstrip("+-").isdigit() else None
        except ValueError:
            raise self._wrong(time) from None
        count = EPOCHS[self.form]
        value = whole * count if whole is not None else round(number * count)
        if abs(value) >= 2**63:
            raise self._wrong(time)
        return Moment(dates=True, value=value, offset=0)

    def _wrong(self, time: object) -> SeriesError:
        return SeriesError(
            f"The time of a row must be written as {self.form}. Got {str(time)[:60]!r} instead. "
            f"--time-format says how times are written: {MUST}."
        )


def _shape(text: str) -> re.Match[str] | None:
    return _DATE.fullmatch(text) or _WORDY.fullmatch(text)


def _month(text: str) -> int:
    return int(text) if text.isdigit() else MONTHS[text[:3].lower()]


def _moment(parts: dict[str, str], form: str) -> Moment:
    if "a" in parts:
        a, b, c = parts["a"], parts["b"], parts["c"]
        if len(a) == 4 or form == YEAR_FIRST:
            year, month, day = a, _month(b), int(c)
        else:
            first, second = (int(a), _month(b)) if form == DAY_FIRST or not b.isdigit() else (int(b), _month(a))
            year, month, day = c, second, first
    else:
        year, day = parts.get("Y") or parts["y"], int(parts.get("d", "1"))
        month = _month(parts.get("m") or parts.get("b") or "1")
    number = int(year) + (2000 if len(year) == 2 and int(year) < 70 else 1900 if len(year) == 2 else 0)
    if len(year) not in (2, 4) or not 1678 <= number < 2262:
        raise ValueError(year)
    hour = int(parts.get("H", "0"))
    if "p" in parts:
        if not 1 <= hour <= 12:
            raise ValueError(hour)
        hour = hour % 12 + 12 * (parts["p"][0] in "pP")
    moment = datetime.datetime(number, month, day, hour, int(parts.get("M", "0")), int(parts.get("S", "0")))
    if "j" in parts:
        moment += datetime.timedelta(days=int(parts["j"]) - 1)
    seconds = (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1)
    value = seconds * 10**9 + int(parts.get("f", "0").ljust(9, "0"))
    return Moment.written(value, offset_minutes(parts["z"]) if "z" in parts else None)


def guess_format(texts: Sequence[str], *, name: str, seen: str | None = None) -> str:
    """How the dates of a column are written; an error that says what to type where two ways are possible.

    Parameters
    ----------
    texts : sequence of str
        The cells of the column, all of them: one number above 12 settles the order.
    name : str
        The column.
    seen : str, optional
        How the training files were written; decides where this one leaves it open.

    Examples
    --------
    >>> guess_format(["03/09/2026", "03/13/2026"], name="date"), guess_format(["09.03.2026 10:00"], name="date")
    ('month-first', 'day-first')
    """
    if texts and all(map(_ISO.fullmatch, texts)):
        return ISO
    shapes = [_shape(text.strip()) for text in texts[:1000]]
    if not shapes or any(shape is None or len(shape["a"]) == 4 for shape in shapes):
        shaped = shapes and all(shape is not None for shape in shapes)
        return seen if seen is not None and not shaped else YEAR_FIRST if shaped else ISO
    date_shapes = [shape for text in texts if (shape := _shape(text.strip())) is not None]
    first = shapes[0]
    assert first is not None
    if any(len(shape["a"]) == 2 and len(shape["c"]) == 2 for shape in date_shapes) and seen is None:
        raise SeriesError(
            f"The dates of {name!r} must have a year of four digits, or --time-format must say how they are written. "
            f"Got {first[0]!r}. Type --time-format '%d.%m.%y %H:%M:%S', '%m/%d/%y %H:%M' or the like."
        )
    if not first["b"].isdigit() or first.groupdict().get("sep") == ".":
        return DAY_FIRST
    day = any(int(shape["a"]) > 12 for shape in date_shapes)
    month = any(shape["b"].isdigit() and int(shape["b"]) > 12 for shape in date_shapes)
    if day != month:
        return DAY_FIRST if day else MONTH_FIRST
    if seen is not None:
        return seen
    steady = None if month else _steady(texts)
    if steady is not None:
        return steady
    raise SeriesError(
        f"The dates of {name!r} must have one meaning. {first[0]!r} may begin with the day or with the month. "
        f"Type --time-format {DAY_FIRST} or --time-format {MONTH_FIRST} (or time_format=...)."
    )


def _steady(texts: Sequence[str]) -> str | None:
    """The order under which a day follows the day before it, where the other leaves a month between two rows."""
    longest: dict[str, float] = {}
    for form in (DAY_FIRST, MONTH_FIRST):
        read = DateReader(form)
        try:
            moments = [int(read(text).value) for text in texts]
        except SeriesError:
            return None
        steps = [later - sooner for sooner, later in itertools.pairwise(moments)]
        longest[form] = math.inf if min(steps, default=-1) < 0 else max(steps)
    best, other = sorted(longest, key=longest.__getitem__)
    return best if longest[best] < DAY < 20 * DAY < longest[other] else None
