"""What a view is: normal rows in, then for each row and channel a share of how far it is from normal.

A view looks at rows that are scaled by their training range and cut off (:mod:`tisat.detectors.prism.detector` does it), at the
rows it is asked about and the ``context`` rows before each, never at later ones. It answers with contributions
``(n, C)``: their mean over channels is the view's score. Nothing is remembered between calls, so one row alone and
many together get the same answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from tisat.detectors.base import NORMAL_QUANTILE, Array
from tisat.errors import ArtefactError
from tisat.utils.types import AnyArray, Arrays, Integers

BLOCK = 2000  # rows looked at together: their arrays stay near the processor
LEAST_LEVEL = 1e-9  # a view below this never moved in training
RARE, RARE_PEAK = 0.002, 12.0  # the share of rows that is rare, and what a normal channel reaches there


@dataclass(frozen=True)
class Scene:
    """What a view is shown: rows, the rows it is asked about, and the forecast errors at those."""

    rows: Array  # (T, C) scaled, nothing missing
    at: Integers  # (n,) rows, each with the context of every view before it
    errors: Array  # (n, C) row minus its forecast, scaled
    clock: Array | None = None  # (T,) local time of each row in seconds since 1970, NaN where unknown


class View(ABC):
    """Base of the views: ``fit`` on normal scenes, then ``contributions``."""

    name: ClassVar[str]  # as users type it
    kind: ClassVar[str]  # what an alarm it raises is called
    context: ClassVar[int]  # rows before a row it looks at
    reach: ClassVar[float] = 1.0  # normal levels above the median at which it starts to speak
    slow: ClassVar[bool] = False  # True: heard in full only where it is steady on rows the model has not seen
    added: ClassVar[tuple[str, ...]] = ()  # attributes that files of earlier versions do not have: empty there
    momentary: ClassVar[bool] = False  # True: speaks while something happens, not for as long as it lasts
    signed: ClassVar[bool] = False  # True: contributions are the squares of :meth:`deviations`
    learned: ClassVar[Mapping[str, tuple[str, ...]]]  # attribute -> its dimensions; "C" is the number of channels

    @abstractmethod
    def fit(self, scenes: Sequence[Scene]) -> None:
        """Learn what is normal from scenes that ask about all rows of one training part each."""

    def contributions(self, scene: Scene) -> Array:
        """How far each channel is from normal at each row, ``(n, C)``; 1 is the usual size."""
        return self.deviations(scene) ** 2

    def deviations(self, scene: Scene) -> Array:
        """Deviations ``(n, C)`` with a sign, in units of each channel's spread; only where ``signed``."""
        raise NotImplementedError

    def own(self, scenes: Sequence[Scene]) -> Array:
        """Contributions ``(n, C)`` at rows it was fitted on; override where a row would find itself."""
        return together([self.contributions(scene) for scene in scenes])

    def arrays(self) -> Arrays:
        """What was learned."""
        return {name: getattr(self, name) for name in self.learned}

    @staticmethod
    def sizes(n_channels: int) -> dict[str, int]:  # most views have only dimensions that follow from one another
        """Dimensions of :attr:`learned` that a file may not choose."""
        return {}

    def restore(self, arrays: Mapping[str, AnyArray], n_channels: int) -> None:
        """Go on from :meth:`arrays`, which may come from a file: sizes that do not fit are refused."""
        sizes = {"C": n_channels, **self.sizes(n_channels)}
        for name, dimensions in self.learned.items():
            if name in self.added and name not in arrays:
                setattr(self, name, np.zeros([n_channels if one == "C" else 0 for one in dimensions]))
                continue
            array = np.asarray(arrays[name])
            fits = array.dtype == np.float64 and array.ndim == len(dimensions) and bool(np.isfinite(array).all())
            for size, dimension in zip(array.shape, dimensions, strict=False):
                fits = fits and sizes.setdefault(dimension, size) == size
            if not fits:
                raise ArtefactError(f"The view {self.name!r} of a model file must fit together. Its {name!r} does not.")
            setattr(self, name, np.ascontiguousarray(array))


