"""A score over many series: pooled and per-series mean, both there and both named.

Pooled means one threshold for all series, with delays, true and false alarms summed. The per-series mean averages the
series that have events. It does not know what the score measures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Self, TypeVar

import numpy as np

from tisat.utils.types import Array

_T = TypeVar("_T")
_DRAWS: ContextVar[Callable[[], Iterable[Sequence[int]]] | None] = ContextVar("draws of the series", default=None)


@contextmanager
def drawn(draws: Callable[[], Iterable[Sequence[int]]]) -> Iterator[None]:
    """Measure draws of the series in place of each series alone: ``per_series`` of every score made inside has one value a draw.

    What a score needs of a series is then computed once, not once a draw.

    Parameters
    ----------
    draws : callable
        Gives the draws anew for each score: the numbers of the series in each, repeated where drawn more than once.

    Examples
    --------
    >>> with drawn(lambda: [(0, 0), (0, 1)]):
    ...     Score.over([2.0, 4.0], lambda some: sum(some) / len(some)).per_series
    (2.0, 3.0)
    """
    token = _DRAWS.set(draws)
    try:
        yield
    finally:
        _DRAWS.reset(token)


def selections(series: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """What is measured beside the pooled score: each series alone, or the draws of :func:`drawn`."""
    draws = _DRAWS.get()
    if draws is None:
        yield from ([one] for one in series)
    else:
        yield from ([series[i] for i in draw] for draw in draws())


def mean_known(values: Sequence[float] | Array) -> float:
    """The mean of the values that are not NaN; NaN if there is none."""
    array = np.asarray(values, dtype=np.float64)
    known = array[~np.isnan(array)]
    return float(known.mean()) if len(known) else float("nan")


class Score(float):
    """A float, the pooled score, that also carries the scores of the single series.

    Parameters
    ----------
    x : float
        Pooled value.

    Attributes
    ----------
    per_series : tuple of float
        One value a series, NaN where it is undefined; of length 1 for one series.

    Examples
    --------
    >>> score = Score.of(0.5, [0.25, 0.5, float("nan")])
    >>> score
    0.5 (pooled; per-series mean 0.375 of 2 series)
    >>> score + 1, score.per_series_mean
    (1.5, 0.375)
    """

    per_series: tuple[float, ...] = ()

    @classmethod
    def of(cls, pooled: float, per_series: Sequence[float]) -> Self:
        """A score from its pooled value and those of the series."""
        score = cls(pooled)
        score.per_series = tuple(float(value) for value in per_series)
        return score

    @classmethod
    def over(cls, series: Sequence[_T], measure: Callable[[Sequence[_T]], float]) -> Self:
        """A score from a measure of any number of series: of all together, and of each alone."""
        pooled = measure(series)
        return cls.of(pooled, [pooled] if len(series) == 1 else [measure(some) for some in selections(series)])

    @property
    def pooled(self) -> float:
        """One threshold for all series, counts summed."""
        return float(self)

    @property
    def per_series_mean(self) -> float:
        """The mean over the series for which the score is defined; NaN if there is none."""
        known = [value for value in self.per_series if not math.isnan(value)]
        return sum(known) / len(known) if known else float("nan")

    def __repr__(self) -> str:
        if len(self.per_series) < 2:
            return float.__repr__(self)
        known = sum(not math.isnan(value) for value in self.per_series)
        return f"{float.__repr__(self)} (pooled; per-series mean {self.per_series_mean:.4g} of {known} series)"

    __str__ = __repr__

    def __reduce__(self) -> tuple[object, tuple[float, tuple[float, ...]]]:
        return Score.of, (float(self), self.per_series)
