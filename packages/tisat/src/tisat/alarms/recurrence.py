"""Alarms that recur: one line with their number and rhythm instead of one for each.

Alarms of one entity that are of the same kind and whose channels are alike (:func:`tisat.alarms.patterns.likeness`) are one
:class:`Recurrence`. Its **rhythm** is the simplest regularity that nearly all of them keep: a time of the day, a day of the
week with a time, or an interval. Where none is kept, only the number is given. This module drops no alarm and demotes none: see
:mod:`tisat.alarms.patterns` for that.
"""

from __future__ import annotations

import cmath
import datetime
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tisat.alarms.patterns import ALIKE_WITHOUT_MODE, DAY, Fingerprint, Shares, moment_of, share_similarity, time_apart
from tisat.utils.numbers import say_number

if TYPE_CHECKING:
    from tisat.alarms.alarms import Alarm

FEWEST = 3  # alarms that recur; two may be chance
KEPT = 0.8  # share of the alarms that keep a rhythm
NEAR = 30  # minutes of the day around the common time
DAILY = 0.6  # share of the days from the first to the last alarm that have one
EVEN = 0.2  # of the middle interval: intervals that are that near to it are regular
NIGHT = (22 * 60, 6 * 60)  # minutes of the day between which it is night
DAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
UNITS = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


@dataclass(frozen=True)
class Recurrence:
    """Alarms of one entity that are alike, the oldest first.

    Examples
    --------
    >>> from tisat.alarms import recurring
    >>> recurring([])
    ()
    """

    alarms: tuple[Alarm, ...]  # those that look alike
    rhythm: str  # "nightly at 02:00", "on Mondays at 06:00", "about every 6 h"; empty: none, or too few

    @property
    def last(self) -> Alarm:
        """The latest of them."""
        return self.alarms[-1]

    @property
    def words(self) -> str:
        """The recurrence as one line, ``12th time, nightly at 02:00 since 3 March``.

        Empty for fewer than three alarms.
        """
        if len(self.alarms) < FEWEST:
            return ""
        first, last = self.alarms[0], moment_of(self.last.raised_time)
        since = moment_of(first.raised_time)
        if since is None or last is None:
            first_raised = f"row {first.raised}" if first.raised_time is None else str(first.raised_time)
        else:
            year = "" if since.year == last.year else f" {since.year}"
            first_raised = f"{since.day} {MONTHS[since.month - 1]}{year}"
        return f"{ordinal(len(self.alarms))} time{f', {self.rhythm}' if self.rhythm else ''} since {first_raised}"

    @property
    def title(self) -> str:
        """The entity, the kind and the channel that leads most often."""
        what = self.last.kind or "alarm"
        first = [one.reasons[0].channel for one in reversed(self.alarms) if one.reasons]
        channel = f" of {max(first, key=first.count)}" if first else ""  # the latest of those that lead equally often
        whose = f"{self.last.series}: " if self.last.series else ""
        return f"{whose}{what}{channel}"

    def __str__(self) -> str:
        return self.title + (f": {self.words}" if self.words else "")


def recurring(alarms: Iterable[Alarm]) -> tuple[Recurrence, ...]:
    """Group alarms that are alike.

    Every alarm is in one group, the group with the latest alarm first.

    Parameters
    ----------
    alarms : iterable of Alarm
        Of one entity or of many, in any order.

    Returns
    -------
    tuple[Recurrence, ...]
        Groups of alarms that look alike.

    Examples
    --------
    >>> from tisat.alarms import Alarm
    >>> nights = [Alarm(60 * k, 60 * k, 60 * k + 5, 3.0, 2.0, "excess", "1/day", {"flow": 1.0},
    ...                 raised_time=f"2026-03-{k:02d}T02:0{k % 3}:00Z", kind="level") for k in range(3, 15)]
    >>> [one.words for one in recurring(nights)]
    ['12th time, nightly at 02:01 since 3 March']
    """
    groups: list[tuple[tuple[str, str], Shares, list[Alarm]]] = []
    for alarm in sorted(alarms, key=_order):
        shares = Fingerprint.of(alarm).channels or tuple((name, 0, share) for name, share in alarm.channels.items())
        for whose, first, group in groups:
            if whose == (alarm.series, alarm.kind) and (
                shares == first or share_similarity(shares, first) >= ALIKE_WITHOUT_MODE
            ):
                group.append(alarm)
                break
        else:
            groups.append(((alarm.series, alarm.kind), shares, [alarm]))
    found = [Recurrence(tuple(group), rhythm_of([moment_of(one.raised_time) for one in group])) for *_, group in groups]
    return tuple(sorted(found, key=lambda one: _order(one.last), reverse=True))


