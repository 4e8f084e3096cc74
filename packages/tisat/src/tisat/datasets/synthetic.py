"""A small plant, made to measure: coupled channels with cycles, set-points, lags and load, and labelled faults.

A hidden **load** drives everything: a daily and a weekly cycle, a set-point that an operator moves now and then, and
slow wander. Each channel answers the load with its own lag and inertia, through its own curve, rising or falling, with a
short cycle of its own and noise that grows with the load; some pairs are tied (what one pump gives, the next receives). Faults are of named kinds, act on
named channels, and leave the rest of the plant alone.

:func:`inject_faults` puts the same kinds of fault into a series of your own: what would a detector make of them *here*?

Everything follows from one seed. This module does not know detectors or metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.signal import lfilter

from tisat.datasets.injected_faults import DAY as DAY
from tisat.datasets.injected_faults import KINDS as KINDS
from tisat.datasets.injected_faults import WEEK as WEEK
from tisat.datasets.injected_faults import Fault as Fault
from tisat.datasets.injected_faults import Plant as Plant
from tisat.datasets.pump import PUMP_FAULTS as PUMP_FAULTS
from tisat.datasets.pump import make_pump as make_pump
from tisat.errors import ParameterError
from tisat.events import labels_from_events
from tisat.series import Series, SeriesLike, as_series
from tisat.utils.random import Seed, generator
from tisat.utils.types import Array
from tisat.utils.validation import check_integer, check_real

__all__ = [
    "DAY", "KINDS", "PUMP_FAULTS", "WEEK", "Fault", "Plant", "inject_faults", "make_plant", "make_pump",
]  # fmt: skip

SHORTEST_STRETCH = 30  # rows a fault needs around it
SET_POINT_EVERY = 900  # rows between an operator's moves, on average


# ---------------------------------------------------------------------------------------------- the normal plant


def _smooth(noise: Array, memory: float) -> Array:
    """A first-order low-pass of ``noise`` with a time constant of ``memory`` rows, at unit spread."""
    keep = np.exp(-1.0 / memory)
    shaped: Array = lfilter([np.sqrt(1 - keep**2)], [1.0, -keep], noise, axis=0)
    return shaped


def _load(length: int, rng: np.random.Generator) -> Array:
    """The hidden load ``(T,)``, between about 0 and 1.5."""
    time = np.arange(length) + rng.integers(WEEK)
    day = 0.5 - 0.5 * np.cos(2 * np.pi * time / DAY)
    weekday = np.where((time // DAY) % 7 < 5, 1.0, 0.6)
    moves = rng.random(length) < 1.0 / SET_POINT_EVERY
    levels = rng.uniform(0.8, 1.2, size=int(moves.sum()) + 1)
    set_point = lfilter([0.05], [1.0, -0.95], levels[np.cumsum(moves)], zi=[0.95 * levels[0]])[0]
    wander = 0.05 * _smooth(rng.standard_normal(length), 300.0)
    return np.asarray((0.3 + 0.7 * day * weekday) * set_point + wander)


def _respond(load: Array, rng: np.random.Generator) -> tuple[Array, float]:
    """One channel's answer to the load, and its noise level: gain, lag, inertia, a curve, noise that grows with load."""
    lag = int(rng.integers(0, 30))
    inertia = rng.uniform(2.0, 40.0)
    delayed = np.concatenate([np.full(lag, load[0]), load[: len(load) - lag]])
    keep = np.exp(-1.0 / inertia)
    followed = lfilter([1 - keep], [1.0, -keep], delayed, zi=[keep * delayed[0]])[0]
    curved = np.clip(followed, 0.0, None) ** rng.uniform(0.6, 1.8)
    if rng.random() < 0.3:  # a valve that closes as the load rises
        curved = 1.5 - curved
    period = rng.uniform(25.0, 120.0)  # a machine's own cycle: a compressor, a filter wash
    curved = curved + rng.uniform(0.0, 0.06) * np.sin(2 * np.pi * np.arange(len(load)) / period)
    noise = rng.uniform(0.01, 0.03)
    jitter = noise * (0.5 + load) * _smooth(rng.standard_normal(len(load)), rng.uniform(0.5, 3.0))
    return curved + jitter, noise


