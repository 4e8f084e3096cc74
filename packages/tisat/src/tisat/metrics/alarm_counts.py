"""Alarms counted against events: each event rewarded once, each false alarm penalised once, and the delays.

An alarm is *raised* at the first row of every run of active rows and again every ``delta_max`` while the run lasts. Every
sequence metric is built on what a detection, a delay and a false alarm are here. It does not know thresholds or areas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tisat.errors import InputError
from tisat.events import events_from_labels
from tisat.metrics.pooling import Score, selections
from tisat.metrics.windows import Delay, Windows, all_scores, all_windows, series_list
from tisat.utils.numbers import say_number
from tisat.utils.types import Array, Flags, Integers, Labels, Scores, Stamps
from tisat.utils.validation import check_labels, check_real, check_same_length

DAY = 86_400 * 10**9  # nanoseconds
NONE: Integers = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class AlarmCounts:
    """Counts of a set of alarms, pooled over one or many series.

    Attributes
    ----------
    delays : array of shape (n_events,)
        From the onset to the first active row of the window, in rows (or seconds where ``delta_max`` is a duration);
        a missed event has ``delta_max``.
    detected : bool array of shape (n_events,)
        Whether each event has an alarm in time.
    false_alarms : list of int arrays
        For each series the rows at which a false alarm was raised.

    Examples
    --------
    >>> from tisat.metrics import count_alarms
    >>> found = count_alarms([0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 0, 0], delta_max=2)
    >>> found.true_alarms, found.n_false_alarms, found.delays.tolist()
    (1, 0, [1.0])
    """

    delays: Array  # (n_events,)
    detected: Flags  # (n_events,)
    false_alarms: list[Integers]  # one array a series
    delta_max: float  # rows or seconds
    n_outside: int  # rows at which an alarm would be false
    days_outside: float  # the same as time; NaN without timestamps
    per_series: tuple[AlarmCounts, ...] = ()  # empty where there is only one series
    n_lasting: int = 0  # of the false alarms, those raised again because one stayed on

    @property
    def n_events(self) -> int:
        """S, the number of events."""
        return len(self.delays)

    @property
    def true_alarms(self) -> int:
        """TP: detected events, each rewarded once."""
        return int(self.detected.sum())

    @property
    def n_false_alarms(self) -> int:
        """FP: alarms raised outside labels and windows, each penalised once."""
        return sum(map(len, self.false_alarms))

    @property
    def average_delay(self) -> float:
        """ADD, the mean delay over all events, missed ones at ``delta_max``; NaN without events."""
        return float(self.delays.mean()) if self.n_events else float("nan")

    @property
    def normalised_delay(self) -> float:
        """NADD = ADD / delta_max, from 0 (at once) to 1 (never)."""
        return self.average_delay / self.delta_max

    @property
    def precision(self) -> float:
        """TP / (TP + FP); NaN where no alarm counts either way."""
        total = self.true_alarms + self.n_false_alarms
        return self.true_alarms / total if total else float("nan")

    @property
    def recall(self) -> float:
        """The share of events detected within their window; NaN without events."""
        return self.true_alarms / self.n_events if self.n_events else float("nan")

    @property
    def event_f1(self) -> float:
        """The harmonic mean of precision and recall, counted in alarms and events; NaN without events.

        Its floor: an alarm that is always on has recall 1 and one false alarm every ``delta_max``.
        """
        if not self.n_events:
            return float("nan")
        return 2 * self.true_alarms / (self.n_events + self.true_alarms + self.n_false_alarms)

    @property
    def false_alarms_per_1000(self) -> float:
        """False alarms per 1000 rows at which one could be raised. Always on: about 1000 / delta_max."""
        return 1000 * self.n_false_alarms / self.n_outside if self.n_outside else float("nan")

    @property
    def false_alarms_per_day(self) -> float:
        """False alarms per day of time at which one could be raised; NaN without timestamps."""
        return self.n_false_alarms / self.days_outside if self.days_outside else float("nan")

    def __str__(self) -> str:
        rate = f"{say_number(self.false_alarms_per_1000, 3)} per 1000 rows"
        if np.isfinite(self.days_outside):
            rate = f"{say_number(self.false_alarms_per_day, 3)} per day"
        missed, delay = self.n_events - self.true_alarms, f"mean delay {self.average_delay:.4g} of {self.delta_max:g}"
        if missed and self.true_alarms:
            delay = f"those after {self.delays[self.detected].mean():.4g} on average, {missed} missed ({delay} with each miss at {self.delta_max:g})"
        elif missed:
            delay = f"{missed} missed"
        new = self.n_false_alarms - self.n_lasting
        more = f" and {self.n_lasting} more for alarms that stayed on" if self.n_lasting else ""
        false = f"{new} false alarm{'s' * (new != 1)}{more} ({rate})"
        return (
            f"{self.true_alarms} of {self.n_events} events detected, {delay}, {false}, precision {self.precision:.3f}"
        )


def raise_times(active: object, windows: Windows) -> Integers:
    """The rows at which alarms are raised: the start of every active run, and again every ``delta_max`` within it.

    Examples
    --------
    >>> from tisat.metrics.windows import windows_of
    >>> raise_times([0, 1, 1, 1, 1, 1, 0, 1], windows_of([0] * 8, 2)).tolist()
    [1, 3, 5, 7]
    """
    runs = events_from_labels(check_labels(active, "active", "raise_times"))
    if windows.stride:
        counts = -(-(runs[:, 1] - runs[:, 0]) // windows.stride)
        firsts = np.repeat(np.cumsum(counts) - counts, counts)
        nth = np.arange(int(counts.sum()), dtype=np.int64) - firsts
        return np.asarray(np.repeat(runs[:, 0], counts) + nth * windows.stride, dtype=np.int64)
    times: list[int] = []
    following = windows.following
    for start, stop in runs.tolist():
        time_step = start
        while time_step < stop:
            times.append(time_step)
            time_step = int(following[time_step])
    return np.array(times, dtype=np.int64)


def _count_one(time_steps: Integers, raised: Integers, windows: Windows, *, again: Integers = NONE) -> AlarmCounts:
    """Counts from the sorted active rows and the raises of one series, of which some are ``again``."""
    first = np.searchsorted(time_steps, windows.events[:, 0])
    candidates = np.append(time_steps, len(windows))[first]
    detected = candidates < windows.stops
    delays = np.full(len(windows.events), windows.delta_max, dtype=np.int64)
    delays[detected] = windows.delay(np.flatnonzero(detected), candidates[detected])
    days = float("nan")
    if windows.ticks is not None and len(windows) > 1:
        durations = np.append(np.diff(windows.ticks), int(np.median(np.diff(windows.ticks))))
        days = float(durations[windows.outside].sum() / DAY)
    return AlarmCounts(
        delays=delays / windows.unit,
        detected=detected,
        false_alarms=[raised[windows.outside[raised]]],
        delta_max=windows.delta_max / windows.unit,
        n_outside=int(windows.outside.sum()),
        days_outside=days,
        n_lasting=int(windows.outside[again].sum()),
    )


def _together(counts: Sequence[AlarmCounts]) -> AlarmCounts:
    return AlarmCounts(
        delays=np.concatenate([c.delays for c in counts]),
        detected=np.concatenate([c.detected for c in counts]),
        false_alarms=[times for c in counts for times in c.false_alarms],
        delta_max=counts[0].delta_max,
        n_outside=sum(c.n_outside for c in counts),
        days_outside=float(sum(c.days_outside for c in counts)),
        n_lasting=sum(c.n_lasting for c in counts),
    )


def _pool(counts: Sequence[AlarmCounts]) -> AlarmCounts:
    many = len(counts) > 1
    return replace(_together(counts), per_series=tuple(map(_together, selections(counts)))) if many else counts[0]


def count_active(active: object, windows: Sequence[Windows], *, whose: str) -> AlarmCounts:
    """:func:`count_alarms` on windows that were already made."""
    masks = [check_labels(m, "active", whose) for m in series_list(active, like=windows, name="active", whose=whose)]
    counts = []
    for mask, window in zip(masks, windows, strict=True):
        check_same_length(window, mask, ("y_true", "active"), whose)
        raised = raise_times(mask, window)
        again = raised[(raised > 0) & (mask[raised - 1] == 1)]
        counts.append(_count_one(np.flatnonzero(mask), raised, window, again=again))
    return _pool(counts)


def count_raised(raised: Any, windows: Sequence[Windows], *, whose: str) -> AlarmCounts:
    """:func:`count_raises` on windows that were already made."""
    if len(windows) == 1 and not (isinstance(raised, list | tuple) and len(raised) == 1 and np.ndim(raised[0])):
        raised = [raised]
    if len(raised) != len(windows):
        raise InputError(
            f"The 'raised' argument of {whose} must hold one list of rows for each of the {len(windows)} series. Got {len(raised)} instead."
        )
    counts = []
    for times, window in zip(raised, windows, strict=True):
        time_steps = np.unique(np.asarray(times, dtype=np.float64))
        whole = time_steps.astype(np.int64)
        inside = np.array_equal(whole, time_steps) and bool(((whole >= 0) & (whole < len(window))).all())
        if np.ndim(times) != 1 or not inside:
            raise InputError(
                f"The 'raised' argument of {whose} must hold rows from 0 to {len(window) - 1}. Got {times!r} instead."
            )
        counts.append(_count_one(whole, whole, window))
    return _pool(counts)


def count_alarms(y_true: Labels, active: object, *, delta_max: Delay, timestamps: Stamps = None) -> AlarmCounts:
    """Alarms given as active masks, counted against labelled events.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list of them
        Labels: 1 in events.
    active : array of 0 and 1 of the same shape
        1 where the alarm is on. It is raised at the start of every run, and again every ``delta_max`` while the run lasts.
    delta_max : int or duration
        The longest tolerable delay.
    timestamps : array of shape (T,) or a list of them, optional
        Needed by a duration.

    Returns
    -------
    AlarmCounts

    Examples
    --------
    >>> print(count_alarms([0, 0, 1, 1, 1, 0, 0, 0], [1, 0, 0, 1, 1, 0, 0, 1], delta_max=2))
    1 of 1 events detected, mean delay 1 of 2, 2 false alarms (400 per 1000 rows), precision 0.333
    """
    windows = all_windows(y_true, delta_max, timestamps=timestamps, whose="count_alarms")
    return count_active(active, windows, whose="count_alarms")


def count_raises(y_true: Labels, raised: object, *, delta_max: Delay, timestamps: Stamps = None) -> AlarmCounts:
    """Alarms given as the rows at which they were raised, counted against labelled events.

    Each row is one alarm, exactly as given: nothing is raised again. For a process that resets after every alarm.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list of them
        Labels: 1 in events.
    raised : sequence of rows, or a list of such sequences
        Rows at which an alarm was raised.
    delta_max, timestamps
        As in :func:`count_alarms`.

    Returns
    -------
    AlarmCounts
        True and false alarms, delays and misses.

    Examples
    --------
    >>> counts = count_raises([0, 0, 1, 1, 1, 0, 0, 0], [0, 3, 7], delta_max=2)
    >>> counts.true_alarms, counts.n_false_alarms, counts.average_delay
    (1, 2, 1.0)
    """
    windows = all_windows(y_true, delta_max, timestamps=timestamps, whose="count_raises")
    return count_raised(raised, windows, whose="count_raises")


def count_at_threshold(
    y_true: Labels, y_score: Scores, *, threshold: float, delta_max: Delay, timestamps: Stamps = None
) -> AlarmCounts:
    """Alarms of a thresholded score (active where ``score >= threshold``; NaN never), counted against events.

    Parameters
    ----------
    y_true : array-like of shape (T,), or a list of them
        Labels: 1 in events.
    y_score : array-like of shape (T,), or a list of them
        Scores; higher is more anomalous.
    threshold : float
        Rows with a score at or above it are alarms.
    delta_max : int or str
        Longest delay that counts: rows, or a duration where there are timestamps.
    timestamps : array-like, optional
        Times of the rows, for durations.

    Returns
    -------
    AlarmCounts
        True and false alarms, delays and misses.

    Examples
    --------
    >>> count_at_threshold([0, 0, 1, 1], [0.1, 0.2, 0.2, 0.9], threshold=0.5, delta_max=2).delays.tolist()
    [1.0]
    """
    return _at_threshold(y_true, y_score, threshold, delta_max, timestamps, "count_at_threshold")


def _at_threshold(
    y_true: Labels, y_score: Scores, threshold: float, delta_max: Delay, timestamps: Stamps, whose: str
) -> AlarmCounts:
    level = check_real(threshold, "threshold", whose)
    windows = all_windows(y_true, delta_max, timestamps=timestamps, whose=whose)
    scores = all_scores(y_score, windows, whose=whose)
    return count_active([s >= level for s in scores], windows, whose=whose)


def detection_delay(
    y_true: Labels, y_score: Scores, *, threshold: float, delta_max: Delay, timestamps: Stamps = None
) -> Array:
    """The delay of each event, in order of time and series by series.

    A missed event has ``delta_max``. Rows, or seconds where ``delta_max`` is a duration.

    Parameters
    ----------
    y_true, y_score, threshold, delta_max, timestamps
        As in :func:`count_at_threshold`.

    Returns
    -------
    Array
        Delay of each event; ``delta_max`` where it was missed.

    Examples
    --------
    >>> detection_delay([0, 1, 1, 0, 1, 0], [0, 0, 9, 0, 0, 0], threshold=5, delta_max=1).tolist()
    [1.0, 1.0]
    """
    return _at_threshold(y_true, y_score, threshold, delta_max, timestamps, "detection_delay").delays


def average_detection_delay(
    y_true: Labels, y_score: Scores, *, threshold: float, delta_max: Delay, timestamps: Stamps = None
) -> Score:
    """ADD: the mean delay over all events, missed ones at ``delta_max``.

    NaN without events. Always on: 0.

    Parameters
    ----------
    y_true, y_score, threshold, delta_max, timestamps
        As in :func:`count_at_threshold`.

    Returns
    -------
    Score
        Mean delay over events, misses counted as ``delta_max``.

    Examples
    --------
    >>> average_detection_delay([0, 1, 1, 1], [0, 0, 0, 9], threshold=5, delta_max=4)
    2.0
    """
    counts = _at_threshold(y_true, y_score, threshold, delta_max, timestamps, "average_detection_delay")
    return Score.of(counts.average_delay, [one.average_delay for one in counts.per_series or (counts,)])


def alarm_precision(
    y_true: Labels, y_score: Scores, *, threshold: float, delta_max: Delay, timestamps: Stamps = None
) -> Score:
    """Detected events / (detected events + false alarms).

    NaN where no alarm counts either way.

    Its baseline is what an alarm that is always on gets: S / (S + normal rows / delta_max), about.

    Parameters
    ----------
    y_true, y_score, threshold, delta_max, timestamps
        As in :func:`count_at_threshold`.

    Returns
    -------
    Score
        Share of alarms that are true.

    Examples
    --------
    >>> alarm_precision([0, 1, 1, 1, 0, 0, 0, 0], [0, 9, 0, 0, 0, 0, 9, 0], threshold=5, delta_max=2)
    0.5
    """
    counts = _at_threshold(y_true, y_score, threshold, delta_max, timestamps, "alarm_precision")
    return Score.of(counts.precision, [one.precision for one in counts.per_series or (counts,)])
