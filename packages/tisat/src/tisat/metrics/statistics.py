"""Paired bootstrap over entities, mean ranks, critical difference.

Entities are what is sampled: machines and channels stand for those one has not seen. Rows of one machine do not. Nothing
here knows what the numbers measure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tisat.errors import InputError
from tisat.utils.random import Seed, generator
from tisat.utils.tables import DASH
from tisat.utils.types import Array
from tisat.utils.validation import check_integer, check_real

RESAMPLES = 1000
LEVEL = 0.95


def resampling_weights(n: int, *, resamples: int = RESAMPLES, random_state: Seed = 0) -> Array:
    """How often each of ``n`` entities is drawn in each resample, ``(B, n)``.

    Rows sum to n.

    Examples
    --------
    >>> resampling_weights(3, resamples=2).sum(axis=1).tolist()
    [3.0, 3.0]
    """
    entities = check_integer(n, "n", "resampling_weights", minimum=1)
    draws = check_integer(resamples, "resamples", "resampling_weights", minimum=1)
    rng = generator(random_state, whose="resampling_weights")
    return rng.multinomial(entities, np.full(entities, 1.0 / entities), size=draws).astype(np.float64)


@dataclass(frozen=True)
class Interval:
    """A figure with a bootstrap interval."""

    value: float
    low: float
    high: float
    error: float  # standard deviation over the resamples
    draws: int = 0  # resamples with a value
    enough: bool = True  # whether as many units were drawn as a test at this level takes

    @property
    def excludes_zero(self) -> bool:
        """Whether a difference with this interval can be claimed."""
        return self.excludes(0.0)

    def excludes(self, value: float) -> bool:
        """Whether the figure can be told apart from ``value``."""
        return self.enough and (self.low > value or self.high < value)

    @property
    def ends(self) -> str:
        """Low to high; a dash where there is no interval."""
        return DASH if math.isnan(self.low) else f"{self.low:.3f} to {self.high:.3f}"

    def __str__(self) -> str:
        return f"{self.value:.3f}" + ("" if math.isnan(self.low) else f" [{self.low:.3f}, {self.high:.3f}]")


def interval_of(value: float, resampled: npt.ArrayLike, *, level: float = LEVEL) -> Interval:
    """The percentile interval of resampled values.

    Resamples without events (NaN) are left out.

    Examples
    --------
    >>> print(interval_of(0.5, np.linspace(0.0, 1.0, 1001)))
    0.500 [0.025, 0.975]
    """
    share = check_real(level, "level", "interval_of", above=0.0, below=1.0)
    draws = np.asarray(resampled, dtype=np.float64)
    draws = draws[~np.isnan(draws)]
    if not len(draws):
        return Interval(value, math.nan, math.nan, math.nan)
    low, high = np.quantile(draws, [(1 - share) / 2, (1 + share) / 2])
    return Interval(value, float(low), float(high), float(draws.std()), len(draws))


def fewest_units(level: float = LEVEL) -> int:
    """The fewest independent units that can tell two figures apart: ``2 * 2**-n``, the least two-sided p of ``n`` signs, must reach the level.

    Examples
    --------
    >>> fewest_units(), fewest_units(0.99)
    (6, 8)
    """
    return math.ceil(math.log2(2 / (1 - level)) - 1e-9)


def few_units(n: int, noun: str, *, level: float = LEVEL) -> str:
    """The sentence that so few units support no result; empty where they are enough.

    Examples
    --------
    >>> few_units(3, "event"), few_units(6, "event")
    ('There are only 3 events: it takes 6 to tell scores apart at 5 %, however large the difference.', '')
    """
    fewest = fewest_units(level)
    if n >= fewest:
        return ""
    there = f"is only 1 {noun}" if n == 1 else f"are only {n} {noun}s"
    return f"There {there}: it takes {fewest} to tell scores apart at {100 * (1 - level):.3g} %, however large the difference."


def t_interval(
    value: float,
    resampled: npt.ArrayLike,
    units: int,
    *,
    level: float = LEVEL,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Interval:
    """The interval of a figure over few units: Student's quantiles times the standard error of the resamples.

    Percentiles of resamples are too narrow for few units: their spread is short of the standard error by ``sqrt((n - 1) / n)``, and its own error
    asks for quantiles of t with ``n - 1`` degrees of freedom (Hesterberg: What Teachers Should Know About the Bootstrap, The American Statistician 69, 2015).
    Fewer than :func:`fewest_units` units have no interval.

    Parameters
    ----------
    value : float
    resampled : array of shape (B,)
        Resamples without a value (NaN) are left out.
    units : int
        How many independent units were drawn.
    level : float
    bounds : pair of float
        The range of the figure.

    Examples
    --------
    >>> print(t_interval(0.5, np.linspace(0.4, 0.6, 1001), 7))
    0.500 [0.347, 0.653]
    """
    from scipy.stats import t

    share = check_real(level, "level", "t_interval", above=0.0, below=1.0)
    plain = interval_of(value, resampled, level=share)
    enough = units >= fewest_units(share)
    if not enough or units < 2 or math.isnan(plain.error):
        return replace(plain, low=math.nan, high=math.nan, enough=enough)
    half = float(t.ppf((1 + share) / 2, units - 1)) * _standard_error(plain, units)
    low, high = max(value - half, min(bounds[0], value)), min(value + half, max(bounds[1], value))
    return replace(plain, low=low, high=high, enough=enough)


def t_test(interval: Interval, units: int) -> float:
    """The two-sided p of a difference with this interval: Student's, never below ``2 * 2**-units``, which as many signs allow.

    Examples
    --------
    >>> one = Interval(0.3, 0.1, 0.5, 0.08)
    >>> round(t_test(one, 10), 4), t_test(one, 3)
    (0.0061, 0.25)
    """
    from scipy.stats import t

    least = min(1.0, 2.0 ** (1 - units))
    if units < 2 or interval.value == 0:
        return 1.0
    error = _standard_error(interval, units)
    if math.isnan(error) or math.isnan(interval.value):
        return math.nan
    return max(least, float(2 * t.sf(abs(interval.value) / error, units - 1)) if error > 0 else 0.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values of several tests, adjusted so that all of them together err as often as one (Holm, Scandinavian Journal of Statistics 6, 1979).

    What is NaN stays NaN and is no test.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03, math.nan])
    [0.03, 0.06, 0.06, nan]
    """
    order = sorted((i for i, p in enumerate(p_values) if not math.isnan(p)), key=lambda i: p_values[i])
    adjusted, highest = [math.nan] * len(p_values), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def _standard_error(interval: Interval, units: int) -> float:
    return interval.error * math.sqrt(units / (units - 1))


