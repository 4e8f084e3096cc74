"""Scores of a whole file: each row by what lies round it, before and after.

For files; a stream knows the past alone.

The score of a row is the mean distance of all windows that contain it to their nearest window of training, the window as long as the
data's own period, each without its mean. Channels of few values (commands, states) count together as one: dozens of them say
what one state says. Where a detector's statistic is given too, the two are joined as standard scores: they
are strong on different data. Nothing here raises alarms, and no threshold is calibrated for it.
"""

from __future__ import annotations

import numpy as np

from tisat.errors import InputError
from tisat.utils.neighbors import nearest
from tisat.utils.period import own_period
from tisat.utils.types import Array
from tisat.utils.validation import check_integer

STORED = {True: 4000, False: 2000}  # windows of training kept: with one channel, with several
LOWEST, HIGHEST = -4.0, 5.0  # scaled values are cut off here, as in prism
FEW_VALUES = 10  # channels with so few values in training are switches, which count together as one channel
AFTER = 60  # rows after a row over which a statistic is averaged


def window_scores(train: Array, rows: Array, *, period: int | None = None) -> Array:
    """Scores ``(T,)`` of ``rows`` ``(T, C)``: the mean distance of the windows round each to their nearest of ``train``.

    Parameters
    ----------
    train : array of shape (N, C)
        Normal rows without missing values.
    rows : array of shape (T, C)
    period : int, optional
        Rows of a window; the data's own period unless given.

    Examples
    --------
    >>> wave = np.sin(np.arange(1200) * 2 * np.pi / 30)[:, None]
    >>> odd = wave[:600].copy()
    >>> odd[300:315] = 0.0
    >>> bool(window_scores(wave, odd)[295:320].min() > window_scores(wave, odd)[:250].max())
    True
    """
    if train.ndim != 2 or rows.ndim != 2 or train.shape[1] != rows.shape[1]:
        raise InputError(
            f"The rows given to window_scores must be (T, C) with the channels of train. Got {rows.shape} and {train.shape} instead."
        )
    if np.isnan(train).any() or np.isnan(rows).any():
        raise InputError("The rows given to window_scores must have no missing values. Got NaN; fill them first.")
    length = own_period(rows) if period is None else check_integer(period, "period", "window_scores", minimum=2)
    length = min(length, len(train) // 2, len(rows))
    if length < 2:
        raise InputError(
            f"The rows given to window_scores must be at least 4. Got {len(train)} and {len(rows)} instead."
        )
    low, span = train.min(axis=0), np.ptp(train, axis=0)
    unit = np.where(span > 0, span, np.maximum(np.abs(low), 1.0))
    training, scored = (np.clip((one - low) / unit, LOWEST, HIGHEST) for one in (train, rows))
    most = STORED[rows.shape[1] == 1]
    places = np.unique(np.linspace(0, len(train) - length, min(most, len(train) - length + 1)).round().astype(np.int64))
    squares, of_switches = np.zeros(len(rows) - length + 1), np.zeros(len(rows) - length + 1)
    switches = [c for c in range(rows.shape[1]) if len(np.unique(train[:, c])) <= FEW_VALUES]
    for c in range(rows.shape[1]):
        total = of_switches if c in switches else squares
        stored, windows = (np.lib.stride_tricks.sliding_window_view(one[:, c], length) for one in (training, scored))
        references, every = stored[places], windows - windows.mean(axis=1, keepdims=True)
        if not np.ptp(training[:, c]):  # every stored window is 0: nothing to search
            total += (every**2).sum(axis=1)
            continue
        total += nearest(every, references - references.mean(axis=1, keepdims=True), k=1)[0][:, 0] ** 2
    distance = np.sqrt(squares + of_switches / max(len(switches), 1))
    total = np.convolve(distance, np.ones(length))
    return np.asarray(np.maximum(total, 0.0) / np.convolve(np.ones(len(distance)), np.ones(length)))


def ahead(statistic: Array, after: int = AFTER) -> Array:
    """The mean ``(T,)`` of a statistic over each row and the ``after - 1`` rows behind it; unknown rows count as 0."""
    known = np.concatenate([np.nan_to_num(statistic), np.zeros(after - 1)])
    total = np.concatenate([[0.0], np.cumsum(known)])
    return np.asarray((total[after:] - total[:-after]) / after)


def _standard(scores: Array) -> Array:
    """Scores less their mean, in standard deviations; 0 where they are all equal."""
    spread = float(np.std(scores))
    return (scores - scores.mean()) / spread if spread > 0.0 else np.zeros(len(scores))


def joined(first: Array, second: Array, *, period: int) -> Array:
    """Join two scores ``(T,)``: the sum of their standard scores, averaged over the ``period`` rows round each row.

    Examples
    --------
    >>> joined(np.array([0.0, 0.0, 3.0, 0.0]), np.array([0.0, 0.0, 0.0, 5.0]), period=1).round(3).tolist()
    [-1.155, -1.155, 1.155, 1.155]
    """
    total = _standard(first) + _standard(second)
    width = min(period, len(total))
    return np.asarray(
        np.convolve(total, np.ones(width), "same") / np.convolve(np.ones(len(total)), np.ones(width), "same")
    )
