"""Alarms at one threshold beside the trivial baselines at theirs: the question a user of alarms asks.

SPD looks at every threshold; someone who has set a budget has one. :func:`evaluate_alarms` counts those alarms, and
beside them an alarm that is always on, one that blinks, and *the same alarms at random times*: the whole record rotated
by a random amount, which keeps how many there are and how long they last and breaks every tie with the events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import numpy as np

from tisat.metrics.alarm_counts import AlarmCounts, count_active
from tisat.metrics.baselines import on_off
from tisat.metrics.pooling import mean_known
from tisat.metrics.windows import Delay, all_windows, series_list
from tisat.utils.html import Printed
from tisat.utils.random import Seed, generator
from tisat.utils.types import Labels, Stamps
from tisat.utils.validation import check_integer


@dataclass(frozen=True)
class AlarmRow:
    """One line of the table: these alarms, or a trivial baseline's."""

    name: str
    detected: float  # events; a mean for the trivial baseline who is drawn
    false_alarms: float
    precision: float
    event_f1: float
    normalised_delay: float  # 0 at once, 1 never


@dataclass(frozen=True, repr=False)
class AlarmEvaluation(Printed):
    """Alarms and trivial baselines on the same labels. Prints as a table.

    Examples
    --------
    >>> from tisat.metrics import evaluate_alarms
    >>> evaluate_alarms([0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 0, 0], delta_max=2).counts.true_alarms
    1
    """

    counts: AlarmCounts  # of the alarms themselves
    rows: tuple[AlarmRow, ...]  # these alarms first, then the trivial baselines

    @property
    def beats_baselines(self) -> bool:
        """Whether every trivial baseline has a lower event F1."""
        return self.rows[0].event_f1 > max(row.event_f1 for row in self.rows[1:])

    def __str__(self) -> str:
        head = f"{'alarms':36}{'detected':>10}{'false':>9}{'precision':>11}{'event F1':>10}{'delay/max':>11}"
        lines = [
            f"{r.name:36}{r.detected:10.1f}{r.false_alarms:9.1f}{r.precision:11.3f}{r.event_f1:10.3f}{r.normalised_delay:11.3f}"
            for r in self.rows
        ]
        return "\n".join([str(self.counts), head, *lines])


def _row(name: str, counts: Sequence[AlarmCounts]) -> AlarmRow:
    columns = ("true_alarms", "n_false_alarms", "precision", "event_f1", "normalised_delay")
    return AlarmRow(name, *(mean_known([getattr(one, column) for one in counts]) for column in columns))


def _times_of(value: object) -> Stamps:
    """The times of alarms or of labels with an index of dates, of each in a list; None where one has none."""
    if isinstance(value, list | tuple):
        times = [_times_of(one) for one in value]
        return None if not times or any(one is None for one in times) else cast("Stamps", times)
    stamps = getattr(getattr(value, "index", None), "values", None)
    if isinstance(stamps, np.ndarray) and stamps.dtype.kind == "M":
        return stamps
    return cast("Stamps", getattr(value, "timestamps", None))


def evaluate_alarms(
    y_true: Labels,
    active: object,
    *,
    delta_max: Delay,
    timestamps: Stamps = None,
    n_simulations: int = 100,
    random_state: Seed = 0,
) -> AlarmEvaluation:
    """Count alarms against labelled events, beside what trivial baselines get on the same labels.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list of them
        Labels: 1 in events.
    active : array of 0 and 1 of the same shape, or Alarms, or a list of either
        1 where the alarm is on.
    delta_max, timestamps
        As in :func:`~tisat.metrics.count_alarms`; times that labels or alarms have themselves need not be given again.
    n_simulations : int
        How many rotations of the alarms are averaged.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    AlarmEvaluation
        Counts of these alarms beside those of trivial baselines.

    Examples
    --------
    >>> import numpy as np
    >>> y, on = np.zeros(1000, dtype=int), np.zeros(1000, dtype=int)
    >>> y[[300, 301, 302, 700, 701]] = 1
    >>> on[[301, 500, 702]] = 1
    >>> evaluation = evaluate_alarms(y, on, delta_max=10)
    >>> print(evaluation.counts)
    2 of 2 events detected, mean delay 1.5 of 10, 1 false alarm (1.02 per 1000 rows), precision 0.667
    >>> evaluation.beats_baselines
    True
    """
    caller = "evaluate_alarms"
    draws = check_integer(n_simulations, "n_simulations", caller, minimum=1)
    if timestamps is None and isinstance(delta_max, str | timedelta | np.timedelta64):
        own = _times_of(y_true)
        timestamps = _times_of(active) if own is None else own
    windows = all_windows(y_true, delta_max, timestamps=timestamps, whose=caller)
    active = (
        [getattr(one, "active", one) for one in active]
        if isinstance(active, list)
        else getattr(active, "active", active)
    )
    masks = [np.asarray(mask) for mask in series_list(active, like=windows, name="active", whose=caller)]
    counts = count_active(masks, windows, whose=caller)
    rng = generator(random_state, whose=caller)
    rotated = [
        count_active([np.roll(mask, int(rng.integers(max(1, len(mask))))) for mask in masks], windows, whose=caller)
        for _ in range(draws)
    ]
    always = [np.ones(len(window), dtype=np.bool_) for window in windows]
    rows = (
        _row("these alarms", [counts]),
        _row("trivial baseline: the same, rotated", rotated),
        _row("trivial baseline: always on", [count_active(always, windows, whose=caller)]),
        _row("trivial baseline: on/off", [count_active([on_off(window) for window in windows], windows, whose=caller)]),
    )
    return AlarmEvaluation(counts, rows)
