"""Out-of-sample points of the training data, for calibration.

Where fitting is cheap, by **cross-fitting**: the rows are cut into contiguous blocks, and each is scored by a model fitted
on the others, so that every row is scored once by a model that has not seen it, and the model in use has seen them all.
Where it is not, by holding out the tail. This module knows a detector by what it does; it imports none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tisat.errors import InputError, SeriesError
from tisat.utils.progress import Bar, is_shown, progress
from tisat.utils.types import Array, Integers

if TYPE_CHECKING:
    from tisat.detectors.base import Detector

Piece: TypeAlias = tuple[Array, int]  # rows to score, and how many of the first are context only
Folds: TypeAlias = Sequence[tuple[Sequence[Array], Sequence[Piece]]]  # rows to fit on, pieces to score

FEWEST_CROSS_FITTED = 40  # points; fewer tell nothing
SOME = 40  # rows that show how wide a point is: loops for single rows are not compiled before there is one
MANY_VALUES = 500_000  # of the training rows, from which on the models are counted while they are fitted: about 3 s
MANY_PARTS = 8  # parts from which on a fleet is taken for one
LEAST_STRETCH = 2000  # rows of one machine that are scored together: shorter ones know nothing of slow alarms
LEAST_STRETCHES = 5  # that are kept where there are too many points
MAX_POINTS, MAX_VALUES = 50_000, 2_000_000  # normal points kept with a model: so many, or more where they are small


def one_per_row(points: Array, part: Array, *, whose: str) -> Array:
    """The points that a detector gives for the rows of a part, refused where they are not one for each row.

    Examples
    --------
    >>> one_per_row(np.zeros((3, 1)), np.zeros((3, 2)), whose="Mine").shape
    (3, 1)
    """
    if np.ndim(points) != 2 or len(points) != len(part):
        raise InputError(
            f"{whose}._points must return as many rows as it gets, (T, m), NaN while warming up. "
            f"Got {np.shape(points)} for {len(part)} rows."
        )
    return points


def cross_fitted(detector: Detector, parts: Sequence[Array]) -> list[Array] | None:
    """Points of every row by a model fitted on the other blocks.

    None where there are too few rows for that.
    """
    context = detector._context()
    spread = None if context is None else spread_stretches(parts, context=context)
    folds = [spread] if spread is not None else blocks(parts, detector.traits.crossfit, context=context)
    small = sum(part.size for part in parts) < MANY_VALUES
    with progress("fit", total=len(folds) + 1, disable=small or is_shown(), lines=True, unit="model") as bar:
        return _points_of_folds(detector, folds, context, bar)


def _points_of_folds(detector: Detector, folds: Folds, context: int | None, bar: Bar) -> list[Array] | None:
    stretches: list[Array] = []
    wanted_pieces: list[list[list[Piece]]] = []  # by fold and part
    for number, (rest, _) in enumerate(folds):
        bar.advance(0, note=f"model {number + 1} of {len(folds) + 1}")
        if sum(map(len, rest)) < detector._minimum_rows():
            return None
        other = type(detector)(**detector.get_params(deep=False))
        other.channels_, other.n_channels_ = detector.channels_, detector.n_channels_
        detector._prepare_fold(other)
        try:
            other._fit(rest)
            few = max(rest, key=len)[: (context or 0) + SOME]
            wanted_pieces = wanted_pieces or only_kept(
                [here for _, here in folds],
                one_per_row(other._points(few), few, whose=type(other).__name__).shape[1],
                context=context,
            )
            scored = [score_pieces(other._whole_points, pieces) for pieces in wanted_pieces[number]]
        except SeriesError:  # the rest has no stretch long enough
            return None
        detector._learn_from_fold(scored, other)
        stretches += [other._for_calibration(one) for pieces in scored for one in pieces]
        bar.advance()
    return stretches if sum(map(len, stretches)) >= FEWEST_CROSS_FITTED else None


def split_tail(parts: Sequence[Array], share: float, *, context: int) -> tuple[list[Array], list[Piece]]:
    """The parts without the last ``share`` of their rows, and that tail with the rows it needs before it."""
    cut = round((1 - share) * sum(map(len, parts)))
    heads: list[Array] = []
    tails: list[Piece] = []
    for values in parts:
        head = values[: max(cut, 0)]
        before = min(context, len(head))
        if len(head):
            heads.append(head)
        if len(head) < len(values):
            tails.append((values[len(head) - before :], before))
        cut -= len(values)
    return heads, tails


def blocks(parts: Sequence[Array], folds: int, *, context: int | None) -> list[tuple[list[Array], list[Piece]]]:
    """For each of ``folds`` contiguous blocks: the rows outside it to fit on, and its rows to score.

    ``context`` None: a point depends on all earlier rows, so a block is scored with everything before it.

    Examples
    --------
    >>> (rest, here), *_ = blocks([np.arange(6.0)[:, None]], 3, context=1)
    >>> [len(one) for one in rest], [(len(rows), before) for rows, before in here]
    ([4], [(2, 0)])
    """
    offsets = [0, *accumulate(map(len, parts))]
    edges = np.linspace(0, offsets[-1], folds + 1).round().astype(int).tolist()
    fold_blocks = []
    for first, last in pairwise(edges):
        rest: list[Array] = []
        here: list[Piece] = []
        for part, offset in zip(parts, offsets, strict=False):
            low, high = (min(max(edge - offset, 0), len(part)) for edge in (first, last))
            rest += [piece for piece in (part[:low], part[high:]) if len(piece)]
            if high > low:
                before = low if context is None else min(context, low)
                here.append((part[low - before : high], before))
        fold_blocks.append((rest, here))
    return fold_blocks


def spread_stretches(parts: Sequence[Array], *, context: int) -> tuple[list[Array], list[Piece]] | None:
    """Of many machines far more rows than are kept: the rows to fit on, and stretches of machines all over the fleet to score.

    Each is the tail of a part, at least LEAST_STRETCH long; without this the last few machines would speak for all of them. None where there are
    few parts, or not many more rows than are kept.
    """
    if len(parts) < MANY_PARTS or sum(map(len, parts)) < 2 * MAX_POINTS:
        return None
    count = min(len(parts), MAX_POINTS // LEAST_STRETCH)
    picks = set(np.linspace(0, len(parts) - 1, count).round().astype(int).tolist())
    length = MAX_POINTS // len(picks)
    rest: list[Array] = []
    here: list[Piece] = []
    for number, part in enumerate(parts):
        cut = max(len(part) - length, len(part) // 2) if number in picks else len(part)
        if cut:
            rest.append(part[:cut])
        if cut < len(part):
            before = min(context, cut)
            here.append((part[cut - before :], before))
    return rest, here


def most_points(m: int) -> int:
    """Normal points of m numbers that are kept with a model."""
    return max(MAX_POINTS, MAX_VALUES // max(m, 1))


def _stretches(count: int, m: int) -> tuple[Integers, int]:
    """Where the stretches begin that are kept of ``count`` points, which are too many, and how long each is."""
    most = most_points(m)
    length = max(min(LEAST_STRETCH, most // LEAST_STRETCHES), 1)
    return np.linspace(0, count - length, most // length).astype(np.int64), length


def only_kept(folds: Sequence[Sequence[Piece]], m: int, *, context: int | None) -> list[list[list[Piece]]]:
    """For each piece of each fold the pieces of it that :func:`join` keeps, so that no others are scored.

    Each has its ``context`` before it. All rows after the context of a part are taken to have a point ``(m,)``. With a context of
    None, all earlier rows, every piece is kept whole.

    Examples
    --------
    >>> rows = np.zeros((300_000, 1))
    >>> found = only_kept([[(rows[:150_000], 0)], [(rows[149_990:], 10)]], 40, context=10)
    >>> sum(len(piece) - before for fold in found for piece, before in fold[0])
    50000
    """
    whole = [[[piece] for piece in fold] for fold in folds]
    if context is None:
        return whole
    contexts = [[max(before, context) for _, before in fold] for fold in folds]
    counts = [
        [max(len(rows) - at, 0) for (rows, _), at in zip(*both, strict=True)]
        for both in zip(folds, contexts, strict=True)
    ]
    total = sum(map(sum, counts))
    if total <= most_points(m):
        return whole
    begins, length = _stretches(total, m)
    out: list[list[list[Piece]]] = []
    offset = 0
    for fold, firsts, sizes in zip(folds, contexts, counts, strict=True):
        out.append([])
        for (rows, _), first, size in zip(fold, firsts, sizes, strict=True):
            edges = ((max(int(one) - offset, 0), min(int(one) + length - offset, size)) for one in begins)
            out[-1].append([(rows[first + low - context : first + high], context) for low, high in edges if low < high])
            offset += size
    return out


def score_pieces(points: Callable[[Array], Array], pieces: Sequence[Piece]) -> list[Array]:
    """The points of each piece, without those of its context and without unknown ones."""
    scored = [points(rows)[before:] for rows, before in pieces]
    return [one[~np.isnan(one).any(axis=1)] for one in scored]


def join(stretches: Sequence[Array], m: int) -> tuple[Array, Integers]:
    """Points ``(N, m)`` in time order, and where stretches begin.

    Where there are too many, stretches evenly spread over all of them: every season has its say, not the last one alone.
    """
    known = [one for one in stretches if len(one)]
    points = np.concatenate(known) if known else np.empty((0, m))
    starts = np.array([0, *accumulate(map(len, known))][:-1] if known else [], dtype=np.int64)
    if len(points) <= most_points(m):
        return points, starts
    begins, length = _stretches(len(points), m)
    rows = (begins[:, None] + np.arange(length)).ravel()
    joins = np.union1d(np.arange(len(begins)) * length, np.flatnonzero(np.isin(rows, starts)))
    return points[rows], joins
