"""Fit a detector: read, check and clean the series, hold out rows or cross-fit, keep normal points and a record of the data."""

from __future__ import annotations

import datetime
import platform
import shlex
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from tisat import __version__
from tisat.alarms.sentences import moves_every, stood
from tisat.datasets.sizes import LEAST_ROWS
from tisat.detectors.crossfit import SOME, Piece, join, most_points, one_per_row, score_pieces, split_tail
from tisat.errors import InputError, SeriesError
from tisat.gap_filling import HUGE, MAX_GAP, usable_parts
from tisat.io.columns import listed
from tisat.io.timestamps import say_offset
from tisat.series import ManySeries, Series, as_many
from tisat.utils.types import Array
from tisat.utils.validation import check_real
from tisat.watch.protocols import CROSS_FITTED, Training

if TYPE_CHECKING:
    from tisat.detectors.base import Detector

HOLDOUT = 0.2  # the tail of normal data that a model which is expensive to fit is calibrated on
UNEVEN = 0.1  # of the sampling period: from which on the mean step is another time
SMALLEST = 1e-150  # of a channel's largest value: its square is not lost


def fit_series(
    detector: Detector, series: ManySeries, *, holdout: float | None, learn: Callable[[Sequence[Array]], None]
) -> None:
    """Fit a detector on series.

    ``learn`` learns from the clean parts (a neural detector's has a checkpoint).
    """
    caller = type(detector).__name__
    detector._check_parameters()
    if holdout is not None:
        check_real(holdout, "holdout", f"{caller}.fit", at_least=0.0, at_most=0.5)
    many = check_training(series, caller, context=detector._context() or 0)
    detector.channels_ = many[0].channels
    detector.n_channels_ = len(detector.channels_)
    clean = [[values for _, values in detector._usable(one)] for one in many]
    parts = [values for one in clean for values in one]
    normal = detector._cross_fitted(parts) if holdout is None and detector.traits.crossfit > 1 else None
    share = 0.0 if normal is not None else HOLDOUT if holdout is None else holdout
    tails: list[Piece] = []
    if share > 0:
        cut = [split_tail(one, share, context=detector._context() or 0) for one in clean]
        parts = [head for heads, _ in cut for head in heads]
        tails = [tail for _, ends in cut for tail in ends]
    check_sparse(many, caller, context=detector._context() or 0, longest=max(map(len, parts), default=0))
    rows = sum(map(len, parts))
    if rows < detector._minimum_rows():
        least = next(n for n in count(detector._minimum_rows()) if round((1 - share) * n) >= detector._minimum_rows())
        held = f", {share:.0%} of them held out" if share else ""
        found = sum(len(values) for one in clean for values in one)
        fewer = "; ewma and mahalanobis learn from fewer (tisat suggest, tisat.suggest)" if found >= LEAST_ROWS else ""
        raise SeriesError(
            f"The series given to {caller}.fit must have at least {least} usable rows{held}. Got {found} instead{fewer}."
        )
    detector._look_at(parts)
    learn(parts)
    detector._keep_normal(parts, tails, normal)
    detector.trained_on_ = training_record(many, [part[:, : detector.n_channels_] for part in parts])
    if rows > (most := most_points(detector.n_points_)):
        detector.trained_on_["most_kept"] = most


def keep_normal(
    detector: Detector, parts: Sequence[Array], tails: Sequence[Piece], cross_fitted: list[Array] | None
) -> None:
    """Keep points of normal data for calibration.

    ``cross_fitted``: made already, by models that had not seen them.
    """
    few = parts[0][: (detector._context() or 0) + SOME]
    detector.n_points_ = one_per_row(detector._points(few), few, whose=type(detector).__name__).shape[1]
    detector.normal_source_ = "held-out tail" if cross_fitted is None else CROSS_FITTED
    stretches = score_pieces(detector._whole_points, tails) if cross_fitted is None else cross_fitted
    if sum(map(len, stretches)) < 2:
        detector.normal_source_ = "training rows"
        stretches = [one[~np.isnan(one).any(axis=1)] for one in detector._normal_points(parts)]
    kept = [detector._for_calibration(one) for one in stretches]
    detector.normal_, detector.normal_breaks_ = join(kept, kept[0].shape[1] if kept else detector.n_points_)
    if len(detector.normal_) == 0:
        context = detector._context()
        scorable = 0 if context is None else sum(max(len(part) - context, 0) for part in parts)
        if scorable:  # rows enough: no fault of the series
            raise InputError(
                f"The points of {type(detector).__name__} must be numbers after its warm-up of {context} rows. "
                f"Got NaN in each of {scorable} training rows; does it divide by 0?"
            )
        raise SeriesError(
            f"The series given to {type(detector).__name__}.fit must be longer than its warm-up. "
            f"Got {sum(map(len, parts))} usable rows in {len(parts)} parts, none of which got a score."
        )
    known = ~np.isnan(detector.normal_)
    squares = np.where(known, detector.normal_, 0.0) ** 2
    detector.usual_squares_ = squares.sum(axis=0) / np.maximum(known.sum(axis=0), 1)


