"""The precision-delay curve behind an SPD, with its thresholds and its picture.

One point for every threshold at which a delay or a detection changes; between two of them a lower threshold only adds false alarms.
It does not count anything itself: :mod:`tisat.metrics.spd` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tisat.metrics.baselines import Baselines, baselines_of, chance_corrected
from tisat.metrics.pooling import Score
from tisat.metrics.spd import COUNTINGS, Points, points_of, process_points, score_process, score_windows
from tisat.metrics.windows import Delay, Windows, all_scores, all_windows
from tisat.utils.extras import require
from tisat.utils.html import Printed
from tisat.utils.palette import BASELINE, EXPECTED
from tisat.utils.types import Array, Integers, Labels, Scores, Stamps
from tisat.utils.validation import check_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWN_BASELINES = ("random, rolling maximum", "always on", "on/off")
SIMULATIONS = 10  # draws behind the simulated baseline scores, as in baseline scores()


@dataclass(frozen=True, eq=False, repr=False)
class SPDCurve(Printed):
    """Precision against normalised delay at descending thresholds.

    Printed with the baseline scores; ``plot()`` draws it.

    Attributes
    ----------
    thresholds, nadd, precision, true_alarms, false_alarms : arrays of shape (K,)
        Pooled over the series, by descending threshold.
    score : Score
        The area, SPD: pooled, with ``per_series_mean``.

    Examples
    --------
    >>> from tisat.metrics import spd_curve
    >>> labels = np.repeat([0, 1, 0], [40, 10, 50])
    >>> float(spd_curve(labels, labels.astype(float), delta_max=5).score)
    1.0
    """

    thresholds: Array  # (K,), descending
    nadd: Array  # (K,), from 1 (never) to 0 (at once)
    precision: Array  # (K,), NaN where no alarm counts either way
    true_alarms: Integers  # (K,)
    false_alarms: Integers  # (K,)
    score: Score  # SPD
    delta_max: Delay  # as given
    counting: str  # "event" or "instance"
    windows: Sequence[Windows] = field(repr=False)  # what the baseline scores are computed from

    @cached_property
    def baselines(self) -> Baselines:
        """Scores of trivial baselines on the same labels, computed on first use."""
        return baselines_of(
            self.windows, counting=self.counting, n_simulations=SIMULATIONS, rng=np.random.default_rng(0)
        )

    @property
    def chance_corrected(self) -> float:
        """(SPD - baseline score) / (1 - baseline score) of the pooled score, with the best trivial baseline as baseline score."""
        return chance_corrected(float(self.score), self.baselines.best)

    def __str__(self) -> str:
        mean = chance_corrected(self.score.per_series_mean, self.baselines.best_per_series_mean)
        return "\n".join(
            [
                f"SPD at delta_max = {self.delta_max}, counting by {self.counting}, {len(self.thresholds)} thresholds",
                f"{'':24}{'pooled':>10}{'per-series mean':>18}",
                f"{'SPD':24}{float(self.score):10.4f}{self.score.per_series_mean:18.4f}",
                f"{'chance-corrected':24}{self.chance_corrected:10.4f}{mean:18.4f}",
                str(self.baselines),
            ]
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curve and its area, and beside it the trivial baselines' areas as bars.

        Returns the matplotlib axes of the curve (needs matplotlib: the extra ``report``).
        """
        if ax is None:
            ax = require("matplotlib.pyplot", whose="SPDCurve.plot").subplots(figsize=(6, 4))[1]
        steps = np.append(1.0, self.nadd)
        heights = np.nan_to_num(np.append(self.precision[:1], self.precision))
        ax.fill_between(steps, heights, step="pre", alpha=0.25, color=EXPECTED, linewidth=0)
        ax.step(steps, heights, where="pre", color=EXPECTED, label=f"SPD {float(self.score):.3f}")
        beside = ax.inset_axes((1.04, 0.0, 0.24, 1.0))  # areas have their own axis: they are no precision
        named = {"SPD": float(self.score)} | {name: float(self.baselines.named[name]) for name in DRAWN_BASELINES}
        beside.bar(range(len(named)), list(named.values()), color=[EXPECTED, *[BASELINE] * (len(named) - 1)])
        beside.set_xticks(range(len(named)), list(named), rotation=90, fontsize="small")
        beside.set(ylim=(0, 1.02), title="area")
        beside.tick_params(left=False, labelleft=False)
        beside.spines[["top", "right", "left"]].set_visible(False)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set(
            xlim=(1, 0),
            ylim=(0, 1.02),
            xlabel="normalised average detection delay (1 = never, 0 = at once)",
            ylabel="alarm precision",
        )
        ax.legend(loc="upper right", frameon=False, fontsize="small")
        return ax


