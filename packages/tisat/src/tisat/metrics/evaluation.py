"""Every score of one set of scores in one table, each beside what the best trivial baseline gets under the same score.

This is what to print when a number is asked for. It adds no score of its own; it does not know where the scores come from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tisat.metrics.affiliation import affiliation_precision_recall
from tisat.metrics.alarm_counts import AlarmCounts, count_active
from tisat.metrics.auc import auc_pr, auc_roc
from tisat.metrics.baselines import chance_corrected, on_off, rolling_maximum, time_only
from tisat.metrics.curve import SPDCurve, spd_curve
from tisat.metrics.event_f1 import best_event_f1
from tisat.metrics.instance import PrecisionRecall, best_instance_f1, instance_precision_recall
from tisat.metrics.nab import nab_score
from tisat.metrics.pa_k import pa_k_auc
from tisat.metrics.pate import pate
from tisat.metrics.point_adjust import adjusted_precision_recall, best_adjusted_f1
from tisat.metrics.pooling import Score, mean_known
from tisat.metrics.range_based import range_precision_recall
from tisat.metrics.statistics import Interval
from tisat.metrics.vus import vus_pr, vus_roc
from tisat.metrics.windows import Delay, Windows, all_scores, series_list
from tisat.utils.html import Printed
from tisat.utils.random import Seed, generator
from tisat.utils.types import Array, Labels, Scores, Stamps
from tisat.utils.validation import check_integer, check_real

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Result = Score | PrecisionRecall | AlarmCounts | float
Metric = Callable[[list[Array]], Result]  # of one array of scores a series
BaselineScores = dict[
    str, list[list[Array]]
]  # the scores of each trivial baseline: draws, each with one array a series
CLOSE = 0.02  # without an interval, a score this near a trivial baseline's is not told apart from it
# What one must know before one quotes a score that others use.
WARNINGS = {
    "VUS-PR": "the 2025 form, as TSB-AD has it, over all thresholds; nearness counts on both sides of an event; delay does not count, and the value grows with the buffer",
    "VUS-ROC": "a random baseline has about 0.5; where events are rare, 0.95 can mean that most alarms are false",
    "PATE": "a constant score has about 0.5, as in the authors' program, which joins its only point to precision 1; alarms before an event are rewarded, and long events drown short ones",
    "AUC-ROC": "a random baseline has 0.5; where events are rare, 0.95 can mean that most alarms are false",
    "AUC-PR": "a random baseline has the share of anomalous rows, so two data sets cannot be compared; delay does not count",
    "NAB (oracle)": "a found window pays 2 and a false row costs 0.11: where windows are long, alarms at random score well above 0",
    "instance F1 (oracle)": "long events drown short ones; delay does not count",
    "PA%K area (oracle)": "part of it is point adjustment, under which random guessing wins",
    "adjusted F1 (oracle)": "random guessing wins",
    "adjusted F1": "random guessing wins",
    "affiliation F1": "its baseline score is about 0.67: read it from there",
}


@dataclass(frozen=True)
class Row:
    """One score with its baseline score."""

    name: str
    pooled: float
    per_series_mean: float
    baseline_score: float  # pooled, of the best trivial baseline
    baseline_per_series_mean: float
    baseline: str  # who that is
    interval: Interval | None = None  # of the pooled value, over events; see with_intervals

    @property
    def standing(self) -> int:
        """1 above the best trivial baseline, -1 below it, 0 where the interval cannot tell them apart."""
        if self.interval is not None and not self.interval.excludes(self.baseline_score):
            return 0
        apart = self.pooled - self.baseline_score
        if self.interval is None and abs(apart) <= CLOSE:
            return 0
        return int(np.sign(apart)) if not math.isnan(apart) else 0

    @property
    def warning(self) -> str:
        """A caveat to read before quoting it; empty where there is none."""
        return WARNINGS.get(self.name, "")

    @property
    def corrected(self) -> float:
        """(score - baseline score) / (1 - baseline score), pooled."""
        return chance_corrected(self.pooled, self.baseline_score) if 0 <= self.baseline_score <= 1 else float("nan")

    @property
    def verdict(self) -> str:
        """The row in words."""
        if math.isnan(self.pooled):
            return f"{self.name} is undefined here."
        best = f"({self.baseline}, {self.baseline_score:.3f})"
        ends = "" if self.interval is None or math.isnan(self.interval.low) else f" [{self.interval.low:.3f}, {self.interval.high:.3f}]"  # fmt: skip
        value = f"{self.name} {self.pooled:.3f}{ends}"
        if self.standing < 0:
            return f"{value} is below the best trivial baseline {best}."
        if self.standing == 0:
            why = "" if self.interval is None or self.interval.enough else ": there are too few events"
            return f"{value} is not told apart from the best trivial baseline {best}{why}."
        if self.interval is None:
            return f"{value} is higher than the best trivial baseline {best}; whether that is luck, its interval says (tisat.metrics.comparison.compare)."
        return f"{value} is above the best trivial baseline {best}; chance-corrected it is {self.corrected:.3f}."


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Printed):
    """The evaluation of scores: one row per metric, the curve, alarms at a threshold.

    Examples
    --------
    >>> from tisat.metrics import evaluate
    >>> evaluate(np.repeat([0, 1, 0], [40, 10, 50]), np.arange(100.0) % 50, delta_max=5).n_events
    1
    """

    rows: tuple[Row, ...]  # one for each score
    curve: SPDCurve  # precision against delay
    counts: AlarmCounts | None  # at the threshold, if one was given
    threshold: float | None  # None where none was given
    n_series: int  # series
    n_rows: int  # rows of all series
    n_events: int  # events of all series

    @property
    def spd(self) -> Score:
        """The SPD, pooled and per-series mean."""
        return self.curve.score

    def __getitem__(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)

    def with_intervals(self, intervals: Mapping[str, Interval]) -> Evaluation:
        """The same with intervals of its scores, by name: results then rest on them."""
        return replace(self, rows=tuple(replace(row, interval=intervals.get(row.name)) for row in self.rows))

    def plot(self, ax: Axes | None = None) -> Axes:
        """The SPD curve beside its trivial baselines, on matplotlib axes."""
        return self.curve.plot(ax)

    @property
    def verdict(self) -> tuple[str, ...]:
        """The table in words, one sentence a score, and whether one threshold serves all series."""
        sentences = [row.verdict for row in self.rows]
        gap = self.spd.per_series_mean - float(self.spd)
        if self.n_series > 1 and gap > 0.1:
            sentences.append(
                f"The per-series mean of SPD is {gap:.3f} above the pooled SPD: the scores of different series are not on one scale, "
                "or the mean is lifted by series with few events. The pooled figure is the one a single threshold would give."
            )
        return tuple(sentences)

    def __str__(self) -> str:
        lines = [
            f"{self.n_series} series, {self.n_rows} rows, {self.n_events} events, delta_max = {self.curve.delta_max}"
            + ("" if self.threshold is None else f", threshold {self.threshold:.6g}"),
            f"{'score':28}{'pooled':>9}{'mean':>9}{'baseline':>10}{'corrected':>11}  best trivial baseline",
        ]
        lines += [
            f"{row.name:28}{row.pooled:9.4f}{row.per_series_mean:9.4f}{row.baseline_score:10.4f}{row.corrected:11.4f}  {row.baseline}"
            for row in self.rows
        ]
        if self.counts is not None:
            lines.append(str(self.counts))
        return "\n".join([*lines, str(self.curve.baselines)])


def pooled_and_mean(result: Result) -> tuple[float, float]:
    """Pooled and per-series mean of whatever a metric returns."""
    if isinstance(result, PrecisionRecall):
        return result.f1, result.per_series_mean.f1
    if isinstance(result, AlarmCounts):
        return result.event_f1, mean_known([one.event_f1 for one in result.per_series or (result,)])
    return float(result), result.per_series_mean if isinstance(result, Score) else float(result)


def baseline_scores(windows: Sequence[Windows], *, n_simulations: int, rng: np.random.Generator) -> BaselineScores:
    """The scores of the trivial baselines; of the clock with several series."""
    draws = [[rng.random(len(one)) for one in windows] for _ in range(n_simulations)]
    clock = {"time only": [time_only(windows)]} if len(windows) > 1 else {}
    return {
        "random": draws,
        "random, rolling maximum": [
            [rolling_maximum(s, one) for s, one in zip(draw, windows, strict=True)] for draw in draws
        ],
        "always on": [[np.zeros(len(one)) for one in windows]],
        "on/off": [[on_off(one).astype(np.float64) for one in windows]],
        **clock,
    }


def _row(name: str, metric: Metric, scores: list[Array], baselines: BaselineScores) -> Row:
    """A row from a metric of the scores and of every trivial baseline.

    Simulated trivial baselines are averaged.
    """
    values = {
        name: np.array([pooled_and_mean(metric(draw)) for draw in draws]).mean(axis=0)
        for name, draws in baselines.items()
    }
    pooled, mean = pooled_and_mean(metric(scores))
    best = max(values, key=lambda name: -1.0 if np.isnan(values[name][0]) else values[name][0])
    return Row(name, pooled, mean, float(values[best][0]), float(max(value[1] for value in values.values())), best)


def _at_own_rate(baselines: BaselineScores, scores: Sequence[Array], level: float) -> BaselineScores:
    """The trivial baselines as 0/1 scores for a fixed threshold: the random ones are active as often as ``scores`` are."""
    total = sum(map(len, scores))
    rate = sum(int((s >= level).sum()) for s in scores) / total if total else 0.0
    rivals: BaselineScores = {"always on": [[np.ones(len(s)) for s in scores]], "on/off": baselines["on/off"]}
    for baseline in ("random", "random, rolling maximum"):
        draws = []
        for draw in baselines[baseline]:
            cut = np.quantile(np.concatenate(draw), 1 - rate) if total else 0.0
            draws.append([(s >= cut).astype(np.float64) for s in draw])
        rivals[f"{baseline}, as often active"] = draws
    return rivals


def default_buffer(windows: Sequence[Windows]) -> int:
    """The widest buffer of VUS and PATE where none is given: as many rows as ``delta_max``."""
    return min(max(_delta_in_time_steps(one) for one in windows), max(map(len, windows), default=1))


def free_metrics(labels: list[Any], *, delta_max: Delay, timestamps: Stamps, max_buffer: int) -> dict[str, Metric]:
    """The scores beside SPD that need no threshold, by the names of their rows."""
    return {
        "event F1 (oracle)": partial(best_event_f1, labels, delta_max=delta_max, timestamps=timestamps),
        "VUS-PR": partial(vus_pr, labels, max_buffer=max_buffer),
        "VUS-ROC": partial(vus_roc, labels, max_buffer=max_buffer),
        "PATE": partial(pate, labels, max_buffer=max_buffer),
        "AUC-ROC": partial(auc_roc, labels),
        "AUC-PR": partial(auc_pr, labels),
        "NAB (oracle)": partial(nab_score, labels),
        "instance F1 (oracle)": partial(best_instance_f1, labels),
        "PA%K area (oracle)": partial(pa_k_auc, labels),
        "adjusted F1 (oracle)": partial(best_adjusted_f1, labels),
    }


def fixed_metrics(labels: list[Any], windows: Sequence[Windows]) -> dict[str, Metric]:
    """The scores of alarms, given as 0 and 1, by the names of their rows."""
    return {
        "event F1": partial(count_active, windows=windows, whose="evaluate"),
        "instance F1": partial(instance_precision_recall, labels, threshold=1.0),
        "range-based F1": partial(range_precision_recall, labels, threshold=1.0),
        "affiliation F1": partial(affiliation_precision_recall, labels, threshold=1.0),
        "adjusted F1": partial(adjusted_precision_recall, labels, threshold=1.0),
    }


def evaluate(
    y_true: Labels,
    y_score: Scores,
    *,
    delta_max: Delay,
    threshold: float | None = None,
    timestamps: Stamps = None,
    max_buffer: int | None = None,
    n_simulations: int = 3,
    random_state: Seed = 0,
) -> Evaluation:
    """SPD and the scores users ask for beside it, each next to the best trivial baseline's on the same labels.

    Parameters
    ----------
    y_true, y_score, delta_max, timestamps
        As in :func:`tisat.metrics.spd_score`.
    threshold : float, optional
        Where alarms are raised; adds the scores that need one. It must not have been chosen with these labels.
    max_buffer : int, optional
        The widest buffer of VUS-PR; as many rows as ``delta_max`` by default.
    n_simulations : int
        Draws of the random trivial baselines.
    random_state : int or Generator
        Seed.

    Returns
    -------
    Evaluation
        Print it; ``verdict`` says it in words. Scores called *oracle* choose their threshold with the labels.

    Examples
    --------
    >>> import numpy as np
    >>> y_true = np.zeros(400, dtype=int)
    >>> y_true[100:150] = y_true[300:350] = 1
    >>> random_baseline = np.random.default_rng(7).random(400)
    >>> result = evaluate(y_true, random_baseline, delta_max=10)
    >>> result["adjusted F1 (oracle)"].pooled > 0.8, result["SPD"].pooled < 0.3
    (True, True)
    """
    number = check_integer(n_simulations, "n_simulations", "evaluate", minimum=1)
    level = None if threshold is None else check_real(threshold, "threshold", "evaluate")
    curve = spd_curve(y_true, y_score, delta_max=delta_max, timestamps=timestamps)
    windows = curve.windows
    labels = series_list(y_true, name="y_true", whose="evaluate")
    scores = all_scores(y_score, windows, whose="evaluate")
    baselines = baseline_scores(windows, n_simulations=number, rng=generator(random_state, whose="evaluate"))
    if max_buffer is None:
        max_buffer = default_buffer(windows)
    free = free_metrics(labels, delta_max=delta_max, timestamps=timestamps, max_buffer=max_buffer)
    of_spd, spd = curve.baselines, curve.score
    rows = [Row("SPD", *pooled_and_mean(spd), of_spd.best, of_spd.best_per_series_mean, of_spd.best_name)]
    rows += [_row(name, metric, scores, baselines) for name, metric in free.items()]
    counts = None
    if level is not None:
        binary = _at_own_rate(baselines, scores, level)
        masks = [(s >= level).astype(np.float64) for s in scores]
        counts = count_active(masks, windows, whose="evaluate")
        rows += [_row(name, metric, masks, binary) for name, metric in fixed_metrics(labels, windows).items()]
    return Evaluation(
        rows=tuple(rows),
        curve=curve,
        counts=counts,
        threshold=level,
        n_series=len(windows),
        n_rows=sum(map(len, windows)),
        n_events=sum(len(one.events) for one in windows),
    )


def _delta_in_time_steps(windows: Windows) -> int:
    """``delta_max`` as rows: as given, or the typical number of rows it lasts."""
    if windows.stride or not len(windows):
        return max(windows.stride, 1)
    return max(int(np.median(windows.following - np.arange(len(windows)))), 1)
