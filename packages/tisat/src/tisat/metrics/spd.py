"""Sequence Precision-Delay: the area under precision over normalised average detection delay, exact over all thresholds.

Only the running-maximum records of the scores inside the windows change a delay or a detection, so only those K values
matter as thresholds; the false alarms at all of them are counted in one pass. Nothing is interpolated and no grid is used.
This module does not know what a trivial baseline gets on the same labels: that is :mod:`tisat.metrics.baselines`.

Paper: Doshi, Abudalou, Yilmaz, "Reward Once, Penalize Once", section IV. Departures, with their reasons, are in
``docs/5-evaluation.md``: windows are cut at the next onset, a lasting alarm is raised again every ``delta_max``, an alarm in an
event after its window counts neither way, and the integral is a step sum from NADD = 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tisat.errors import InputError, SeriesWarning
from tisat.metrics import _kernels
from tisat.metrics.alarm_counts import count_active, count_raised
from tisat.metrics.pooling import Score
from tisat.metrics.windows import Delay, Windows, all_scores, all_windows, series_list
from tisat.utils.types import AnyArray, Array, Integers, Labels, Scores, Stamps
from tisat.utils.validation import check_choice, check_vector

COUNTINGS = ("event", "instance")
EXACT = 2**62  # sums of delays are integers up to here: months in nanoseconds times thousands of events; floats beyond


@dataclass(frozen=True, eq=False)
class Points:
    """The counts at descending thresholds: all that a curve or an area is made of."""

    thresholds: Array  # (K,), descending
    saved: AnyArray  # (K,), delta_max * n_events - sum of the delays: the delay saved so far; exact integers
    true_alarms: Integers  # (K,)
    false_alarms: Integers  # (K,)
    n_events: int
    delta_max: int

    @property
    def nadd(self) -> Array:
        """Normalised average detection delay at each threshold."""
        return 1.0 - self.saved / max(self.n_events * self.delta_max, 1)

    @property
    def precision(self) -> Array:
        """TP / (TP + FP), NaN where both are 0."""
        total = self.true_alarms + self.false_alarms
        with np.errstate(invalid="ignore"):
            return np.where(total > 0, self.true_alarms / np.maximum(total, 1), np.nan)

    @property
    def area(self) -> float:
        """The step integral of precision over NADD from 1; NaN without events.

        A point that saves nothing adds nothing.
        """
        if not self.n_events:
            return float("nan")
        best = np.maximum.accumulate(np.append(0, self.saved))
        gains = np.diff(best)
        useful = gains > 0
        return float((gains[useful] * self.precision[useful]).sum() / (self.n_events * self.delta_max))


def _gains(scores: Sequence[Array], windows: Sequence[Windows]) -> tuple[Array, AnyArray, Integers]:
    """For every record inside a window: its value, the delay saved and the events gained when a threshold falls to it."""
    values, saved, gained = [], [], []
    for one, window in zip(scores, windows, strict=True):
        value, position, owner = _kernels.window_records(one, window.events[:, 0], window.stops)
        delay = window.delay(owner, position)
        last = np.append(owner[1:] != owner[:-1], True)[: len(owner)]
        values.append(value)
        saved.append(np.where(last, window.delta_max, np.append(delay[1:], 0)[: len(delay)]) - delay)
        gained.append(last.astype(np.int64))
    return np.concatenate(values), np.concatenate(saved), np.concatenate(gained)


def _count_instances(
    scores: Sequence[Array], windows: Sequence[Windows], ascending: Array
) -> tuple[Integers, Integers]:
    """Active rows inside windows and elsewhere, at each of the ascending thresholds."""
    inside = np.zeros(len(ascending) + 1, dtype=np.int64)
    everywhere = np.zeros(len(ascending) + 1, dtype=np.int64)
    for one, window in zip(scores, windows, strict=True):
        known = ~np.isnan(one)
        level = np.searchsorted(ascending, one[known], side="right")
        everywhere += np.bincount(level, minlength=len(ascending) + 1)
        inside += np.bincount(level[window.inside[known]], minlength=len(ascending) + 1)
    reached = [np.cumsum(counts[::-1])[::-1][1:] for counts in (inside, everywhere)]
    return reached[0], reached[1] - reached[0]


def points_of(
    scores: Sequence[Array], windows: Sequence[Windows], *, counting: str, thresholds: Array | None = None
) -> Points:
    """The counts at every threshold that changes a delay or a detection, or at the given ones."""
    values, saved, gained = _gains(scores, windows)
    ascending = np.unique(values if thresholds is None else thresholds)
    n_events = sum(len(window.events) for window in windows)
    if n_events * windows[0].delta_max > EXACT:
        saved = saved.astype(np.float64)
    order = np.argsort(values)[::-1]
    passed = np.searchsorted(-values[order], -ascending[::-1], side="right")  # records at or above each threshold
    saved_so_far = np.append(0, np.cumsum(saved[order]))[passed]
    true_alarms = np.append(0, np.cumsum(gained[order]))[passed]
    if counting == "instance":
        inside, elsewhere = _count_instances(scores, windows, ascending)
        true_alarms, false_alarms = inside[::-1], elsewhere[::-1]
    else:
        false_alarms = np.zeros(len(ascending), dtype=np.int64)
        for one, window in zip(scores, windows, strict=True):
            false_alarms += _kernels.false_alarms(one, window.outside, ascending, window.stride or window.following)[
                ::-1
            ]
    return Points(
        thresholds=ascending[::-1],
        saved=saved_so_far,
        true_alarms=true_alarms,
        false_alarms=false_alarms,
        n_events=n_events,
        delta_max=windows[0].delta_max,
    )


def score_windows(scores: Sequence[Array], windows: Sequence[Windows], *, counting: str) -> Score:
    """:func:`spd_score` on windows that were already made."""

    def area(some: Sequence[tuple[Array, Windows]]) -> float:
        return points_of([s for s, _ in some], [w for _, w in some], counting=counting).area

    return Score.over(list(zip(scores, windows, strict=True)), area)


def spd_score(
    y_true: Labels, y_score: Scores, *, delta_max: Delay, counting: str = "event", timestamps: Stamps = None
) -> Score:
    """Sequence Precision-Delay, from 0 to 1; higher is better.

    1 only for scores that rank every onset above all else.

    Read it beside :func:`tisat.metrics.baselines`: an alarm that is always on does not score 0, and its score grows with
    ``delta_max``.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list of such arrays
        Labels: 1 in events.
    y_score : array of shape (T,), or a list
        Higher is more anomalous. NaN (warm-up) is never an alarm.
    delta_max : int or duration
        The longest tolerable delay, in rows, or as a duration such as ``"10min"`` with ``timestamps``.
    counting : {"event", "instance"}
        What precision counts. ``"event"``: detected events against raised alarms. ``"instance"``: every active row is an
        alarm, the literal reading of the paper's formula; a long event then pays for many false alarms.
    timestamps : array of shape (T,), or a list, optional
        Dates or seconds. Needed where ``delta_max`` is a duration; sampling may be irregular.

    Returns
    -------
    Score
        A float, the pooled SPD. ``per_series_mean`` and ``per_series`` are its attributes. NaN where there is no event.

    Notes
    -----
    Paper: Doshi, Abudalou, Yilmaz, "Reward Once, Penalize Once", section IV. Exact over all distinct scores: ties are one
    threshold, nothing is interpolated.

    Examples
    --------
    >>> y_true = [0, 0, 0, 1, 1, 1, 0, 0, 0, 0]
    >>> spd_score(y_true, [0, 0, 0, 9, 0, 0, 0, 0, 0, 0], delta_max=2)  # at once
    1.0
    >>> spd_score(y_true, [0, 0, 0, 0, 9, 0, 0, 0, 0, 0], delta_max=2)  # one row late
    0.6
    """
    check_choice(counting, "counting", "spd_score", choices=COUNTINGS)
    windows = all_windows(y_true, delta_max, timestamps=timestamps, whose="spd_score")
    if not sum(len(one.events) for one in windows):
        warnings.warn("y_true has no event: SPD is not defined, nan.", SeriesWarning, stacklevel=2)
    return score_windows(all_scores(y_score, windows, whose="spd_score"), windows, counting=counting)


def process_points(
    family: Mapping[float, npt.ArrayLike], windows: Sequence[Windows], *, raised: bool, whose: str
) -> Points:
    """The counts of a family of alarm processes, by descending threshold."""
    if not isinstance(family, Mapping) or not family:
        raise InputError(
            f"The alarms given to {whose} must be a mapping from thresholds to alarms, not empty. Got {type(family).__name__} instead."
        )
    thresholds = np.sort(check_vector(list(family), "alarms", whose))[::-1]
    count = count_raised if raised else count_active
    counts = [count(family[h], windows, whose=whose) for h in sorted(family, reverse=True)]
    delta_max = windows[0].delta_max
    unit = windows[0].unit
    return Points(
        thresholds=thresholds,
        saved=np.array([np.rint((delta_max - c.delays * unit).sum()) for c in counts]),
        true_alarms=np.array([c.true_alarms for c in counts], dtype=np.int64),
        false_alarms=np.array([c.n_false_alarms for c in counts], dtype=np.int64),
        n_events=sum(len(window.events) for window in windows),
        delta_max=delta_max,
    )


def score_process(
    family: Mapping[float, npt.ArrayLike], windows: Sequence[Windows], *, raised: bool, whose: str
) -> Score:
    """SPD of a family of alarm processes on windows that were already made."""
    pooled = process_points(family, windows, raised=raised, whose=whose).area
    if len(windows) == 1:
        return Score.of(pooled, [pooled])
    lists = {h: series_list(alarms, name="family", whose=whose) for h, alarms in family.items()}
    single = [
        process_points({h: [alarms[i]] for h, alarms in lists.items()}, [window], raised=raised, whose=whose).area
        for i, window in enumerate(windows)
    ]
    return Score.of(pooled, single)


def spd_score_of_active(
    y_true: Labels, active: Mapping[float, Labels], *, delta_max: Delay, timestamps: Stamps = None
) -> Score:
    """SPD of an alarm process that is not a thresholded score, from its active masks at some thresholds.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
        Labels: 1 in events.
    active : mapping from threshold to mask of shape (T,) (or to a list of masks)
        Taken in descending order of threshold; a point that does not lower the mean delay adds no area. Unlike a score's, the area is over
        the given thresholds only: more of them can only add to it.
    delta_max, timestamps
        As in :func:`spd_score`.

    Returns
    -------
    Score
        The area under precision against delay.

    Examples
    --------
    >>> spd_score_of_active([0, 1, 1, 0, 0], {2.0: [0, 0, 1, 0, 0], 1.0: [0, 1, 1, 0, 1]}, delta_max=2)
    0.75
    """
    windows = all_windows(y_true, delta_max, timestamps=timestamps, whose="spd_score_of_active")
    return score_process(active, windows, raised=False, whose="spd_score_of_active")


def spd_score_of_raises(
    y_true: Labels, raised: Mapping[float, npt.ArrayLike], *, delta_max: Delay, timestamps: Stamps = None
) -> Score:
    """SPD of an alarm process from the rows at which it raised alarms, at some thresholds.

    As :func:`spd_score_of_active`, but each row given is one alarm and nothing is raised again.

    Parameters
    ----------
    y_true : array-like of shape (T,), or a list of them
        Labels: 1 in events.
    raised : dict
        Threshold -> rows at which an alarm was raised.
    delta_max : int or str
        Longest delay that counts: rows, or a duration where there are timestamps.
    timestamps : array-like, optional
        Times of the rows, for durations.

    Returns
    -------
    Score
        The area under precision against delay.

    Examples
    --------
    >>> spd_score_of_raises([0, 1, 1, 0, 0], {2.0: [2], 1.0: [1, 4]}, delta_max=2)
    0.75
    """
    windows = all_windows(y_true, delta_max, timestamps=timestamps, whose="spd_score_of_raises")
    return score_process(raised, windows, raised=True, whose="spd_score_of_raises")
