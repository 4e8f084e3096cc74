"""Random baseline under point adjustment, in closed form and simulated.

Alarm at each row with probability p. Paper: Doshi, Abudalou, Yilmaz, "Reward Once, Penalize Once", section III.
Nothing here knows a detector or a score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.events import events_from_labels
from tisat.metrics.instance import PrecisionRecall
from tisat.metrics.windows import series_list
from tisat.utils.random import Seed, generator
from tisat.utils.types import Flags, Integers, Labels
from tisat.utils.validation import check_integer, check_labels, check_real


def _labels(labels: Labels, whose: str) -> list[Flags]:
    return [check_labels(y, "labels", whose) for y in series_list(labels, name="labels", whose=whose)]


def _parts(labels: Labels, whose: str) -> list[tuple[Integers, int]]:
    """Lengths of the events and normal rows of each series."""
    return [(np.diff(events_from_labels(y))[:, 0], int((~y).sum())) for y in _labels(labels, whose)]


def _together(parts: Sequence[tuple[Integers, int]]) -> tuple[Integers, int]:
    return np.concatenate([lengths for lengths, _ in parts]), sum(normal for _, normal in parts)


def _expected(lengths: Integers, normal: int, p: float) -> PrecisionRecall:
    hits = float((lengths * -np.expm1(lengths * np.log1p(-p))).sum()) if p < 1 else float(lengths.sum())
    return PrecisionRecall.of_counts(hits, normal * p, float(lengths.sum()) - hits)


def random_guess(labels: Labels, p: float = 0.01) -> PrecisionRecall:
    """The adjusted precision, recall and F1 of alarms at random with probability ``p``, by closed form.

    ``TP = sum_i M_i (1 - (1 - p)^M_i)``, ``precision = TP / (TP + N p)``, ``recall = TP / sum_i M_i`` for N normal rows and
    events of length M_i.

    Parameters
    ----------
    labels : array of 0 and 1, shape (T,), or a list of them
        Labels: 1 in events.
    p : float
        Probability of an alarm at a row, above 0 and at most 1.

    Returns
    -------
    PrecisionRecall
        Pooled: counts summed over the series; those of single series in ``per_series``.

    Examples
    --------
    >>> print(random_guess([0] * 500 + [1] * 500, p=0.01))
    precision 0.9900, recall 0.9934, F1 0.9917
    """
    chance = check_real(p, "p", "random_guess", above=0.0, at_most=1.0)
    return PrecisionRecall.over(_parts(labels, "random_guess"), lambda some: _expected(*_together(some), chance))


def random_guess_simulated(
    labels: Labels, p: float = 0.01, *, n_simulations: int = 20, random_state: Seed = 0
) -> PrecisionRecall:
    """The same by throwing the random baseline at every row: the check of the closed form.

    True and false positives are averaged over the simulations before precision, recall and F1 are taken.

    Parameters
    ----------
    labels : array-like of shape (T,), or a list of them
        Labels: 1 in events.
    p : float
        Probability of an alarm in a row.
    n_simulations : int
        Number of simulations.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    PrecisionRecall
        Mean scores over the simulations.

    Examples
    --------
    >>> labels = [0] * 500 + [1] * 500
    >>> abs(random_guess_simulated(labels, 0.01).f1 - random_guess(labels, 0.01).f1) < 0.01
    True
    """
    chance = check_real(p, "p", "random_guess_simulated", above=0.0, at_most=1.0)
    number = check_integer(n_simulations, "n_simulations", "random_guess_simulated", minimum=1)
    rng = generator(random_state, whose="random_guess_simulated")
    counts = []
    for y in _labels(labels, "random_guess_simulated"):
        events = events_from_labels(y)
        hits = false = 0
        for _ in range(number):
            alarms = rng.random(len(y)) < chance
            false += int((alarms & ~y).sum())
            seen = np.append(0, np.cumsum(alarms))
            found = seen[events[:, 1]] > seen[events[:, 0]]
            hits += int((events[:, 1] - events[:, 0])[found].sum())
        counts.append((hits / number, false / number, float(y.sum()) - hits / number))
    return PrecisionRecall.of_each(counts)


def best_random_guess(labels: Labels, *, probabilities: Sequence[float] | None = None) -> tuple[float, PrecisionRecall]:
    """The random baseline with the best expected adjusted F1: its probability and its scores. The floor of a best adjusted F1.

    Parameters
    ----------
    labels : array of 0 and 1, shape (T,), or a list
        Labels: 1 in events.
    probabilities : sequence of float, optional
        Those tried; 200 from 0.00001 to 1, evenly in logarithm, by default.

    Returns
    -------
    tuple[float, PrecisionRecall]
        The best probability and its scores.

    Examples
    --------
    >>> p, scores = best_random_guess([0] * 900 + [1] * 100)
    >>> 0.01 < p < 0.05, scores.f1 > 0.85
    (True, True)
    """
    tried = np.logspace(-5, 0, 200) if probabilities is None else np.asarray(probabilities, dtype=np.float64)
    together = _together(_parts(labels, "best_random_guess"))
    scores = [_expected(*together, float(p)).f1 for p in tried]
    best = float(tried[int(np.argmax(np.nan_to_num(scores, nan=-1.0)))])
    return best, random_guess(labels, best)
