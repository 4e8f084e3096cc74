"""Durations as people write them: ``"10 min"``, ``"1 hour"``, ``"500ms"``, a timedelta, a number of seconds."""

from __future__ import annotations

import datetime
import re
from typing import TypeAlias

import numpy as np

from tisat.errors import ParameterError

Duration: TypeAlias = str | datetime.timedelta | np.timedelta64

_SECOND = 10**9
UNITS = {
    "ns": 1, "nanosecond": 1,
    "us": 10**3, "microsecond": 10**3,
    "ms": 10**6, "millisecond": 10**6,
    "s": _SECOND, "sec": _SECOND, "second": _SECOND,
    "min": 60 * _SECOND, "minute": 60 * _SECOND,
    "h": 3600 * _SECOND, "hr": 3600 * _SECOND, "hour": 3600 * _SECOND,
    "d": 86_400 * _SECOND, "day": 86_400 * _SECOND,
    "w": 604_800 * _SECOND, "week": 604_800 * _SECOND,
    "month": 2_629_746 * _SECOND,  # a twelfth of the mean Gregorian year
    "y": 31_556_952 * _SECOND, "year": 31_556_952 * _SECOND,
}  # fmt: skip
SECONDS = {name: count / _SECOND for name, count in UNITS.items()}
LONGEST = 2**61  # nanoseconds (73 years): sums of two stay within 64 bits
_TEXT = re.compile(r"\s*(?P<span>\d+(?:[.,]\d*)?|[.,]\d+)?\s*(?P<unit>[A-Za-z]+)\s*")
MUST = "a duration such as '1 min', '8 hours', '500ms', a number of seconds or a timedelta"


def unit_of(word: str) -> str | None:
    """The name of a unit without its plural, or None if there is no such unit.

    Examples
    --------
    >>> unit_of("Hours"), unit_of("s"), unit_of("fortnight")
    ('hour', 's', None)
    """
    text = word.lower()
    return next((name for name in (text, text.removesuffix("s")) if name in UNITS), None)


# '10 min', a number of seconds, or a timedelta.
DurationLike: TypeAlias = str | float | datetime.timedelta | np.timedelta64


def nanoseconds_of(duration: object, *, name: str, whose: str, must: str = MUST) -> int:
    """A duration in whole nanoseconds, at least one.

    Examples
    --------
    >>> nanoseconds_of("10 minutes", name="delta_max", whose="spd_score") == 600 * 10**9
    True
    """
    refusal = ParameterError.about(name, f"must be {must}. Got {duration!r} instead.", whose=whose)
    if isinstance(duration, str):
        match = _TEXT.fullmatch(duration)
        unit = unit_of(match["unit"]) if match else None
        if match is None or unit is None:
            raise refusal
        amount = float((match["span"] or "1").replace(",", ".")) * UNITS[unit]
    elif isinstance(duration, datetime.timedelta):
        amount = (duration.days * 86_400 + duration.seconds) * _SECOND + duration.microseconds * 1000
    elif isinstance(duration, np.timedelta64):
        if np.isnat(duration) or np.datetime_data(duration)[0] in ("Y", "M", "generic"):  # of no certain length
            raise refusal
        amount = int(duration / np.timedelta64(1, "ns"))
    elif isinstance(duration, int | float | np.integer | np.floating) and not isinstance(duration, bool):
        amount = (int(duration) if isinstance(duration, int | np.integer) else float(duration)) * _SECOND
    else:
        raise refusal
    if not 1 <= amount <= LONGEST:
        raise refusal
    return round(amount)


def seconds_of(duration: object, *, name: str = "period", whose: str = "tisat") -> float:
    """A duration in seconds.

    Examples
    --------
    >>> seconds_of("5 min"), seconds_of("1 hour"), seconds_of(0.25)
    (300.0, 3600.0, 0.25)
    """
    return nanoseconds_of(duration, name=name, whose=whose) / _SECOND


def spelt(seconds: float, *, digits: int = 3) -> str:
    """Seconds for people, in the largest unit up to days that they fill.

    Examples
    --------
    >>> spelt(5), spelt(90), spelt(7200), spelt(200_000, digits=2), spelt(29_400_000, digits=2)
    ('5 s', '1.5 min', '2 h', '2.3 d', '340 d')
    """
    unit = next((name for name in ("d", "h", "min") if seconds >= SECONDS[name]), "s")
    return f"{float(f'{seconds / SECONDS[unit]:.{digits}g}'):.15g} {unit}"  # 340 d, not 3.4e+02 d