def blocks_of(rows: int) -> list[slice]:
    """The blocks that so many rows are looked at in."""
    return [slice(first, min(first + BLOCK, rows)) for first in range(0, rows, BLOCK)]


def together(parts: Sequence[Array]) -> Array:
    """The rows of all parts; no copy where there is one part."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def gathered(scenes: Sequence[Scene], shape: tuple[int, ...], fill: Callable[[Scene, Array], object]) -> Array:
    """What ``fill`` writes for each scene, one below the other: ``(n, *shape)``, never copied."""
    ends = np.cumsum([0, *(len(scene.at) for scene in scenes)])
    out = np.empty((int(ends[-1]), *shape))
    for scene, (first, last) in zip(scenes, pairwise(ends.tolist()), strict=True):
        fill(scene, out[first:last])
    return out


def moments(parts: Sequence[Array]) -> tuple[Array, Array]:
    """Mean ``(C,)`` and covariance ``(C, C)`` of the rows of all parts ``(T_i, C)``; no copy of them is made.

    Examples
    --------
    >>> mean, covariance = moments([np.array([[1.0, 0.0]]), np.array([[3.0, 2.0]])])
    >>> mean.tolist(), covariance.tolist()
    ([2.0, 1.0], [[1.0, 1.0], [1.0, 1.0]])
    """
    count = sum(map(len, parts))
    mean = np.sum([part.sum(axis=0) for part in parts], axis=0) / count
    products = np.zeros((len(mean), len(mean)))
    for part in parts:
        for some in blocks_of(len(part)):
            centred = part[some] - mean
            products += centred.T @ centred
    return mean, products / count


def variances(parts: Sequence[Array]) -> tuple[Array, Array]:
    """Mean and variance ``(C,)`` of the rows of all parts ``(T_i, C)``; no copy of them is made."""
    count = sum(map(len, parts))
    mean = np.sum([part.sum(axis=0) for part in parts], axis=0) / count
    squares = np.zeros(len(mean))
    for part in parts:
        for some in blocks_of(len(part)):
            centred = part[some] - mean
            squares += np.einsum("nc,nc->c", centred, centred)
    return mean, squares / count


def thinned(scenes: Sequence[Scene], most: int) -> list[Scene]:
    """The same scenes asking about ``most`` rows or a little more, evenly spread."""
    step = max(1, sum(len(scene.at) for scene in scenes) // most)
    # Contiguous: for strided arrays each loop would be compiled once more.
    some = [(np.ascontiguousarray(scene.at[::step]), np.ascontiguousarray(scene.errors[::step])) for scene in scenes]
    return [Scene(scene.rows, *both, scene.clock) for scene, both in zip(scenes, some, strict=True)]


def level_of(view: View, own: Array) -> tuple[float, float]:
    """Median and level of a view's own scores; where rare jumps are all there is, the mean is the larger unit."""
    scores = own.mean(axis=1)
    if len(scores) == 0:
        return 0.0, 1.0
    median = float(np.median(scores))
    level = max(float(np.quantile(scores, NORMAL_QUANTILE)), float(scores.mean()))
    height = view.reach * (level - median)
    return median, median + (height if height > LEAST_LEVEL else 1.0)


def rare_unit(contributions: Array, *, own: bool = False) -> Array:
    """Unit ``(C,)`` of channels whose normal contributions ``(n, C)`` have rare peaks far above their usual size of 1.

    A valve that moves once a day is normal each time. What such a channel says is divided until its normal peaks are those
    of a channel that moves at random (squares of normal numbers: about 12 once in 500); others keep the unit 1. ``own``: the
    array may be put in another order.

    Examples
    --------
    >>> rare_unit(np.append(np.ones(498), [600.0, 600.0])[:, None]).round(1).tolist()
    [50.0]
    """
    most = min(max(2, round(RARE * len(contributions))), len(contributions))
    ordered = contributions if own else contributions.copy()
    ordered.partition(-most, axis=0)
    peaks = ordered[-most:].mean(axis=0)
    return np.asarray(np.maximum(peaks / RARE_PEAK, 1.0))
