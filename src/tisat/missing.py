"""What is missing: one rule for it, over a whole series and row by row.

Each channel is carried forward for at most ``MAX_GAP`` instants. A row that still lacks a value is unusable, and so is
the span of a jump in time longer than ``MAX_GAP`` sampling periods; a series is cut there into **parts**. Nothing is
ever replaced by 0. :class:`CarryForward` is the same rule for rows that arrive one at a time. This module does not know
detectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tisat.series import Series

Array: TypeAlias = npt.NDArray[np.float64]

MAX_GAP = 10  # instants a missing value is carried forward; beyond it the row is unusable


def carry_forward(values: npt.NDArray[Any]) -> Array:
    """Fill each channel's missing values with its last known one, at most ``MAX_GAP`` instants old.

    Examples
    --------
    >>> carry_forward(np.array([[np.nan], [1.0], [np.nan], [3.0]]))[:, 0].tolist()
    [nan, 1.0, 1.0, 3.0]
    """
    filled = np.array(values, dtype=np.float64)
    known = ~np.isnan(filled)
    if known.all():
        return filled
    rows = np.arange(len(filled))[:, None]
    last = np.maximum.accumulate(np.where(known, rows, -1), axis=0)  # (T, C), row of the last known value
    usable = (last >= 0) & (rows - last <= MAX_GAP)
    return np.where(usable, np.take_along_axis(filled, np.maximum(last, 0), axis=0), np.nan)


def usable_parts(series: Series) -> list[tuple[slice, Array]]:
    """The clean stretches of a series: where they lie, and their values with short gaps filled."""
    filled = carry_forward(series.values)
    usable: npt.NDArray[np.bool_] = np.asarray(~np.isnan(filled).any(axis=1))
    breaks = np.diff(usable.view(np.int8), prepend=np.int8(0)) != 0
    if series.seconds is not None and series.period is not None:
        breaks[1:] |= np.diff(series.seconds) > MAX_GAP * series.period
    edges = np.append(np.flatnonzero(breaks), len(filled))
    return [(slice(int(a), int(b)), filled[a:b]) for a, b in pairwise(edges) if usable[a]]


class CarryForward:
    """:func:`carry_forward` for rows that arrive one at a time.

    Examples
    --------
    >>> carry = CarryForward(1)
    >>> [float(carry(np.array([value]))[0]) for value in (np.nan, 1.0, np.nan, 3.0)]
    [nan, 1.0, 1.0, 3.0]
    """

    def __init__(self, n_channels: int) -> None:
        self._last = np.full(n_channels, np.nan)
        self._age = np.zeros(n_channels, dtype=np.int64)  # instants since the last known value

    def __call__(self, row: Array) -> Array:
        """The row ``(C,)`` with what is missing filled in as far as it may be; NaN stays where it may not."""
        missing = np.isnan(row)
        if not missing.any():
            self._last[:] = row
            self._age[:] = 0
            return row
        self._age[missing] += 1
        self._age[~missing] = 0
        self._last[~missing] = row[~missing]
        filled = self._last.copy()
        filled[self._age > MAX_GAP] = np.nan
        return filled

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything needed to go on after a restart."""
        return {"last": self._last.copy(), "age": self._age.copy()}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from ``state``."""
        self._last[:] = state["last"]
        self._age[:] = state["age"]
