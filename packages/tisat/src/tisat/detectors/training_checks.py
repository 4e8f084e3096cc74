"""Checks of training data, and the record of it that a fitted detector keeps."""

from __future__ import annotations

import datetime
import platform
import shlex
from collections.abc import Sequence

import numpy as np

from tisat import __version__
from tisat.alarms.sentences import moves_every
from tisat.errors import SeriesError
from tisat.io.columns import listed
from tisat.io.timestamps import say_offset
from tisat.series import ManySeries, Series, as_many
from tisat.utils.types import Array
from tisat.watch.protocols import Training

SMALLEST = 1e-150  # of a channel's largest value: its square is not lost


def check_training(series: ManySeries, whose: str) -> list[Series]:
    """Read the series given to ``fit``, with the channels of the first in their order.

    Refused where one cannot be learned from.
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
    empty = np.all([np.isnan(part.values).all(axis=0) for part in many], axis=0)
    if empty.any():
        names = [many[0].channels[c] for c in np.flatnonzero(empty)]
        found = f"Channel {names[0]!r} has none" if len(names) == 1 else f"Channels {listed(names)} have none"
        raise SeriesError(
            f"Every channel given to {whose}.fit must have values. {found}. "
            f"Leave {'it' if len(names) == 1 else 'them'} out with --drop {shlex.quote(','.join(names))}, or drop={names!r}."
        )
    largest = np.max([np.nanmax(np.abs(part.values), axis=0, initial=0.0) for part in many], axis=0)
    tiny = (largest > 0) & (largest < SMALLEST)
    if tiny.any():
        raise SeriesError(
            f"Every channel given to {whose}.fit must have values of a size that can be squared. Channel "
            f"{many[0].channels[int(np.argmax(tiny))]!r} has none above {SMALLEST:g}; give it in smaller units."
        )
    return many


def training_record(many: Sequence[Series], parts: Sequence[Array]) -> Training:
    """Record what ``fit`` saw: series, and the clean parts ``(T_i, C)`` that were used of them."""
    record: Training = {
        "series": [one.name for one in many],
        "rows": int(sum(map(len, many))),
        "rows_used": int(sum(map(len, parts))),
        "missing_values": int(sum(one.missing for one in many)),
        "moves_every": moves_every(parts),
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
    least, most = (
        np.array([find(part, axis=0) for part in parts if len(part)]) for find in (np.fmin.reduce, np.fmax.reduce)
    )
    still = np.fmin.reduce(least, axis=0) == np.fmax.reduce(most, axis=0) if len(least) else ()
    if constant := [
        name for name, flat in zip(many[0].channels, still, strict=False) if flat and name not in many[0].differenced
    ]:
        record["constant"] = constant
    if many[0].differenced:
        record["counters"] = list(many[0].differenced)
    return record
