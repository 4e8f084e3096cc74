"""Training data that may hold anomalies: rows that stand out by the detector's own out-of-sample scores are left out.

The rows are cut into contiguous blocks, and each is scored by a detector fitted on the others. The body of the scores says how its tail
would go on if it were exponential, a robust extrapolation from two quantiles; rows beyond a score that so many rows would reach once in ten
such files, and rows close to them, are left out. It is done twice: anomalies left in by the first round no longer hide the second's.
Normal rows that stand out as far are left out too: the threshold is then lower than a clean file would give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from tisat.datasets.sizes import FOR_FEW, LEAST_CUT, LEAST_CUT_FOR_DEFAULT
from tisat.errors import SeriesError
from tisat.events import events_from_labels
from tisat.series import Series
from tisat.utils.parameters import clone
from tisat.utils.progress import Bar, progress
from tisat.utils.types import Array, Flags

BLOCKS = 5
BLOCKS_EXPENSIVE = 2  # of a detector that is not cross-fitted when it is fitted: a network
ROUNDS = 2
LEAD = 3000  # rows before a block that its detector sees first: its warm-up
INNER, OUTER = 0.8, 0.9  # quantiles of the body that the tail is extrapolated from
ONCE_IN = 10  # files of the same length, of which one would have a normal row beyond the limit
AROUND = 5  # rows left out before and after one that stands out
MOST = 0.25  # share of the rows that is left out at most, the highest scores


@dataclass(frozen=True)
class LeftOut:
    """Which rows of training data were left out."""

    rows: int
    of: int
    stretches: int

    def __str__(self) -> str:
        if not self.rows:
            return f"All {self.of:,} rows were trained on: the score of none was high enough to leave it out. Alarms may still be raised on them."
        where = f"{self.stretches} stretch{'es' * (self.stretches != 1)}"
        return f"{self.rows:,} of {self.of:,} training rows ({self.rows / self.of:.1%}, {where}) were left out as anomalous by the detector's own out-of-sample scores."


@dataclass(frozen=True)
class Fold:
    """One contiguous block of the rows: series to fit on, and per series its rows with those before them."""

    rest: tuple[Series, ...]
    here: tuple[tuple[int, int, int], ...]  # number of the series, first row, first row after


def folds_of(many: Sequence[Series], keep: Sequence[Flags], count: int) -> list[Fold]:
    """``count`` contiguous blocks over all series.

    To fit on, the rows outside a block that are kept.

    Examples
    --------
    >>> first, _ = folds_of([Series(np.zeros((6, 1)))], [np.ones(6, dtype=bool)], 2)
    >>> first.here, [len(one) for one in first.rest]
    (((0, 0, 3),), [3])
    """
    offsets = [0, *accumulate(map(len, many))]
    edges = np.linspace(0, offsets[-1], count + 1).round().astype(int).tolist()
    folds = []
    for low, high in pairwise(edges):
        rest: list[Series] = []
        here: list[tuple[int, int, int]] = []
        for number, (part, offset) in enumerate(zip(many, offsets, strict=False)):
            first, last = (min(max(edge - offset, 0), len(part)) for edge in (low, high))
            outside = keep[number].copy()
            outside[first:last] = False
            rest += pieces(part, outside)
            if last > first:
                here.append((number, first, last))
        folds.append(Fold(tuple(rest), tuple(here)))
    return folds


def pieces(series: Series, keep: Flags) -> list[Series]:
    """The stretches of a series whose rows are kept, two rows at least."""
    return [series[int(start) : int(stop)] for start, stop in events_from_labels(keep) if stop - start > 1]


def blocks_for(detector: Any) -> int:
    """In how many blocks rows are cut: fewer where fitting is expensive."""
    return BLOCKS if detector.traits.crossfit > 1 else BLOCKS_EXPENSIVE


def scored_out_of_sample(
    detector: Any, many: Sequence[Series], keep: Sequence[Flags], bar: Bar | None = None
) -> list[Array]:
    """The score of every row by a detector fitted on the kept rows of the other blocks, in units of its normal level."""
    scores = [np.full(len(one), np.nan) for one in many]
    for fold in folds_of(many, keep, blocks_for(detector)):
        other = clone(detector).fit(list(fold.rest), holdout=0.0)
        for number, first, last in fold.here:
            before = min(first, LEAD)
            scores[number][first:last] = other.decision_function(many[number][first - before : last])[before:]
        if bar is not None:
            bar.advance()
    return scores


def limit_of(scores: Array) -> float:
    """The score beyond which a row stands out; infinite where the scores have no body.

    Examples
    --------
    >>> normal = np.random.default_rng(0).exponential(size=5000)
    >>> bool((normal > limit_of(normal)).any()), bool(30.0 > limit_of(np.append(normal, 30.0)))
    (False, True)
    """
    finite = scores[np.isfinite(scores)]
    if len(finite) < 2:
        return math.inf
    inner, outer = np.quantile(finite, (INNER, OUTER))
    scale = (outer - inner) / math.log((1 - INNER) / (1 - OUTER))
    if not scale > 0:
        return math.inf
    wanted = inner + scale * math.log((1 - INNER) * ONCE_IN * len(finite))
    return float(max(wanted, np.quantile(finite, 1 - MOST)))


def too_short(detector: Any, rows: int, *, whose: str) -> SeriesError:
    """The error of a series that is too short to be cut into blocks."""
    return SeriesError(
        f"The series given to {whose} must be longer: each of {blocks_for(detector)} blocks is scored by a {type(detector).__name__} of the others, "
        f"without what looks anomalous. Got {rows} rows; prism takes about {LEAST_CUT_FOR_DEFAULT}, {FOR_FEW} (--detector {FOR_FEW}) the fewest, about {LEAST_CUT}."
    )


def kept_rows(detector: Any, many: Sequence[Series], bar: Bar | None = None, *, whose: str = "fit") -> list[Flags]:
    """Of every series, which rows are kept as normal."""
    keep = [np.ones(len(one), dtype=np.bool_) for one in many]
    for number in range(ROUNDS):
        try:
            scores = scored_out_of_sample(detector, many, keep, bar)
        except SeriesError:
            if number == 0:
                raise too_short(detector, sum(map(len, many)), whose=whose) from None
            break
        limit = limit_of(np.concatenate(scores))
        before = keep
        keep = [~_widened(np.nan_to_num(one, nan=-np.inf) > limit) for one in scores]
        if all((one == other).all() for one, other in zip(keep, before, strict=True)):
            if bar is not None:
                bar.advance((ROUNDS - 1 - number) * blocks_for(detector))  # rounds that are not needed
            break
    return keep


def _widened(out: Flags) -> Flags:
    """The rows, and those within AROUND of them."""
    if not out.any():
        return out
    return np.asarray(np.convolve(out, np.ones(2 * AROUND + 1), mode="same") > 0)


def fit_without_anomalies(detector: Any, many: Sequence[Series], **options: object) -> None:
    """Fit a detector on the stretches of training data that are normal.

    ``trained_on_`` says what was left out.
    """
    steps = ROUNDS * blocks_for(detector)
    with progress("looking for anomalies in training", total=steps, lines=True) as bar:
        keep = kept_rows(detector, many, bar)
    left_out = LeftOut(
        int(sum((~one).sum() for one in keep)),
        sum(map(len, many)),
        sum(len(events_from_labels(~one)) for one in keep),
    )
    detector.fit([piece for one, rows in zip(many, keep, strict=True) for piece in pieces(one, rows)], **options)
    told = {
        "series": [one.name for one in many],
        "period_seconds": many[0].period,
        "left_out": str(left_out),
        "left_out_rows": left_out.rows,
    }
    detector.trained_on_ = {**detector.trained_on_, **told}
