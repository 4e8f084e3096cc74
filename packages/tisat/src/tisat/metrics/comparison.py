"""Intervals of scores over events, and two or more sets of scores side by side with a paired test.

Events are what is sampled: each series is cut between its events into stretches with one event each, and stretches are drawn again and again. Two sets
of scores see the same draws, so their difference has an interval of its own, which is much narrower than the two intervals suggest. A draw needs no
new scores: it counts stretches more often or not at all. This module reads no files and draws nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tisat.errors import InputError
from tisat.metrics import auc_pr, auc_roc, spd_score
from tisat.metrics.auc import descending
from tisat.metrics.entity_counts import counts_of_scores
from tisat.metrics.event_draws import draws_of, of_whole, values_of
from tisat.metrics.statistics import LEVEL, RESAMPLES, Interval, interval_of, resampling_weights
from tisat.metrics.windows import Delay, Windows, all_scores, all_windows, series_list
from tisat.utils.html import text
from tisat.utils.random import Seed
from tisat.utils.tables import csv_text
from tisat.utils.types import Array, Integers, JsonDict, JsonMap, Labels, Stamps

# Rows looked at for the intervals of an area: longer series get fewer draws, but never below FEWEST.
WORK = 20_000_000
FEWEST = 100


@dataclass(frozen=True)
class Difference:
    """How much higher one set of scores is than another under one score, on the same draws of events."""

    score: str
    first: str
    second: str
    interval: Interval  # of first - second
    p: float  # two-sided: how often the draws say the opposite

    def __str__(self) -> str:
        low, high = (self.second, self.first) if self.interval.value >= 0 else (self.first, self.second)
        size = f"{self.interval.value:+.3f}, interval {self.interval.low:+.3f} to {self.interval.high:+.3f}, p = {self.p:.3f}"
        if not self.interval.excludes_zero:
            return f"{self.score}: these events cannot tell {self.first} from {self.second} (difference {size})."
        return f"{self.score}: {high} is better than {low} (difference {size})."


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores side by side: a value and its interval for each, and the paired differences. ``print`` it."""

    names: tuple[str, ...]
    intervals: Mapping[str, Mapping[str, Interval]]  # score -> name -> value and interval
    differences: tuple[Difference, ...]
    n_events: int

    @property
    def verdict(self) -> tuple[str, ...]:
        """The differences in words; of fewer than ten events it says that there are few."""
        few = [f"There are only {self.n_events} events: intervals over so few are narrower than they should be."] * (self.n_events < 10)  # fmt: skip
        return (*map(str, self.differences), *few)

    def rows(self) -> list[tuple[str, str, float, float, float]]:
        """Score, whose, value, low, high: one row each."""
        return [
            (score, name, one.value, one.low, one.high)
            for score, each in self.intervals.items()
            for name, one in each.items()
        ]

    def __str__(self) -> str:
        wide = max(map(len, self.names)) + 2
        broad = max(10, *(len(score) + 2 for score in self.intervals))
        lines = [f"{'score':{broad}}{'whose':{wide}}{'value':>8}  95 % interval over {self.n_events} events"]
        lines += [
            f"{score:{broad}}{name:{wide}}{value:8.3f}  {low:.3f} to {high:.3f}"
            for score, name, value, low, high in self.rows()
        ]
        return "\n".join([*lines, *self.verdict])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return text(self)

    def to_csv(self) -> str:
        """A csv table: one row for each score and name, in full precision."""
        return csv_text(("score", "scores of", "value", "low", "high"), self.rows())

    def to_dict(self) -> JsonDict:
        """Plain values."""
        return {
            "n_events": self.n_events,
            "intervals": [dict(zip(("score", "of", "value", "low", "high"), row, strict=True)) for row in self.rows()],
            "differences": [
                {"score": d.score, "first": d.first, "second": d.second, "value": d.interval.value, "low": d.interval.low, "high": d.interval.high, "p": d.p}
                for d in self.differences
            ],
            "verdict": list(self.verdict),
        }  # fmt: skip


def stretches(windows: Windows) -> list[tuple[int, int]]:
    """Cut a series so that each part has one event."""
    cuts = [0]
    for i in range(len(windows.events) - 1):
        onset = int(windows.events[i + 1][0])
        middle = (int(windows.events[i][1]) + onset) // 2
        cuts.append(min(max(middle, int(windows.stops[i])), onset))
    return list(zip(cuts, [*cuts[1:], len(windows)], strict=True))


def _p_value(draws: Array) -> float:
    known = draws[~np.isnan(draws)]
    if not len(known):
        return float("nan")
    return float(min(1.0, 2 * min((1 + (known <= 0).sum()), (1 + (known >= 0).sum())) / (1 + len(known))))


def _areas(y: Array, s: Array, weights: Array, owner: Integers) -> tuple[Array, Array]:
    """AUC-ROC and AUC-PR of each draw, rows counted as often as their stretch: scikit-learn's figures, sorted once for all draws."""
    order, last = descending(s)  # ties are one threshold
    truth, whose = y[order], owner[order]
    roc, pr = np.full((2, len(weights)), np.nan)
    for b, draw in enumerate(weights):
        each = draw[whose]
        true = np.cumsum(each * truth)[last]
        false = np.cumsum(each * (1 - truth))[last]
        if true[-1] > 0 and false[-1] > 0:
            gained = np.diff(true, prepend=0.0)
            roc[b] = (np.diff(false, prepend=0.0) * (true - gained / 2)).sum() / (true[-1] * false[-1])
            pr[b] = (gained * true / np.maximum(true + false, 1e-300)).sum() / true[-1]
    return roc, pr


