"""False-alarm period against threshold by resampling normal evidence in blocks: for every rule, for dependent data.

The stationary bootstrap strings together blocks of normal evidence of random (geometric) length, so that what is
dependent within a block stays so. The rule is run over one long resample at many thresholds; the logarithm of the
period between two alarms is then a curve over the threshold that is read where the data reaches, and continued by a
straight line where it does not. Nothing here knows a rule's formulas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tisat.alarms import _kernels
from tisat.alarms.rules import AlarmRule
from tisat.utils.compiled import compiled
from tisat.utils.ranks import average_ranks
from tisat.utils.types import Array, Flags, Integers

RESAMPLES = 40  # times the normal length, within the bounds below
SHORTEST, LONGEST = 100_000, 200_000  # rows resampled
FEWEST_ALARMS = 20  # below this a period is too uncertain to fit a line through (22 %)
THRESHOLDS = 32  # tried, evenly spaced in the rank of the statistic


def autocorrelation(evidence: Array, *, lags: int) -> Array:
    """Correlation of the ranks of evidence at lags 1..``lags``.

    Ranks, because evidence has heavy tails.
    """
    x = average_ranks(evidence)
    x -= x.mean()
    if not x.any():
        return np.zeros(lags)
    spectrum = np.fft.rfft(x, 2 * len(x))
    products = np.fft.irfft(np.abs(spectrum) ** 2)[: lags + 1]
    return np.asarray(products[1:] / products[0])


def block_length(evidence: Array) -> int:
    """Mean length of a block: twice the lag from which the correlation is lost in noise for good, at least 1.

    Examples
    --------
    >>> block_length(np.random.default_rng(0).normal(size=4000))
    1
    """
    n = len(evidence)
    lags = max(1, min(n // 4, 500))
    noise = 2.0 * math.sqrt(math.log10(max(n, 10)) / n)  # Politis and White's band
    beyond = np.abs(autocorrelation(evidence, lags=lags)) > noise
    run = max(5, round(math.sqrt(math.log10(max(n, 10)))))
    for lag in range(lags):
        if not beyond[lag : lag + run].any():
            return max(1, min(2 * lag, n // 5))
    return max(1, min(2 * lags, n // 5))


def flat(evidence: Array) -> Array:
    """One number a row: evidence ``(T, V)`` of several views is added up."""
    return evidence if evidence.ndim == 1 else np.asarray(evidence.sum(axis=1))


@compiled()
def _string(n: int, starts: Integers, ends: Flags, places: Integers) -> None:
    """Places of blocks of n values, circular: a new start wherever ``ends`` says so."""
    place = 0
    for i in range(len(places)):
        place = starts[i] if ends[i] else (place + 1) % n
        places[i] = place


def resample(evidence: Array, *, length: int, block: int, rng: np.random.Generator) -> Array:
    """A stationary-bootstrap resample of ``length`` rows."""
    places = np.empty(length, dtype=np.int64)
    ends = rng.random(length) < 1.0 / block
    ends[0] = True
    _string(len(evidence), rng.integers(0, len(evidence), length), ends, places)
    return evidence[places]


@dataclass(frozen=True)
class PeriodCurve:
    """Log period against threshold, for one rule on resampled normal evidence."""

    thresholds: Array  # ascending
    periods: Array  # rows between alarms, made non-decreasing from the right
    trusted: float  # the longest period read off the curve; beyond it the line is followed
    logarithmic: bool  # the line is over ln h, for heavy tails
    intercept: float
    slope: float  # of ln(period)
    block: int  # mean block length used

    def threshold(self, period: float) -> float:
        """The smallest threshold with this period or a longer one."""
        goal = math.log(period)
        logs = np.log(self.periods)
        inside = self.periods <= self.trusted
        if period <= self.trusted and inside.any() and goal <= logs[inside].max():
            place = int(np.searchsorted(logs, goal))
            if place == 0:
                return float(self.thresholds[0])
            share = (goal - logs[place - 1]) / max(logs[place] - logs[place - 1], 1e-12)
            return float(self.thresholds[place - 1] + share * (self.thresholds[place] - self.thresholds[place - 1]))
        reached = float(self.thresholds[inside][-1]) if inside.any() else float(self.thresholds[0])
        if not self.slope > 0:
            return reached
        along = (goal - self.intercept) / self.slope
        return max(reached, math.exp(min(along, 600.0)) if self.logarithmic else along)


def _line(x: Array, y: Array) -> tuple[float, float, float]:
    """Intercept, slope and mean squared residual of a straight line."""
    if len(x) < 2 or np.ptp(x) == 0:
        return float(y[-1]) if len(y) else 0.0, 0.0, float("inf")
    slope, intercept = np.polyfit(x, y, 1)
    return float(intercept), float(slope), float(np.mean((y - intercept - slope * x) ** 2))


def _count(rule: AlarmRule, sample: Array, at_rest: Array, threshold: float) -> int:
    """Alarms raised; a statistic that no alarm changes need not be computed again."""
    if rule.bounded:
        return int(_kernels.count_runs(rule.accumulate(sample, threshold=threshold).active))
    return int(_kernels.count_runs(at_rest >= threshold))


def period_curve(rule: AlarmRule, segments: Sequence[Array], *, rng: np.random.Generator) -> PeriodCurve:
    """Resample the normal evidence ``segments`` and run ``rule`` over it at many thresholds."""
    evidence = np.concatenate([segment[~np.isnan(flat(segment))] for segment in segments])
    n = len(evidence)
    block = block_length(flat(evidence))
    length = int(np.clip(RESAMPLES * n, SHORTEST, LONGEST))
    sample = resample(evidence, length=length, block=block, rng=rng)
    statistic_at_rest = rule.accumulate(sample, threshold=1e300).statistic
    statistic = np.sort(statistic_at_rest)
    tail = np.geomspace(0.5, 2.0 / length, THRESHOLDS)
    candidates = np.unique(statistic[np.minimum((length * (1.0 - tail)).astype(np.int64), length - 1)])
    candidates = candidates[candidates > 0] if rule.positive else candidates
    if len(candidates) == 0:  # the evidence never rises: any threshold above it will do
        top = max(float(statistic[-1]), 0.0) + 1.0
        return PeriodCurve(
            np.array([top]), np.array([float(length)]), float(length), False, math.log(length), 0.0, block
        )
    alarms = np.array([_count(rule, sample, statistic_at_rest, float(h)) for h in candidates])
    periods = np.minimum.accumulate((length / np.maximum(alarms, 0.5))[::-1])[::-1]
    # A rule that accumulates makes new extremes out of old evidence; one that does not cannot see beyond its sample.
    trusted = length / FEWEST_ALARMS if rule.bounded else n / 3.0
    fit = (periods <= trusted) & (periods >= periods[periods <= trusted].max(initial=1.0) / 30.0)
    x, y = candidates[fit], np.log(periods[fit])
    straight = _line(x, y)
    logarithmic = False
    if not rule.bounded and (x > 0).all() and len(x):
        curved = _line(np.log(x), y)
        logarithmic = curved[2] < straight[2] or not straight[1] > 0
        straight = curved if logarithmic else straight
    return PeriodCurve(candidates, periods, trusted, logarithmic, straight[0], straight[1], block)
