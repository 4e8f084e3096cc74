"""Paired bootstrap over entities, mean ranks, critical difference.

Entities are what is sampled: machines and channels stand for those one has not seen. Rows of one machine do not. Nothing
here knows what the numbers measure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tisat.errors import InputError
from tisat.utils.random import Seed, generator
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

    @property
    def excludes_zero(self) -> bool:
        """Whether a difference with this interval can be claimed."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


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
    return Interval(value, float(low), float(high), float(draws.std()))


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