def compare(
    y_true: Labels,
    scores: JsonMap,
    *,
    delta_max: Delay = 100,
    timestamps: Stamps = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    random_state: Seed = 0,
    every: bool = False,
    thresholds: Mapping[str, float] | None = None,
) -> Comparison:
    """SPD, AUC-ROC and AUC-PR of one or more sets of scores on the same labels, with bootstrap intervals over events and paired differences.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list
    scores : mapping of a name to an array of shape (T,), or to a list
    delta_max, timestamps
        As in :func:`tisat.metrics.spd_score`.
    resamples : int
        Draws of the events for SPD; the areas get as many, fewer on long series.
    level : float
    random_state : int or Generator
    every : bool
        Intervals of every other score of :func:`tisat.metrics.evaluate`, too: from a tenth of the draws, for each is computed anew.
    thresholds : mapping of a name to a float, optional
        With ``every``: where each raises alarms, for the scores that need a threshold.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = (np.arange(3000) % 200 < 20).astype(int)
    >>> good, random_baseline = y + 0.3 * rng.random(3000), rng.random(3000)
    >>> print(compare(y, {"good": good, "random_baseline": random_baseline}, delta_max=20).verdict[0])
    SPD: good is better than random_baseline (difference +0.921, interval +0.869 to +0.947, p = 0.002).
    """
    if not scores:
        raise InputError("The 'scores' argument of compare must name at least one set of scores. Got none.")
    labels = series_list(y_true, name="y_true", whose="compare")
    stamps = None if timestamps is None else series_list(timestamps, like=labels, name="timestamps", whose="compare")
    windows = all_windows(labels, delta_max, timestamps=timestamps, whose="compare")
    n_events = sum(len(one.events) for one in windows)
    if not n_events:
        raise InputError("The 'y_true' argument of compare must hold at least one event. Got none.")
    parts = [(i, start, stop) for i, one in enumerate(windows) for start, stop in stretches(one)]
    cut_labels = [np.asarray(labels[i])[start:stop] for i, start, stop in parts]
    cut_stamps = None if stamps is None else [np.asarray(stamps[i])[start:stop] for i, start, stop in parts]
    cut = all_windows(cut_labels, delta_max, timestamps=cut_stamps, whose="compare")
    weights = resampling_weights(len(parts), resamples=resamples, random_state=random_state)
    owner = np.repeat(np.arange(len(parts)), [stop - start for _, start, stop in parts])
    y = np.concatenate(cut_labels).astype(np.float64)
    few = weights[: max(FEWEST, min(resamples, WORK // max(len(y), 1)))]
    draws: dict[str, dict[str, Array]] = {"SPD": {}, "AUC-ROC": {}, "AUC-PR": {}}
    values: dict[str, dict[str, float]] = {"SPD": {}, "AUC-ROC": {}, "AUC-PR": {}}
    other_intervals: dict[str, dict[str, Interval]] = {}
    for name, given in scores.items():
        checked = all_scores(given, windows, whose="compare")
        pieces = [checked[i][start:stop] for i, start, stop in parts]
        values["SPD"][name] = float(spd_score(labels, checked, delta_max=delta_max, timestamps=timestamps))
        counts = counts_of_scores(pieces, cut)
        of_stretches = float(counts.pooled(np.ones((1, len(parts))))[0])
        draws["SPD"][name] = of_whole(counts.pooled(weights), values["SPD"][name], of_stretches)
        joined = np.concatenate(pieces)
        values["AUC-ROC"][name], values["AUC-PR"][name] = (
            float(auc_roc(labels, checked)),
            float(auc_pr(labels, checked)),
        )
        draws["AUC-ROC"][name], draws["AUC-PR"][name] = _areas(y, joined, few, owner)
        if every:
            threshold = None if thresholds is None else thresholds[name]
            metric_values, buffer = values_of(
                labels, checked, timestamps, windows, delta_max=delta_max, threshold=threshold
            )
            redrawn = draws_of(
                cut_labels,
                pieces,
                cut_stamps,
                cut,
                weights,
                metric_values,
                delta_max=delta_max,
                max_buffer=buffer,
                threshold=threshold,
                whose=name,
            )
            for score, value in metric_values.items():
                other_intervals.setdefault(score, {})[name] = interval_of(value, redrawn[score], level=level)
    intervals = {
        score: {name: interval_of(values[score][name], each, level=level) for name, each in by_name.items()}
        for score, by_name in draws.items()
    }
    names = tuple(scores)
    differences = []
    for score, by_name in draws.items():
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                apart = by_name[first] - by_name[second]
                whole = values[score][first] - values[score][second]
                differences.append(
                    Difference(score, first, second, interval_of(whole, apart, level=level), _p_value(apart))
                )
    return Comparison(names, {**intervals, **other_intervals}, tuple(differences), n_events)