def _curve(points: Points, score: Score, delta_max: Delay, counting: str, windows: Sequence[Windows]) -> SPDCurve:
    return SPDCurve(
        points.thresholds, points.nadd, points.precision, points.true_alarms, points.false_alarms, score, delta_max, counting, windows
    )  # fmt: skip


def spd_curve(
    y_true: Labels, y_score: Scores, *, delta_max: Delay, counting: str = "event", timestamps: Stamps = None
) -> SPDCurve:
    """Precision against normalised detection delay at every threshold that changes a delay.

    Parameters
    ----------
    y_true, y_score, delta_max, counting, timestamps
        As in :func:`tisat.metrics.spd_score`.

    Returns
    -------
    SPDCurve
        Arrays by descending threshold, the ``score``, the ``baselines``, and ``plot()``.

    Examples
    --------
    >>> curve = spd_curve([0, 0, 0, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 3, 9, 0, 3, 0, 0, 0], delta_max=2)
    >>> curve.thresholds.tolist(), curve.nadd.tolist(), curve.precision.tolist()
    ([9.0, 3.0], [0.5, 0.0], [1.0, 0.5])
    >>> curve.score
    0.75
    """
    check_choice(counting, "counting", "spd_curve", choices=COUNTINGS)
    windows = all_windows(y_true, delta_max, timestamps=timestamps, whose="spd_curve")
    scores = all_scores(y_score, windows, whose="spd_curve")
    points, score = points_of(scores, windows, counting=counting), score_windows(scores, windows, counting=counting)
    return _curve(points, score, delta_max, counting, windows)


def spd_curve_of_active(
    y_true: Labels, active: Mapping[float, Labels], *, delta_max: Delay, timestamps: Stamps = None
) -> SPDCurve:
    """The curve of an alarm process given as ``{threshold: active mask}``.

    See :func:`tisat.metrics.spd_score_of_active`.

    Parameters
    ----------
    y_true : array-like of shape (T,), or a list of them
        Labels: 1 in events.
    active : dict
        Threshold -> mask of rows at which an alarm was on.
    delta_max : int or str
        Longest delay that counts: rows, or a duration where there are timestamps.
    timestamps : array-like, optional
        Times of the rows, for durations.

    Returns
    -------
    SPDCurve
        Precision against delay.

    Examples
    --------
    >>> labels = np.repeat([0, 1, 0], [40, 10, 50])
    >>> float(spd_curve_of_active(labels, {1.0: labels > 0}, delta_max=5).score)
    1.0
    """
    return _process_curve(y_true, active, delta_max, timestamps, "spd_curve_of_active", raised=False)


def spd_curve_of_raises(
    y_true: Labels, raised: Mapping[float, npt.ArrayLike], *, delta_max: Delay, timestamps: Stamps = None
) -> SPDCurve:
    """The curve of an alarm process given as ``{threshold: raise times}``.

    See :func:`tisat.metrics.spd_score_of_raises`.

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
    SPDCurve
        Precision against delay.

    Examples
    --------
    >>> float(spd_curve_of_raises(np.repeat([0, 1, 0], [40, 10, 50]), {1.0: [40]}, delta_max=5).score)
    1.0
    """
    return _process_curve(y_true, raised, delta_max, timestamps, "spd_curve_of_raises", raised=True)


def _process_curve(
    y_true: Labels, family: Any, delta_max: Delay, timestamps: Stamps, whose: str, *, raised: bool
) -> SPDCurve:
    windows = all_windows(y_true, delta_max, timestamps=timestamps, whose=whose)
    points = process_points(family, windows, raised=raised, whose=whose)
    return _curve(points, score_process(family, windows, raised=raised, whose=whose), delta_max, "event", windows)
