"""Faults of named kinds: what each does to the rows of one channel, and the record of where it was put.

This module does not know plants, pumps or where faults go; :mod:`tisat.datasets.synthetic` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tisat.series import Series
from tisat.utils.types import Array

DAY = 1440  # rows: one a minute
WEEK = 7 * DAY


@dataclass(frozen=True)
class Fault:
    """One labelled event: what happened, when, and to which channels.

    Examples
    --------
    >>> from tisat.datasets.synthetic import make_plant
    >>> make_plant(random_state=0).faults[0].kind
    'spike'
    """

    kind: str  # one of KINDS, or of PUMP_FAULTS
    start: int  # first affected row
    stop: int  # first row after it
    channels: tuple[int, ...]  # the faulty channels


@dataclass(frozen=True)
class Plant:
    """A generated plant: normal training data, test data with faults, and what the faults were.

    Attributes
    ----------
    train : Series
        Normal.
    test : Series
        Continues the same plant, with faults; labelled.
    faults : tuple of Fault
        In order of time.

    Examples
    --------
    >>> from tisat.datasets.synthetic import make_plant
    >>> len(make_plant(random_state=0).faults)
    7
    """

    train: Series
    test: Series
    faults: tuple[Fault, ...]


# Each takes the values of the event's rows and one channel (T_e,), that channel over the whole series, where the event
# starts, a size in units of the channel's spread, and a generator; it returns the faulty rows.


def _sign(rng: np.random.Generator) -> float:
    return float(rng.choice([-1.0, 1.0]))


Maker: TypeAlias = Callable[[Array, Array, int, float, np.random.Generator], Array]


def _spike(rows: Array, whole: Array, start: int, size: float, rng: np.random.Generator) -> Array:
    return rows + size * np.exp(-np.arange(len(rows)) / 2.0) * _sign(rng)


def _level_shift(rows: Array, whole: Array, start: int, size: float, rng: np.random.Generator) -> Array:
    return rows + size * _sign(rng)


def _drift(rows: Array, whole: Array, start: int, size: float, rng: np.random.Generator) -> Array:
    return rows + size * _sign(rng) * np.linspace(0.0, 1.5, len(rows))


def _stuck(rows: Array, whole: Array, start: int, size: float, rng: np.random.Generator) -> Array:
    return np.full(len(rows), rows[0])


def _broken_correlation(rows: Array, whole: Array, start: int, size: float, rng: np.random.Generator) -> Array:
    """The channel replays its own past from another time of day: plausible alone, wrong beside the others."""
    elsewhere = (start + DAY // 2) % (len(whole) - len(rows))
    if abs(elsewhere - start) < len(rows):  # never replay the very rows it replaces
        elsewhere = (elsewhere + DAY // 3) % (len(whole) - len(rows))
    return whole[elsewhere : elsewhere + len(rows)]


def _changed_frequency(rows: Array, whole: Array, start: int, size: float, rng: np.random.Generator) -> Array:
    wave: Array = 0.5 * size * np.sin(2 * np.pi * np.arange(len(rows)) / rng.uniform(6.0, 12.0))
    return rows + wave


def _contextual(rows: Array, whole: Array, start: int, size: float, rng: np.random.Generator) -> Array:
    """A value that is ordinary at another load: the channel is pulled to the opposite end of its own range."""
    low, high = np.quantile(whole, [0.1, 0.9])
    goal = float(high if rows[0] < (low + high) / 2 else low)
    return 0.3 * rows + 0.7 * goal


KINDS: dict[str, tuple[Maker, tuple[int, int]]] = {  # kind -> how it is made, shortest and longest length in rows
    "spike": (_spike, (3, 8)),
    "level shift": (_level_shift, (60, 240)),
    "slow drift": (_drift, (200, 400)),
    "stuck sensor": (_stuck, (120, 360)),
    "broken correlation": (_broken_correlation, (90, 300)),
    "changed frequency": (_changed_frequency, (90, 240)),
    "contextual": (_contextual, (40, 120)),
}
