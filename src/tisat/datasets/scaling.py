"""Scalers that learn from a training series and are plain values: frozen, comparable, saved as JSON.

``fit`` takes one series, the training split; there is no way to update a scaler afterwards, so nothing of the test
split can reach it. Missing values are ignored when fitting and stay missing. A scaler does not know labels, and a
channel it cannot scale (constant, or never seen) is only shifted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from tisat._validation import check_choice, check_real
from tisat.errors import InputError, ParameterError, SeriesError
from tisat.series import Floats, Series, as_series

Vector = npt.NDArray[np.float64]

LEAST_SPREAD = 1e-250  # below it a channel is constant: dividing by less would leave floating point


@dataclass(frozen=True)
class Scaler:
    """``(x - center) / scale``, channel by channel.

    Subclasses say what center and scale are; fit one with ``MinMaxScaler.fit(train)``.
    """

    kind: ClassVar[str] = ""
    channels: tuple[str, ...]  # C names
    center: tuple[float, ...]  # C numbers
    scale: tuple[float, ...]  # C numbers > 0

    def __post_init__(self) -> None:
        if not len(self.channels) == len(self.center) == len(self.scale):
            raise ParameterError(
                f"The 'channels', 'center' and 'scale' parameters of {type(self).__name__} must have the same length. "
                f"Got {len(self.channels)}, {len(self.center)} and {len(self.scale)} instead."
            )
        for value in self.center:
            check_real(value, "center", type(self).__name__)
        for value in self.scale:
            check_real(value, "scale", type(self).__name__, above=0)

    @staticmethod
    def _learn(column: Vector) -> tuple[float, float]:
        """Center and spread of the values of one channel (none of them missing, at least one)."""
        raise NotImplementedError

    @classmethod
    def fit(cls, train: Any) -> Self:
        """A scaler that has seen this series and nothing else.

        Parameters
        ----------
        train : Series, array, dataframe or path
            The training split.
        """
        series = as_series(train, whose=f"{cls.__name__}.fit")
        center, scale = [], []
        for column in series.values.T:
            known = column[~np.isnan(column)].astype(np.float64)
            middle, spread = cls._learn(known) if known.size else (0.0, 0.0)
            center.append(float(middle))
            scale.append(float(spread) if spread > LEAST_SPREAD else 1.0)
        return cls(series.channels, tuple(center), tuple(scale))

    def _same_channels(self, series: Series, verb: str) -> Series:
        if series.channels != self.channels:
            raise SeriesError(
                f"The series given to {type(self).__name__}.{verb} must have the channels of the training split: "
                f"{', '.join(self.channels)}. Got {', '.join(series.channels)} instead."
            )
        return series

    def _apply(self, values: Floats) -> Floats:
        kind = values.dtype
        return np.asarray((values - np.asarray(self.center, kind)) / np.asarray(self.scale, kind))

    def transform(self, series: Any) -> Series:
        """The series on the scale of the training split; values outside of it are kept."""
        given = self._same_channels(as_series(series, whose=f"{type(self).__name__}.transform"), "transform")
        return replace(given, values=self._apply(given.values))

    def inverse(self, series: Any) -> Series:
        """The scaled series on its first scale again."""
        given = self._same_channels(as_series(series, whose=f"{type(self).__name__}.inverse"), "inverse")
        kind = given.values.dtype
        return replace(given, values=given.values * np.asarray(self.scale, kind) + np.asarray(self.center, kind))

    def to_state(self) -> dict[str, Any]:
        """The scaler as JSON can say it; exact, since Python writes floats so that they read back the same."""
        state = {"kind": self.kind, "channels": self.channels, "center": self.center, "scale": self.scale}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in state.items()}


@dataclass(frozen=True)
class MinMaxScaler(Scaler):
    """The training split's minimum becomes 0 and its maximum 1.

    Examples
    --------
    >>> scaler = MinMaxScaler.fit([[1.0], [3.0]])
    >>> scaler.transform([[2.0], [5.0]]).values.ravel().tolist()
    [0.5, 2.0]
    >>> scaler_from_state(scaler.to_state()) == scaler
    True
    """

    kind: ClassVar[str] = "minmax"

    @staticmethod
    def _learn(column: Vector) -> tuple[float, float]:
        return column.min(), column.max() - column.min()


@dataclass(frozen=True)
class StandardScaler(Scaler):
    """Mean 0 and standard deviation 1 on the training split.

    Examples
    --------
    >>> StandardScaler.fit([[1.0], [3.0]]).transform([[2.0], [3.0]]).values.ravel().tolist()
    [0.0, 1.0]
    """

    kind: ClassVar[str] = "standard"

    @staticmethod
    def _learn(column: Vector) -> tuple[float, float]:
        if column.min() == column.max():  # the rounded mean of equal numbers can differ from them
            return column[0], 0.0
        return column.mean(), column.std()


@dataclass(frozen=True)
class RobustScaler(Scaler):
    """Median 0 and interquartile range 1 on the training split, so that a few spikes do not set the scale.

    Examples
    --------
    >>> RobustScaler.fit([[0.0], [1.0], [2.0], [3.0], [4.0]]).transform([[3.0]]).values.item()
    0.5
    """

    kind: ClassVar[str] = "robust"

    @staticmethod
    def _learn(column: Vector) -> tuple[float, float]:
        low, middle, high = np.quantile(column, [0.25, 0.5, 0.75])
        return middle, high - low


SCALERS: dict[str, type[Scaler]] = {scaler.kind: scaler for scaler in (MinMaxScaler, StandardScaler, RobustScaler)}


def scaler_from_state(state: Mapping[str, Any]) -> Scaler:
    """The scaler that ``to_state`` described."""
    kind = check_choice(state.get("kind"), "kind", "scaler_from_state", choices=SCALERS)
    try:
        parts = [tuple(state[key]) for key in ("channels", "center", "scale")]
    except (KeyError, TypeError):
        raise InputError(f"The state of a {kind} scaler must have lists channels, center and scale.") from None
    return SCALERS[kind](*parts)
