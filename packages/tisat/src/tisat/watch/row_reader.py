"""A row as users hold it, read into numbers in the model's order: by position, or by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tisat.errors import InputError, SeriesError
from tisat.io.columns import listed
from tisat.io.missing_values import is_word
from tisat.io.validate import plain_array
from tisat.utils.near_names import meant
from tisat.watch.protocols import Array


class RowReader:
    """Read rows for a model with these channels.

    Parameters
    ----------
    channels : sequence of str
        In the order of the model.
    missing : sequence of str
        Words that stand for a missing value, in any case.

    Examples
    --------
    >>> RowReader(("cpu", "disk"))({"disk": 2}).tolist()
    [nan, 2.0]
    >>> RowReader(("cpu", "disk"), missing=["Bad Input"])({"cpu": "bad input", "disk": 2}).tolist()
    [nan, 2.0]
    """

    def __init__(self, channels: Sequence[str], *, missing: Sequence[str] = ()) -> None:
        self._missing = tuple(missing)
        self._channels = tuple(channels)
        self._index = {channel: c for c, channel in enumerate(self._channels)}

    def __call__(self, row: object) -> Array:
        """A row as ``(C,)`` floats; an error where it cannot be one, and nothing has changed."""
        if isinstance(row, Mapping):
            values = np.full(len(self._channels), np.nan)
            for channel, value in row.items():
                if channel not in self._index:
                    raise SeriesError(
                        f"The row must have channels among {listed(self._channels)}. Got {channel!r} instead.{meant(str(channel), self._channels)}"
                    )
                values[self._index[channel]] = self._number(value, channel)
        else:
            values = self._positional(row)
        if not math.isfinite(np.add.reduce(values)) and np.isinf(values).any():  # a finite sum has no infinity in it
            channel = int(np.argmax(np.isinf(values)))
            raise SeriesError(
                f"The row must be finite or NaN (missing). Got {values[channel]} in channel {self._channels[channel]!r} instead."
            )
        return values

    def _positional(self, row: Any) -> Array:
        if isinstance(row, np.ma.MaskedArray):
            row = np.ma.filled(row.astype(np.float64), np.nan)
        try:
            if self._missing and isinstance(row, list | tuple):
                row = [math.nan if self._is_missing(value) else value for value in row]
            values = plain_array(row) if hasattr(row, "detach") else np.asarray(row)
            if values.dtype != np.float64:
                if values.dtype.kind not in "biufO":
                    raise TypeError
                numbers = (
                    [self._number(value, str(c)) for c, value in enumerate(row)] if values.dtype.kind == "O" else values
                )
                values = np.array(numbers, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            raise SeriesError(f"The row must be {len(self._channels)} numbers. Got {str(row)[:80]} instead.") from None
        if values.shape != (len(self._channels),):
            raise SeriesError(
                f"The row must have the {len(self._channels)} channels the detector was fitted on. Got shape {values.shape} instead."
            )
        return values

    def _is_missing(self, value: object) -> bool:
        return isinstance(value, str) and is_word(value, self._missing)

    def _number(self, value: Any, channel: str) -> float:
        if value is None or self._is_missing(value):
            return math.nan
        try:
            if isinstance(value, str | bytes | bool | complex) or not hasattr(value, "__float__"):
                raise TypeError
            return float(value)
        except (OverflowError, TypeError, ValueError):
            raise SeriesError(
                f"The value of channel {channel!r} must be a number. Got {str(value)[:40]!r} instead."
            ) from None