def recurrence_lines(alarms: Iterable[Alarm]) -> list[str]:
    """One line for each title among the alarms that recur: groups that differ in their shares alone are counted together."""
    titles: dict[str, list[Alarm]] = {}
    for one in recurring(alarms):
        if one.words:
            titles.setdefault(one.title, []).extend(one.alarms)
    lines = []
    for title, group in titles.items():
        group.sort(key=_order)
        whole = Recurrence(tuple(group), rhythm_of([moment_of(one.raised_time) for one in group]))
        lines.append(f"{title}: {whole.words}")
    return lines


def rhythm_of(moments: Sequence[datetime.datetime | None]) -> str:
    """Name the rhythm of moments in order of time; empty where there is none.

    Examples
    --------
    >>> at = datetime.datetime(2026, 3, 2, 6, 5)
    >>> rhythm_of([at + datetime.timedelta(days=7 * k) for k in range(4)])
    'on Mondays at 06:05'
    >>> rhythm_of([at + datetime.timedelta(hours=6 * k) for k in range(4)])
    'about every 6 h'
    """
    times = [one for one in moments if one is not None]
    if len(times) < max(FEWEST, len(moments)):
        return ""
    minutes = [one.hour * 60 + one.minute for one in times]
    angle = cmath.phase(sum(cmath.rect(1.0, 2 * math.pi * minute / DAY) for minute in minutes))
    common = min(minutes, key=lambda minute: time_apart(minute, round(angle / (2 * math.pi) * DAY)))
    near = [one for one, minute in zip(times, minutes, strict=True) if time_apart(minute, common) <= NEAR]
    days = {one.date() for one in near}
    if len(days) >= max(FEWEST, KEPT * len(times)):
        at = f"at {common // 60:02d}:{common % 60:02d}"
        weekdays = [one.weekday() for one in near]
        usual = max(set(weekdays), key=weekdays.count)
        if weekdays.count(usual) >= KEPT * len(times):
            return f"on {DAYS[usual]} {at}"
        if len(days) >= DAILY * ((max(days) - min(days)).days + 1):
            night = common >= NIGHT[0] or common < NIGHT[1]
            return f"{'nightly' if night else 'daily'} {at}"
    steps = sorted(after - before for before, after in itertools.pairwise(map(_seconds, times)))
    middle = steps[len(steps) // 2]
    if middle > 0 and sum(abs(step - middle) <= EVEN * middle for step in steps) >= KEPT * len(steps):
        size, unit = next((size, unit) for size, unit in UNITS if middle >= 1.5 * size or unit == "s")
        return f"about every {say_number(middle / size)} {unit}"
    return ""


def ordinal(number: int) -> str:
    """Write a number as a place in an order.

    Examples
    --------
    >>> [ordinal(number) for number in (1, 2, 3, 11, 12, 22)]
    ['1st', '2nd', '3rd', '11th', '12th', '22nd']
    """
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _seconds(moment: datetime.datetime) -> float:
    return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp()


def _order(alarm: Alarm) -> tuple[float, int]:
    moment = moment_of(alarm.raised_time)
    if moment is not None:
        return _seconds(moment), alarm.raised
    return (alarm.raised_time if isinstance(alarm.raised_time, int | float) else float(alarm.raised)), alarm.raised
