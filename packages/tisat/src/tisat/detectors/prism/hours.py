"""How loud each view usually is at each hour of the day: a service that is quiet at night is measured by its nights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism import VIEWS
from tisat.detectors.prism.switches import DAY
from tisat.detectors.prism.view import Scene
from tisat.errors import ArtefactError
from tisat.utils.compiled import compiled
from tisat.utils.types import AnyArray, Arrays, Integers

HOURS = 24
LOUDEST = 10  # one in so many rows of an hour makes its level
FEWEST_ROWS, FEWEST_DAYS = 40, 7  # of an hour, and of the series
LIKE = 0.7  # correlation of even and odd days from which on an hour's level is believed
FARTHEST = 50.0  # times louder or quieter than the whole day
NAME = "hours"  # in files


def hours_of(clock: Array) -> Integers:
    """The hour of the day ``(n,)`` of local times in seconds since 1970; 24: unknown."""
    known = ~np.isnan(clock)
    return np.where(known, np.where(known, clock, 0.0) % DAY // 3600.0, HOURS).astype(np.int64)


@compiled()
def multiply(values: Array, factors: Array) -> None:  # pragma: no cover - compiled
    """Multiply values ``(V, C)`` in place."""
    for v in range(len(values)):
        for c in range(values.shape[1]):
            values[v, c] *= factors[v, c]


class Hours:
    """The contributions of each channel to each view in units of how loud they usually are at this hour."""

    def __init__(self, units: Array) -> None:
        self.units = units  # (25, V, C); the last for rows without a time

    @classmethod
    def learned(cls, few: Sequence[Scene], own: Sequence[Array]) -> Hours | None:
        """From the contributions ``(n, C)`` of each view at the rows of ``few``; None where hours are alike or unknown."""
        if any(scene.clock is None for scene in few):
            return None
        clock = np.concatenate([scene.clock[scene.at] for scene in few if scene.clock is not None])
        if np.isnan(clock).any() or not len(clock) or np.ptp(clock) < FEWEST_DAYS * DAY:
            return None
        hours, odd = hours_of(clock), clock // DAY % 2 == 1
        if np.bincount(hours, minlength=HOURS).min() < FEWEST_ROWS:
            return None
        units = np.ones((HOURS + 1, len(VIEWS), own[0].shape[1]))
        for v, one in enumerate(own):
            if len(one) == len(clock):
                whole, first, second = (_levels(one[some], hours[some]) for some in (odd | True, odd, ~odd))
                units[:HOURS, v] = np.where(_alike(first, second) >= LIKE, np.exp(whole), 1.0)
        return cls(units) if (units != 1.0).any() else None

    def at(self, scene: Scene) -> Array:
        """The units ``(n, V, C)`` of the rows of a scene."""
        return self.units[np.full(len(scene.at), HOURS) if scene.clock is None else hours_of(scene.clock[scene.at])]

    def divided(self, scenes: Sequence[Scene], own: Sequence[Array]) -> list[Array]:
        """The contributions ``(n, C)`` of each view at the rows of scenes, in these units."""
        units = np.concatenate([self.at(scene) for scene in scenes])
        return [one / units[:, v] if len(one) == len(units) else one for v, one in enumerate(own)]

    def arrays(self) -> Arrays:
        """What was learned."""
        return {f"{NAME}.units": self.units}

    @classmethod
    def restored(cls, tensors: Mapping[str, AnyArray], n_channels: int) -> Hours | None:
        """From arrays that may come from a file; None where there are none, refused where they do not fit."""
        if f"{NAME}.units" not in tensors:
            return None
        units = np.asarray(tensors[f"{NAME}.units"])
        good = units.dtype == np.float64 and units.shape == (HOURS + 1, len(VIEWS), n_channels)
        if not good or not bool(((units >= 1 / FARTHEST - 1e-9) & (units <= FARTHEST + 1e-9)).all()):
            raise ArtefactError(
                f"The units of the hours of a model file must be 1/{FARTHEST:g} to {FARTHEST:g}. They are not."
            )
        return cls(units)


def _levels(contributions: Array, hours: Integers) -> Array:
    """Logarithm of the level of each hour over that of all ``(24, C)``, smoothed over neighbouring hours."""
    level = np.log([_level(contributions[hours == hour]) for hour in range(HOURS)]) - np.log(_level(contributions))
    level = 0.5 * level + 0.25 * (np.roll(level, 1, axis=0) + np.roll(level, -1, axis=0))
    return np.asarray(np.clip(level, -np.log(FARTHEST), np.log(FARTHEST)))


def _level(contributions: Array) -> Array:
    most = max(len(contributions) // LOUDEST, 1)
    return np.asarray(np.sort(contributions, axis=0)[-most:].mean(axis=0) + 1e-9)


def _alike(first: Array, second: Array) -> Array:
    """Correlation over hours ``(C,)``."""
    a, b = first - first.mean(axis=0), second - second.mean(axis=0)
    return np.asarray((a * b).sum(axis=0) / np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0) + 1e-18))
