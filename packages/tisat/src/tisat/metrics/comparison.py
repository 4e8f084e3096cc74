"""Intervals of scores over events, and two or more sets of scores side by side with a paired test.

Events are what is sampled: each series is cut between its events into stretches with one event each, and stretches are drawn again and again. Two sets
of scores see the same draws, so their difference has an interval of its own, which is much narrower than the two intervals suggest. A draw needs no
new scores: it counts stretches more often or not at all. This module reads no files and draws nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tisat.errors import InputError
from tisat.metrics import auc_pr, auc_roc, spd_score
from tisat.metrics.auc import descending
from tisat.metrics.entity_counts import counts_of_scores
from tisat.metrics.event_draws import draws_of, of_whole, values_of
from tisat.metrics.statistics import LEVEL, RESAMPLES, Interval, few_units, holm, resampling_weights, t_interval, t_test
from tisat.metrics.windows import Delay, Windows, all_scores, all_windows, series_list
from tisat.utils.compiled import compiled
from tisat.utils.html import text
from tisat.utils.random import Seed
from tisat.utils.tables import csv_text
from tisat.utils.types import Array, Flags, Integers, JsonDict, JsonMap, Labels, Stamps

AREAS = ("SPD", "AUC-ROC", "AUC-PR")  # weighted, not computed anew: each draw is quick
UNIT = (0.0, 1.0)  # the range of every score
PAIRS = 3  # sets of scores up to which each pair has its sentence


@dataclass(frozen=True)
class Difference:
    """How much higher one set of scores is than another under one score, on the same draws of events."""

    score: str
    first: str
    second: str
    interval: Interval  # of first - second
    p: float  # two-sided, by Student's t; never below what as many events allow; of several pairs adjusted by Holm
    level: float = LEVEL
    pairs: int = 1  # of sets of scores, for which p is adjusted; the interval is not

    @property
    def better(self) -> str:
        """The name of the better one; empty where these events cannot tell."""
        if not (self.interval.excludes_zero and self.p <= 1 - self.level + 1e-12):
            return ""
        return self.first if self.interval.value > 0 else self.second

    @property
    def p_words(self) -> str:
        """The p value as it is printed."""
        return "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"

    def __str__(self) -> str:
        one, sign = self.interval, -1 if self.better == self.second else 1  # the better less the other
        low, high = sorted((sign * one.low, sign * one.high))
        alone = " of this pair alone" if self.pairs > 1 else ""
        between = "" if math.isnan(one.low) else f"interval{alone} {low:+.3f} to {high:+.3f}, "
        size = f"{sign * one.value:+.3f}, {between}{self.p_words}"
        if not self.better:
            return f"{self.score}: these events cannot tell {self.first} from {self.second} (difference {size})."
        other = self.first if sign < 0 else self.second
        return f"{self.score}: {self.better} is better than {other} (difference {size})."


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores side by side: a value and its interval for each, and the paired differences. ``print`` it."""

    names: tuple[str, ...]
    intervals: Mapping[str, Mapping[str, Interval]]  # score -> name -> value and interval
    differences: tuple[Difference, ...]
    n_events: int
    level: float = LEVEL

    @property
    def verdict(self) -> tuple[str, ...]:
        """The differences in words, of more than three sets of scores those of the best; of too few events for any result it says so."""
        if len(self.names) <= PAIRS:
            sentences = [str(one) for one in self.differences]
        else:
            sentences = [self._best(score) for score in dict.fromkeys(one.score for one in self.differences)]
        pairs = math.comb(len(self.names), 2)
        if pairs > 1:
            sentences.append(f"Each p is adjusted for the {pairs} pairs of a score (Holm).")
        few = few_units(self.n_events, "event", level=self.level)
        return (*sentences, *([few] if few else []))

    def _best(self, score: str) -> str:
        """The set of scores that is highest under ``score``, and those it is better than."""
        best = max(self.names, key=lambda name: np.nan_to_num(self.intervals[score][name].value, nan=-math.inf))
        others = [one for one in self.differences if one.score == score and best in (one.first, one.second)]
        named = [(one.second if one.first == best else one.first, one) for one in others]
        worse = [name for name, one in named if one.better == best]
        open_ = [f"{name} ({one.p_words})" for name, one in named if one.better != best]
        better = f"it is better than {', '.join(worse)}" if worse else ""
        unclear = f"these events cannot tell it from {', '.join(open_)}" if open_ else ""
        value = self.intervals[score][best].value
        return f"{score}: {best} is highest, {value:.3f}; {'; '.join(filter(None, (better, unclear)))}."

    @property
    def draws(self) -> str:
        """How many draws the intervals are made of, in words."""
        counts = {score: max(one.draws for one in each.values()) for score, each in self.intervals.items()}
        others = max((count for score, count in counts.items() if score not in AREAS), default=0)
        drawn = f"{max(counts[score] for score in AREAS):,} draws"
        return f"{drawn}; {others} for scores beside {', '.join(AREAS)}" if others else drawn

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
        events = f"{self.n_events} event{'s' * (self.n_events != 1)}"
        lines = [f"{'score':{broad}}{'whose':{wide}}{'value':>8}  {100 * self.level:.3g} % interval over {events}"]
        lines += [
            f"{score:{broad}}{name:{wide}}{one.value:8.3f}  {one.ends}"
            for score, each in self.intervals.items()
            for name, one in each.items()
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


def _areas(y: Array, s: Array, weights: Array, owner: Integers) -> tuple[Array, Array]:
    """AUC-ROC and AUC-PR of each draw, rows counted as often as their stretch: scikit-learn's figures, sorted once for all draws."""
    order, last = descending(s)  # ties are one threshold
    roc, pr = _areas_of_draws(y[order], owner[order], last, weights)
    return roc, pr


@compiled()
def _areas_of_draws(truth: Array, owner: Integers, last: Flags, weights: Array) -> tuple[Array, Array]:
    """The areas over rows in descending order of their scores; the last of each level is where a threshold lies."""
    roc, pr = np.full(len(weights), np.nan), np.full(len(weights), np.nan)
    for b in range(len(weights)):
        true, false, true_before, false_before, under_roc, under_pr = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(len(truth)):
            weight = weights[b, owner[i]]
            true += weight * truth[i]
            false += weight * (1 - truth[i])
            if last[i]:
                under_roc += (false - false_before) * (true + true_before) / 2
                if true > true_before:
                    under_pr += (true - true_before) * true / (true + false)
                true_before, false_before = true, false
        if true_before > 0 and false_before > 0:
            roc[b] = under_roc / (true_before * false_before)
            pr[b] = under_pr / true_before
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
        Draws of the events for SPD and the areas.
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
    SPD: good is better than random_baseline (difference +0.921, interval +0.876 to +0.966, p < 0.001).
    """
    if not isinstance(scores, Mapping):
        raise InputError(
            f"The 'scores' argument of compare must map names to scores, such as {{'ours': y_score}}. Got {type(scores).__name__} instead."
        )
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
    draws: dict[str, dict[str, Array]] = {score: {} for score in AREAS}
    values: dict[str, dict[str, float]] = {score: {} for score in AREAS}
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
        draws["AUC-ROC"][name], draws["AUC-PR"][name] = _areas(y, joined, weights, owner)
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
                other_intervals.setdefault(score, {})[name] = t_interval(value, redrawn[score], n_events, level=level, bounds=UNIT)  # fmt: skip
    intervals = {
        score: {
            name: t_interval(values[score][name], each, n_events, level=level, bounds=UNIT)
            for name, each in by_name.items()
        }
        for score, by_name in draws.items()
    }
    names = tuple(scores)
    differences: list[Difference] = []
    pairs = list(combinations(names, 2))
    for score, by_name in draws.items():
        apart = [
            t_interval(values[score][a] - values[score][b], by_name[a] - by_name[b], n_events, level=level)
            for a, b in pairs
        ]
        adjusted = holm([t_test(one, n_events) for one in apart])
        differences += [
            Difference(score, a, b, one, p, level, len(pairs))
            for (a, b), one, p in zip(pairs, apart, adjusted, strict=True)
        ]
    return Comparison(names, {**intervals, **other_intervals}, tuple(differences), n_events, level)