def _normal(length: int, channels: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Values ``(T, C)`` of a healthy plant, and each channel's noise level ``(C,)``."""
    load = _load(length, rng)
    values = np.empty((length, channels))
    noise = np.empty(channels)
    for c in range(channels):
        if c % 3 == 2:  # tied to its two neighbours: what one gives and the other holds back
            values[:, c] = 0.6 * values[:, c - 1] + 0.4 * values[:, c - 2]
            noise[c] = rng.uniform(0.005, 0.015)
            values[:, c] += noise[c] * _smooth(rng.standard_normal(length), 1.0)
        else:
            values[:, c], noise[c] = _respond(load, rng)
    return values, noise


# ---------------------------------------------------------------------------------------------- the plant


def _place(n: int, length: int, lengths: Sequence[int], rng: np.random.Generator) -> list[int]:
    """Starts of ``n`` events spread over the series, at least half a slot of normal rows apart."""
    slot = length // (n + 1)
    if slot < 2 * max(lengths):
        raise ParameterError(
            f"The 'n_test' parameter of make_plant must leave room for its faults: at least {2 * (n + 1) * max(lengths)} "
            f"rows. Got {length} instead."
        )
    return [int((i + 0.75) * slot + rng.integers(slot // 4)) for i in range(n)]


def make_plant(
    *,
    n_train: int = 6000,
    n_test: int = 8000,
    n_channels: int = 8,
    n_faults: int = 7,
    kinds: Sequence[str] = tuple(KINDS),
    size: float = 6.0,
    random_state: Seed = 0,
) -> Plant:
    """A plant with normal training data and labelled faults in its test data.

    Parameters
    ----------
    n_train, n_test : int
        Rows, one a minute; the test follows the training data.
    n_channels : int
        Number of channels.
    n_faults : int
        How many events; their kinds are taken from ``kinds`` in turn.
    kinds : sequence of str
        Among ``KINDS``: spike, level shift, slow drift, stuck sensor, broken correlation, changed frequency, contextual.
    size : float
        How large a fault is, in units of the channel's normal minute-to-minute spread (a spike is 4 times that).
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    Plant
        Training series, test series and faults.

    Examples
    --------
    >>> plant = make_plant(random_state=3)
    >>> plant.test
    Series('plant', 8000 rows x 8 channels, 7 events)
    >>> plant.faults[0].kind, plant.faults[0].channels
    ('spike', (0,))
    """
    caller = "make_plant"
    check_integer(n_train, "n_train", caller, minimum=2)
    check_integer(n_test, "n_test", caller, minimum=2)
    check_integer(n_channels, "n_channels", caller, minimum=1)
    check_integer(n_faults, "n_faults", caller, minimum=0)
    check_real(size, "size", caller, above=0.0)
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or (n_faults and not kinds):
        raise ParameterError(
            f"The 'kinds' parameter of {caller} must be among {', '.join(KINDS)}. Got {kinds!r} instead."
        )
    rng = generator(random_state, whose=caller)
    values, noise = _normal(n_train + n_test, n_channels, rng)
    healthy, test = values[n_train:], values[n_train:].copy()

    fault_kinds = [kinds[i % len(kinds)] for i in range(n_faults)]
    lengths = [int(rng.integers(*KINDS[kind][1], endpoint=True)) for kind in fault_kinds]
    starts = _place(n_faults, n_test, lengths, rng) if n_faults else []
    faults = []
    for kind, start, span in zip(fault_kinds, starts, lengths, strict=True):
        make = KINDS[kind][0]
        n_hit = 1 if n_channels == 1 else int(rng.integers(1, max(2, n_channels // 3), endpoint=True))
        hit = tuple(sorted(int(c) for c in rng.choice(n_channels, size=n_hit, replace=False)))
        for c in hit:
            amount = size * noise[c] * (4.0 if kind == "spike" else 1.0)
            test[start : start + span, c] = make(test[start : start + span, c], healthy[:, c], start, amount, rng)
        faults.append(Fault(kind, start, start + span, hit))

    minutes = np.datetime64("2026-01-05T00:00:00", "ns") + np.arange(n_train + n_test) * np.timedelta64(60, "s")
    names = tuple(f"{'flow' if c % 3 == 2 else ('pressure', 'power')[c % 2]}-{c}" for c in range(n_channels))
    labels = labels_from_events([(fault.start, fault.stop) for fault in faults], length=n_test)
    return Plant(
        train=Series(values[:n_train], timestamps=minutes[:n_train], channels=names, name="plant"),
        test=Series(test, timestamps=minutes[n_train:], channels=names, labels=labels, name="plant"),
        faults=tuple(faults),
    )


# ---------------------------------------------------------------------------------------------- faults in one's own series


def inject_faults(
    series: SeriesLike,
    *,
    n_faults: int = 1,
    kinds: Sequence[str] = tuple(KINDS),
    size: tuple[float, float] = (1.0, 6.0),
    random_state: Seed = 0,
) -> tuple[Series, tuple[Fault, ...]]:
    """A normal series with faults in it, and labels: a test set where there are no labels.

    Choices can be made on it without looking at any test split. It says how a detector does on *these* kinds of fault, not
    on those that will come.

    Parameters
    ----------
    series : Series, array, dataframe or file path
        Normal, without missing values; its labels, if any, are not read.
    n_faults : int
        One in each of as many equal stretches, never in the first quarter of a stretch, at most a third of it long.
    kinds : sequence of str
        Taken in turn, from a random one on; among ``KINDS``.
    size : pair of float
        Smallest and largest size in units of a channel's standard deviation (a spike is twice that), drawn for each fault,
        evenly in the logarithm. A channel that never moves has 0.3 of its level, at least 0.3, for its deviation.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    tuple[Series, tuple[Fault, ...]]
        The series with labels, and the faults.

    Examples
    --------
    >>> wave = Series(np.sin(np.arange(2000) / 9)[:, None])
    >>> faulty, faults = inject_faults(wave, n_faults=2, kinds=["level shift"])
    >>> faulty, [fault.kind for fault in faults]
    (Series(2000 rows x 1 channel, 2 events), ['level shift', 'level shift'])
    """
    caller = "inject_faults"
    check_integer(n_faults, "n_faults", caller, minimum=1)
    small, large = (check_real(one, "size", caller, above=0.0) for one in size)
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise ParameterError(
            f"The 'kinds' parameter of {caller} must be among {', '.join(KINDS)}. Got {kinds!r} instead."
        )
    checked = as_series(series, whose=caller)
    healthy = np.array(checked.values, dtype=np.float64)
    length, n_channels = healthy.shape
    stretch = length // n_faults
    if stretch < SHORTEST_STRETCH or np.isnan(healthy).any():
        raise ParameterError(
            f"The series given to {caller} must have {SHORTEST_STRETCH} rows a fault and no missing values. "
            f"Got {length} rows for {n_faults} faults, {int(np.isnan(healthy).sum())} values missing."
        )
    rng = generator(random_state, whose=caller)
    spread = healthy.std(axis=0)
    moving = np.flatnonzero(spread > 0) if (spread > 0).any() else np.arange(n_channels)
    unit = np.where(spread > 0, spread, 0.3 * np.maximum(np.abs(healthy[0]), 1.0))
    values, faults = healthy.copy(), []
    turn = int(rng.integers(len(kinds)))
    for number in range(n_faults):
        kind = kinds[(turn + number) % len(kinds)]
        make, (short, long) = KINDS[kind]
        span = int(min(np.exp(rng.uniform(np.log(short), np.log(long))), stretch // 3))
        start = number * stretch + stretch // 4 + int(rng.integers(stretch - stretch // 4 - span))
        n_hit = int(rng.integers(1, max(1, len(moving) // 3), endpoint=True))
        hit = tuple(sorted(int(c) for c in rng.choice(moving, size=n_hit, replace=False)))
        amount = float(np.exp(rng.uniform(np.log(small), np.log(large)))) * (2.0 if kind == "spike" else 1.0)
        for c in hit:
            rows = values[start : start + span, c]
            values[start : start + span, c] = make(rows, healthy[:, c], start, amount * unit[c], rng)
        # A stuck sensor that stood still is no fault.
        if (values[start : start + span] != healthy[start : start + span]).any():
            faults.append(Fault(kind, start, start + span, hit))
    labels = labels_from_events([(fault.start, fault.stop) for fault in faults], length=length)
    faulty = replace(checked, values=values, labels=labels)
    return faulty, tuple(faults)
