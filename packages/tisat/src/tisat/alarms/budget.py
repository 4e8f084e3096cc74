"""Parse a false-alarm budget and convert it to a rate per row.

A budget is how many false alarms one is ready to accept: ``"1/day"``, ``"3/week"``, ``"1/1000 rows"``, a rate per
row, or the period between two of them. Times need the sampling period. Nothing here knows how a threshold is found.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tisat.errors import ParameterError
from tisat.io.durations import SECONDS, DurationLike, seconds_of, unit_of

UNITS = ("row", "sample", "instant")  # of a budget in rows; "instant" is what files before 0.3 have
_RATE = re.compile(
    r"^\s*(?:every\s+|(?P<count>\d+(?:\.\d+)?)\s*(?:/|per|a|in|every)\s*)(?P<span>\d+(?:\.\d+)?)?\s*(?P<unit>[a-z]+)?\s*$"
)
MUST = (
    "a budget such as '1/day', '3/week', 'daily', 'one per shift of 8h', '1/12 hours', '1/1000 rows' or '0.1%', a rate per "
    "row > 0 and < 1, or the time between two false alarms"
)
_WORDS = {
    "once": "1", "one": "1", "an": "1", "single": "1", "twice": "2", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
    "seven": "7", "eight": "8", "nine": "9", "ten": "10",
}  # fmt: skip
_EVERY = {"hourly": "1/hour", "daily": "1/day", "weekly": "1/week", "monthly": "1/month", "yearly": "1/year", "annually": "1/year"}  # fmt: skip
_MACHINES = re.compile(r"^(?P<one>.*\S)\s+over\s+(?P<count>\d+)\s+machines$")
_SHARE = re.compile(
    r"^(?P<number>\d+(?:\.\d+)?|\.\d+)\s*(?:%|percent|per cent)(?:\s+of\s+(?:the\s+)?(?:rows|instants|samples))?$"
)

# '1/day', a rate per row below 1, the time between two false alarms, or a Budget.
BudgetLike: TypeAlias = "str | float | datetime.timedelta | np.timedelta64 | Budget"


def plain_words(text: str) -> str:
    """Rewrite a budget in words as ``count/span unit`` or a number.

    Examples
    --------
    >>> plain_words("once a day"), plain_words("One per shift of 8h"), plain_words("daily"), plain_words("per day")
    ('1 a day', '1 per 8h', '1/day', '1 per day')
    >>> plain_words("0.1%"), plain_words("0,001"), plain_words("two false alarms a week")
    ('0.001', '0.001', '2 a week')
    """
    words = " ".join(text.lower().split())
    words = re.sub(r"(?<=\d),(?=\d)", ".", words)
    words = _EVERY.get(words, words)
    words = re.sub(r"\s*(?:false\s+)?alarms?\b\s*", " ", words).strip()
    share = _SHARE.match(words)
    if share:
        return f"{float(share['number']) / 100:.12g}"
    first, _, rest = words.partition(" ")
    words = f"{_WORDS[first]} {rest}" if first in _WORDS and rest else words
    words = re.sub(r"^(?=(?:per|a|each)\s)", "1 ", words)
    words = re.sub(r"\beach\b", "per", words)
    words = re.sub(r"\b(?:a|an|one)?\s*shift of\s+", " ", words)
    return " ".join(re.sub(r"\b(per|a|in|every|/)\s*one\b", r"\1 1", words).split())


def _unit(text: str | None) -> str | None:
    """The unit without its plural, or None if there is no such unit."""
    if text is None:
        return "row"
    time_steps = next((name for name in (text, text.removesuffix("s")) if name in UNITS), None)
    return time_steps or unit_of(text)


@dataclass(frozen=True)
class Budget:
    """A rate of false alarms that is acceptable.

    Examples
    --------
    >>> budget = Budget.parse("2/day", period="1 min")
    >>> budget.time_steps
    720.0
    >>> str(budget)
    '2/day'
    """

    text: str  # as the user gave it
    time_steps: float  # the target period: rows between two false alarms
    period: float | None = None  # sampling period in seconds, where known

    def __str__(self) -> str:
        return self.text

    def shared(self, machines: int) -> Budget:
        """The budget of one of so many machines that have this one together.

        Examples
        --------
        >>> Budget.parse("2/day", period="1 min").shared(10)
        Budget(text='2/day over 10 machines', time_steps=7200.0, period=60.0)
        """
        return Budget(f"{self.text} over {machines} machines", self.time_steps * machines, self.period)

    def say(self, time_steps: float) -> str:
        """Another period of so many rows, in the words of this budget.

        Examples
        --------
        >>> Budget.parse("1/week", period=60.0).say(2880.0)
        '1 in 2880 rows (2 days)'
        """
        words = f"1 in {time_steps:.0f} rows" if time_steps >= 10 else f"1 in {time_steps:.3g} rows"
        if self.period is None or not np.isfinite(time_steps):
            return words
        seconds = time_steps * self.period
        for unit in ("year", "week", "day", "hour", "minute"):
            if seconds >= SECONDS[unit]:
                amount = f"{seconds / SECONDS[unit]:.3g}"
                return f"{words} ({amount} {unit}{'s' * (amount != '1')})"
        return f"{words} ({seconds:.3g} seconds)"

    def as_typed(self, time_steps: float) -> str:
        """A round budget to type, at most as rare as one false alarm in so many rows.

        Examples
        --------
        >>> Budget.parse("1/week", period=60.0).as_typed(67.0), Budget.parse("1/week", period=60.0).as_typed(2900.0)
        ('1/hour', "'1/2 days'")
        >>> Budget.parse("1/1000 rows").as_typed(66.7)
        "'1/66 rows'"
        """
        seconds = 0.0 if self.period is None else time_steps * self.period
        unit = next((unit for unit in ("week", "day", "hour", "minute", "second") if seconds >= SECONDS[unit]), "")
        amount = int(seconds / SECONDS[unit]) if unit else max(int(time_steps), 2)
        return f"1/{unit}" if unit and amount == 1 else f"'1/{amount} {unit or 'row'}s'"

    @classmethod
    def check(cls, value: BudgetLike) -> BudgetLike:
        """Return a budget as it was given; refuse what is none, whatever the clock."""
        cls.parse(value, period=1e-9)  # no budget is too frequent for so short a period
        return value

    @classmethod
    def parse(cls, value: BudgetLike, *, period: DurationLike | None = None) -> Budget:
        """A budget from what users say.

        Parameters
        ----------
        value : str, float, timedelta or Budget
            ``"3/week"``, ``"1/1000 rows"``, ``"every 2 hours"``; a rate per row below 1; or the time between
            two false alarms.
        period : float, str or timedelta, optional
            The sampling period; needed where the budget speaks of time.
        """
        if isinstance(value, Budget):
            return value
        step = None if period is None else seconds_of(period, whose="Budget.parse")
        text = value
        wrong = ParameterError.about(
            "budget", f"must be {MUST}. Got {text!r} instead.", subject="The budget of false alarms"
        )
        if isinstance(value, bool | np.bool_):
            raise wrong
        if isinstance(value, str):
            many = _MACHINES.match(value.strip())
            if many and int(many["count"]):
                return cls.parse(many["one"], period=period).shared(int(many["count"]))
            value = plain_words(value)
            if re.search(r"\bshifts?\b", value):
                raise ParameterError.about(
                    "budget",
                    f"must say how long a shift is: 'one per shift of 8h'. Got {text!r} instead.",
                    subject="The budget",
                )
        if isinstance(value, str) and re.fullmatch(r"\s*(0?\.\d+|\d+(\.\d+)?e-\d+)\s*", value.lower()):
            value = float(value)  # a rate typed at a command line
        if isinstance(value, datetime.timedelta | np.timedelta64):
            seconds = seconds_of(value, name="false_alarms")
            return cls(f"every {seconds:g} seconds", _time_steps(seconds, step, value), step)
        if isinstance(value, int | float | np.integer | np.floating):
            if not 0 < value < 1:
                raise wrong
            return cls(text.strip() if isinstance(text, str) else f"{float(value):g}/row", 1.0 / float(value), step)
        match = _RATE.match(value.lower()) if isinstance(value, str) else None
        unit = _unit(match["unit"]) if match else None
        if match is None or unit is None or (match["unit"] is None and match["span"] is None):
            raise wrong
        count, span = float(match["count"] or 1), float(match["span"] or 1)
        if count == 0 or span == 0:
            raise wrong
        time_steps = span / count if unit in UNITS else _time_steps(span / count * SECONDS[unit], step, text)
        if time_steps <= 1:
            raise ParameterError.about(
                "budget",
                f"must leave more than one row between two false alarms. Got {text!r}, which is {1 / time_steps:.3g} a row.",
                subject="The budget",
            )
        return cls(str(text).strip(), time_steps, step)


def _time_steps(seconds: float, period: float | None, value: object) -> float:
    if period is None:
        raise ParameterError(
            f"The budget {value!r} speaks of time, and the series had no timestamps. "
            "Give the sampling period too, for example period='1 min' (--period '1 min'), or a budget such as '1/1000 rows'.",
            parameter="period",
        )
    return seconds / period