def resampled_means(values: npt.ArrayLike, weights: Array) -> Array:
    """The mean of per-entity values ``(n,)`` in each resample ``(B, n)``.

    Entities without a value (NaN) are left out.

    Examples
    --------
    >>> resampled_means([1.0, 3.0, np.nan], np.array([[1.0, 1.0, 1.0], [2.0, 0.0, 1.0]])).tolist()
    [2.0, 1.0]
    """
    each = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(each)
    total = weights[:, known].sum(axis=1)
    sums: Array = weights[:, known] @ each[known]
    means: Array = np.divide(sums, total, out=np.full(len(weights), np.nan), where=total > 0)
    return means


@dataclass(frozen=True)
class Ranks:
    """Mean ranks over blocks (1 is best), and how far two of them must lie apart."""

    names: tuple[str, ...]  # best first
    ranks: tuple[float, ...]
    critical_difference: float  # Nemenyi's, at alpha
    friedman_p: float  # that all are alike
    blocks: int
    alpha: float

    def groups(self) -> list[tuple[str, ...]]:
        """Maximal runs of systems that are not told apart, best first."""
        spans: list[tuple[int, int]] = []
        for i, best in enumerate(self.ranks):
            last = max(j for j, rank in enumerate(self.ranks) if rank - best <= self.critical_difference)
            if last > i and (not spans or last > spans[-1][1]):
                spans.append((i, last))
        return [self.names[i : j + 1] for i, j in spans]


def mean_ranks(values: npt.ArrayLike, names: Sequence[str], *, alpha: float = 0.05) -> Ranks:
    """Friedman's mean ranks with Nemenyi's critical difference.

    Parameters
    ----------
    values : array of shape (blocks, systems)
        Higher is better; a block with a NaN is left out.
    names : sequence of str
    alpha : float

    Notes
    -----
    Demsar: Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 2006, section 3.2.2. Blocks are entities here; entities of one data
    set are alike, so the test is a little too sure of itself. The bootstrap intervals are what claims rest on.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = mean_ranks(rng.random((50, 3)) + np.array([0.0, 2.0, 4.0]), ("low", "middle", "high"))
    >>> found.names, found.ranks, found.groups()
    (('high', 'middle', 'low'), (1.0, 2.0, 3.0), [])
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(names) or len(names) < 2:
        raise InputError(
            f"The values given to mean_ranks must have one column for each of at least two names. Got shape {table.shape}."
        )
    check_real(alpha, "alpha", "mean_ranks", above=0.0, below=1.0)
    table = table[~np.isnan(table).any(axis=1)]
    k, n = len(names), len(table)
    if n < 2:
        raise InputError(f"The values given to mean_ranks must have at least two complete blocks. Got {n} instead.")
    ranks = rankdata(-table, axis=1).mean(axis=0)
    order = np.argsort(ranks, kind="stable")
    q = float(studentized_range.ppf(1 - alpha, k, np.inf)) / math.sqrt(2)
    p = float(friedmanchisquare(*table.T).pvalue) if k > 2 else math.nan
    return Ranks(
        names=tuple(names[i] for i in order),
        ranks=tuple(float(ranks[i]) for i in order),
        critical_difference=q * math.sqrt(k * (k + 1) / (6 * n)),
        friedman_p=p,
        blocks=n,
        alpha=alpha,
    )
