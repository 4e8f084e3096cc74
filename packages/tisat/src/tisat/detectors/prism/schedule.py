"""Times of the week at which the series jumps again and again, as at a nightly job: switches that the clock tells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism.switches import DAY, WEEKDAYS
from tisat.utils.compiled import compiled
from tisat.utils.types import Flags, Integers

SLOT = 900.0  # seconds
SLOTS = int(WEEKDAYS * DAY / SLOT)  # of a week
PER_DAY = int(DAY / SLOT)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SHARP = 12.0  # times the 90th percentile of squared steps, from which on a step is a jump
DAILY, SURE, FEWEST_DAYS = 0.6, 5.0, 7  # share of days, in standard errors above the share at any time
SHARP_WEEKLY = 6.0  # the same of a weekly jump, beside the median of its time of the day
WEEKLY, SURE_WEEKLY, FEWEST_WEEKS = 0.75, 7.0, 3
OWN = 0.1  # share of cycles in which a slot itself has a jump, and not a slot beside it


def are_places(values: Array, count: int) -> bool:
    """Whether values from a file may be used as indices below a count."""
    return bool(((values >= 0) & (values < count) & (values == np.floor(values))).all())


def slots_of(clock: Array) -> Integers:
    """The quarter of an hour of the week of local times in seconds since 1970; a week begins on Monday; -1: unknown."""
    known = ~np.isnan(clock)
    return np.where(known, ((np.where(known, clock, 0.0) + 3 * DAY) % (WEEKDAYS * DAY)) // SLOT, -1).astype(np.int64)


def table_of(times: Array) -> Flags:
    """For each slot of a week, and at last for an unknown time, whether it is among the ``times``."""
    table = np.zeros(SLOTS + 1, dtype=np.bool_)
    table[times.astype(np.int64)] = True
    return table


def places_of(slots: Array) -> Integers:
    """For each slot of a week, and at last for an unknown time, its place among some slots; -1 where it is not there."""
    places = np.full(SLOTS + 1, -1, dtype=np.int64)
    places[slots.astype(np.int64)] = np.arange(len(slots))
    return places


@compiled()
def place_of(clock: float, places: Integers) -> int:  # pragma: no cover - compiled
    """The place of the slot of one local time: see :func:`slots_of`."""
    if clock != clock:
        return -1
    return int(places[int((clock + 3 * DAY) % (WEEKDAYS * DAY) // SLOT)])


def scheduled(parts: Sequence[Array], clocks: Sequence[Array]) -> Array:
    """The slots of a week ``(S,)`` in which some channel jumps on most days, or in most weeks; empty without a clock.

    Parameters
    ----------
    parts : sequence of arrays of shape (T_i, C)
        Rows without missing values.
    clocks : sequence of arrays of shape (T_i,)
        Local time in seconds since 1970, NaN where unknown.
    """
    steps = np.concatenate([np.diff(part, axis=0) for part in parts])
    times = np.concatenate([clock[1:] for clock in clocks])
    if not len(times) or np.isnan(times).any():
        return np.zeros(0)
    first = np.floor(times.min() / DAY)
    days = int(np.floor(times.max() / DAY) - first) + 1
    place = (times // SLOT - first * PER_DAY).astype(np.int64)
    by_day = _with_jumps(place, _jumps(steps, SHARP), days * PER_DAY).reshape(3, days, PER_DAY)
    daily = _recurring(*by_day, least=DAILY, cycles=FEWEST_DAYS, sure=SURE)
    start = int((first + 3) % WEEKDAYS)  # the weekday of the first day
    by_weekday = _weekdays(by_day, start) & daily
    for slot in np.unique(place % PER_DAY):  # a weekend is a jump beside what the same time of other days does
        here = place % PER_DAY == slot
        steps[here] -= np.median(steps[here], axis=0)
    by_day = _with_jumps(place, _jumps(steps, SHARP_WEEKLY), days * PER_DAY).reshape(3, days, PER_DAY)
    by_day[1:, :, daily] = False
    weeks = -(-(start + days) // WEEKDAYS)
    by_week = np.zeros((3, weeks * SLOTS), dtype=np.bool_)
    by_week[:, start * PER_DAY : (start + days) * PER_DAY] = by_day.reshape(3, -1)
    weekly = _recurring(*by_week.reshape(3, weeks, SLOTS), least=WEEKLY, cycles=FEWEST_WEEKS, sure=SURE_WEEKLY)
    return np.flatnonzero(by_weekday.ravel() | weekly).astype(np.float64)


def _weekdays(by_day: Flags, start: int) -> Flags:
    """On which days of the week there are jumps in or beside a slot ``(7, slots)``, more often than not; a day that is not there has them."""
    weekday = (start + np.arange(by_day.shape[1])) % WEEKDAYS
    out = np.ones((WEEKDAYS, PER_DAY), dtype=np.bool_)
    for day in range(WEEKDAYS):
        seen, beside = by_day[0, weekday == day].sum(axis=0), by_day[2, weekday == day].sum(axis=0)
        out[day] = 2 * beside >= seen
    return out


def _jumps(steps: Array, sharp: float) -> Flags:
    """In which rows some channel moves far more than it usually does."""
    squares = steps**2
    usual = np.quantile(squares, 0.9, axis=0)
    return np.asarray(((squares > sharp * usual) & (usual > 0)).any(axis=1))


def _with_jumps(place: Integers, jumps: Flags, slots: int) -> Flags:
    """Of so many slots ``(3, slots)``: whether there are rows in it, whether some of them jump, whether they do in it or beside it."""
    seen, loud = np.zeros((2, slots), dtype=np.bool_)
    seen[place] = True
    loud[place[jumps]] = True
    beside = loud.copy()
    beside[1:] |= loud[:-1]
    beside[:-1] |= loud[1:]
    return np.stack([seen, loud, beside])


def _recurring(seen: Flags, loud: Flags, beside: Flags, *, least: float, cycles: int, sure: float) -> Flags:
    """In which columns of cycles ``(n, slots)`` jumps recur, far more often than in any column."""
    counted = seen.sum(axis=0)
    share, own = ((one.sum(axis=0) / np.maximum(counted, 1)) for one in (beside, loud))
    usual = min(max(float(np.median(share)), 0.01), 0.99)
    above = (share - usual) / np.sqrt(usual * (1 - usual) / np.maximum(counted, 1))
    return np.asarray((counted >= cycles) & (share >= least) & (own >= OWN) & (above >= sure))


def in_words(times: Array) -> str:
    """Slots of a week as a person would say them.

    Examples
    --------
    >>> in_words(np.array([8.0 + 96 * day for day in range(7)] + [9.0 + 96 * day for day in range(7)]))
    'daily 02:00 to 02:30'
    >>> in_words(np.array([6 * 96 + 20.0, 40.0]))
    'Monday 10:00 to 10:15, Sunday 05:00 to 05:15'
    """
    table = table_of(times)[:SLOTS].reshape(WEEKDAYS, PER_DAY).copy()
    said = []
    spans = [("daily", 0, 7), ("Monday to Friday", 0, 5), *((name, day, day + 1) for day, name in enumerate(DAYS))]
    for name, first, last in spans:
        some: Flags = np.asarray(table[first:last].all(axis=0))
        said += [f"{name} {stretch}" for stretch in _stretches(some)]
        table[first:last] &= ~some
    return ", ".join(said)


def _stretches(day: Flags) -> list[str]:
    """Runs of slots of a day, as clock times."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], day, [False]]).astype(np.int8)))
    return [" to ".join(f"{slot // 4:02d}:{slot % 4 * 15:02d}" for slot in run) for run in edges.reshape(-1, 2)]