def check_training(series: ManySeries, whose: str, *, context: int = 0) -> list[Series]:
    """Read the series given to ``fit``, with the channels of the first in their order.

    Refused where one cannot be learned from. Beside empty channels those that are too sparse for the context are named.
    """
    many = as_many(series, whose=f"{whose}.fit")
    first = many[0].channels
    for number, part in enumerate(many):
        try:
            many[number] = part.in_order(first, whose=f"{whose}.fit")
        except SeriesError as error:
            raise SeriesError(
                f"All series given to {whose}.fit must have the same channels. {part.name!r} differs. {error}"
            ) from None
    if names := empty_channels(many):
        found = f"Channel {names[0]!r} has none" if len(names) == 1 else f"Channels {listed(names)} have none"
        if sparse := sparse_channels(many, context=context, without=names):
            has = f"{next(iter(sparse))!r} has" if len(sparse) == 1 else f"{listed(list(sparse))} have"
            found += (
                f"; {has} them in at most {max(sparse.values())} rows without a gap, and more than {context} are needed"
            )
            names = [name for name in first if name in sparse or name in names]
        raise SeriesError(
            f"Every channel given to {whose}.fit must have values. {found}. "
            f"Leave {'it' if len(names) == 1 else 'them'} out with --drop {shlex.quote(','.join(names))}, or tisat.Series.from_table(table, drop={names!r})."
        )
    largest = np.max([np.nanmax(np.abs(part.values), axis=0, initial=0.0) for part in many], axis=0)
    if (largest > HUGE).any():
        raise SeriesError(
            f"Every channel given to {whose}.fit must have values of a size that can be squared. Channel "
            f"{many[0].channels[int(np.argmax(largest))]!r} has one of {largest.max():g}, beyond {HUGE:g}; give it in larger units, or such a cell empty (NaN)."
        )
    tiny = (largest > 0) & (largest < SMALLEST)
    if tiny.any():
        raise SeriesError(
            f"Every channel given to {whose}.fit must have values of a size that can be squared. Channel "
            f"{many[0].channels[int(np.argmax(tiny))]!r} has none above {SMALLEST:g}; give it in smaller units."
        )
    return many


def empty_channels(many: Sequence[Series]) -> list[str]:
    """The channels that have no value in any of the series."""
    empty = np.all([np.isnan(part.values).all(axis=0) for part in many], axis=0)
    return [many[0].channels[c] for c in np.flatnonzero(empty)]


def sparse_channels(many: Sequence[Series], *, context: int, without: Sequence[str] = ()) -> dict[str, int]:
    """The channels whose longest stretch of rows is no longer than the context, and how long it is.

    None where all channels but those of ``without`` have a longer stretch in common, and none where all are as sparse.

    Examples
    --------
    >>> rows = np.column_stack([np.arange(50.0), np.where(np.arange(50) < 5, 1.0, np.nan)])
    >>> sparse_channels([Series(rows, channels=("a", "b"))], context=20)
    {'b': 15}
    """
    names = [name for name in many[0].channels if name not in without]
    if not names or _longest(many, names) > context:
        return {}
    stretches = {name: _longest(many, [name]) for name in names}
    sparse = {name: rows for name, rows in stretches.items() if rows <= context}
    return sparse if len(sparse) < len(names) else {}


def _longest(many: Sequence[Series], names: Sequence[str]) -> int:
    """The most rows in one piece in which all these channels have values."""
    return max((len(part) for one in many for _, part in usable_parts(one.select(names))), default=0)


def check_sparse(many: Sequence[Series], whose: str, *, context: int, longest: int) -> None:
    """Refuse channels with so few values that no stretch of rows is longer than the context, where others have one."""
    if longest > context:
        return
    sparse = sparse_channels(many, context=context)
    if names := list(sparse):
        found = f"Channel {names[0]!r} has" if len(names) == 1 else f"Channels {listed(names)} have"
        raise SeriesError(
            f"Every channel given to {whose}.fit must have values in more than {context} rows without a gap. "
            f"{found} at most {max(sparse.values())}. "
            f"Leave {'it' if len(names) == 1 else 'them'} out with --drop {shlex.quote(','.join(names))}, or tisat.Series.from_table(table, drop={names!r})."
        )


def mean_step(many: Sequence[Series]) -> float | None:
    """The mean time between two rows in seconds, without gaps; None where it is about the sampling period, or there are no times."""
    period = many[0].period
    if not period:
        return None
    steps = np.concatenate([np.diff(one.seconds) for one in many if one.seconds is not None])
    mean = float(steps[steps <= MAX_GAP * period].mean())
    return mean if abs(mean - period) > UNEVEN * period else None


def training_record(many: Sequence[Series], parts: Sequence[Array]) -> Training:
    """Record what ``fit`` saw: series, and the clean parts ``(T_i, C)`` that were used of them."""
    record: Training = {
        "series": [one.name for one in many],
        "rows": int(sum(map(len, many))),
        "rows_used": int(sum(map(len, parts))),
        "missing_values": int(sum(one.missing for one in many)),
        "moves_every": moves_every(parts),
        "stood": stood(parts),
        "period_seconds": many[0].period,
        "start": None if many[0].timestamps is None else str(many[0].timestamps[0]),
        "stop": None if many[-1].timestamps is None else str(many[-1].timestamps[-1]),
        "fitted_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "tisat": __version__,
        "python": platform.python_version(),
    }
    offsets = sorted({int(minutes) for one in many if one.offsets is not None for minutes in np.unique(one.offsets)})
    if offsets:
        record["zone"] = " or ".join(say_offset(minutes).replace("Z", "UTC") for minutes in offsets)
    if uneven := mean_step(many):
        record["mean_seconds"] = uneven
    least, most = (
        np.array([find(part, axis=0) for part in parts if len(part)]) for find in (np.fmin.reduce, np.fmax.reduce)
    )
    still = np.fmin.reduce(least, axis=0) == np.fmax.reduce(most, axis=0) if len(least) else ()
    if constant := [
        name for name, flat in zip(many[0].channels, still, strict=False) if flat and name not in many[0].differenced
    ]:
        record["constant"] = constant
    if labelled := sum(int(one.labels.sum()) for one in many if one.labels is not None):
        record["labelled"] = labelled
    if many[0].differenced:
        record["counters"] = list(many[0].differenced)
    return record
