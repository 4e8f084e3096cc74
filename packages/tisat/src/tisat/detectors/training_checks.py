"""Checks of training data."""

from __future__ import annotations

import numpy as np

from tisat.errors import SeriesError
from tisat.series import ManySeries, Series, as_many

SMALLEST = 1e-150  # of a channel's largest value: its square is not lost


def check_training(series: ManySeries, whose: str) -> list[Series]:
    """Read the series given to ``fit``, with the channels of the first in their order; refused where one cannot be learned from."""
    many = as_many(series, whose=f"{whose}.fit")
    first = many[0].channels
    for number, one in enumerate(many):
        try:
            many[number] = one.in_order(first, whose=f"{whose}.fit")
        except SeriesError as error:
            raise SeriesError(
                f"All series given to {whose}.fit must have the same channels. {one.name!r} differs. {error}"
            ) from None
    empty = np.all([np.isnan(one.values).all(axis=0) for one in many], axis=0)
    if empty.any():
        raise SeriesError(
            f"Every channel given to {whose}.fit must have values. Channel {many[0].channels[int(np.argmax(empty))]!r} has none."
        )
    largest = np.max([np.nanmax(np.abs(one.values), axis=0, initial=0.0) for one in many], axis=0)
    tiny = (largest > 0) & (largest < SMALLEST)
    if tiny.any():
        raise SeriesError(
            f"Every channel given to {whose}.fit must have values of a size that can be squared. Channel "
            f"{many[0].channels[int(np.argmax(tiny))]!r} has none above {SMALLEST:g}; give it in smaller units."
        )
    return many
