"""The neighbour view: the last rows resemble nothing seen in training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism.view import Scene, View
from tisat.utils.neighbors import nearest
from tisat.utils.types import Integers

ROWS = 20  # of a window
COMPONENTS = 30  # principal components windows are compared in
WIDE = 1000  # numbers of a window beyond which directions are found without the matrix of their products
SPARE, STEPS = 10, 6  # directions beyond those wanted, and products with that matrix, to find them
STORED = 4000  # normal windows
LEARNED_FROM = 4000  # windows the components are computed from
APART = 100  # rows either side that a training window may not find a neighbour in
BLOCK = 1000  # windows laid out at a time
FEW = 32  # fewer are searched one by one


def _windows(rows: Array, at: Integers) -> Array:
    """The windows that end at each row, flattened ``(n, ROWS * C)``, oldest row first."""
    flat: Array = rows[at[:, None] + np.arange(1 - ROWS, 1)].reshape(len(at), ROWS * rows.shape[1])  # also of no row
    return flat


def _spread_out(n: int, most: int) -> Integers:
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def principal(centred: Array, count: int) -> Array:
    """The first ``count`` principal directions ``(D, count)`` of centred rows ``(n, D)``."""
    from scipy.linalg import eigh  # needed to fit, not to score
    from scipy.linalg.blas import dsyrk

    width = centred.shape[1]
    if width <= WIDE:
        square = dsyrk(1.0 / len(centred), centred.T)  # the upper half is all that is needed
        vectors = eigh(square, lower=False, subset_by_index=(max(0, width - count), width - 1))[1]
        return np.ascontiguousarray(vectors[:, ::-1])
    # The square is never made: directions are sought among those a few products with it lead to (block Krylov; Musco and Musco, 2015).
    block = np.random.default_rng(0).normal(size=(width, count + SPARE)).astype(centred.dtype)
    blocks = [np.linalg.qr(block)[0]]
    while len(blocks) < STEPS:
        blocks.append(np.linalg.qr(centred.T @ (centred @ blocks[-1]))[0])
    basis = np.linalg.qr(np.concatenate(blocks, axis=1))[0]
    seen = centred @ basis
    vectors = np.linalg.eigh(seen.T @ seen)[1]
    return np.linalg.qr(np.asarray(basis @ vectors[:, : -count - 1 : -1], dtype=np.float64))[0]


class Neighbour(View):
    """Squared distance of the last 20 rows to the nearest of 4000 normal stretches, split into channels.

    Sees: shapes and combinations of levels that were never seen, in one channel or across all.
    Blind to: a small fault in one of many channels; anything that resembles some normal stretch.
    """

    name = "neighbour"
    kind = "pattern"
    context: ClassVar[int] = ROWS - 1
    momentary: ClassVar[bool] = True
    learned: ClassVar[dict[str, tuple[str, ...]]] = {
        "centre": ("window",), "basis": ("window", "components"), "stored": ("stored", "components"), "when": ("stored",),
        "still": ("C",),
    }  # fmt: skip
    added: ClassVar[tuple[str, ...]] = ("still",)

    centre: Array  # (ROWS * C,)
    basis: Array  # (ROWS * C, COMPONENTS), the direction of most variance first
    stored: Array  # (STORED, COMPONENTS)
    when: Array  # (STORED,) number of each stored window among those of training, parts numbered on with a gap
    still: (
        Array  # (C,) 1 for channels that never moved in training: no component knows them, and their squares are added
    )

    @staticmethod
    def sizes(n_channels: int) -> dict[str, int]:
        """The numbers of a window."""
        return {"window": ROWS * n_channels}

    def _codes(self, rows: Array, at: Integers) -> Array:
        if len(at) < FEW:
            return np.asarray((_windows(rows, at) - self.centre) @ self.basis)
        channels = rows.shape[1]
        codes = np.repeat((-self.centre @ self.basis)[None], len(at), axis=0)
        step = int(at[1] - at[0])
        even = bool((np.diff(at) == step).all()) and step > 0
        for j in range(ROWS):  # a window is never laid out: one product for each of its rows
            back = ROWS - 1 - j
            some = rows[at[0] - back : at[-1] - back + 1 : step] if even else rows[at - back]
            codes += some @ self.basis[j * channels : (j + 1) * channels]
        return codes

    @staticmethod
    def _numbers(scenes: Sequence[Scene]) -> list[Integers]:
        numbers, offset = [], 0
        for scene in scenes:
            numbers.append(scene.at + offset)
            offset += len(scene.rows) + APART
        return numbers

    def fit(self, scenes: Sequence[Scene]) -> None:
        """Learn what is normal."""
        total = sum(len(scene.at) for scene in scenes)
        edges = np.cumsum([0, *(len(scene.at) for scene in scenes)])

        def chosen(most: int) -> list[Integers]:
            picked = _spread_out(total, most)
            return [picked[(picked >= a) & (picked < b)] - a for a, b in pairwise(edges)]

        picks, width = chosen(LEARNED_FROM), ROWS * scenes[0].rows.shape[1]
        # Where windows are wide, single precision tells directions apart, at half the memory and time.
        flat = np.empty((sum(map(len, picks)), width), dtype=np.float64 if width <= WIDE else np.float32)
        ends = np.cumsum([0, *map(len, picks)])
        for scene, chosen_rows, (start, end) in zip(scenes, picks, pairwise(ends), strict=True):
            for first in range(start, end, BLOCK):
                last = min(first + BLOCK, end)
                flat[first:last] = _windows(scene.rows, scene.at[chosen_rows[first - start : last - start]])
        together = [scene.rows for scene in scenes]
        self.still = np.all([(rows == together[0][0]).all(axis=0) for rows in together], axis=0).astype(np.float64)
        self.centre = flat.mean(axis=0, dtype=np.float64)
        flat -= self.centre.astype(flat.dtype)
        self.basis = principal(flat, COMPONENTS)
        picks = chosen(STORED)
        self.stored = np.concatenate(
            [self._codes(scene.rows, scene.at[chosen_rows]) for scene, chosen_rows in zip(scenes, picks, strict=True)]
        )
        numbers = self._numbers(scenes)
        self.when = np.concatenate([one[chosen_rows] for one, chosen_rows in zip(numbers, picks, strict=True)]).astype(
            np.float64
        )

    def _split(self, codes: Array, found: Integers, channels: int) -> Array:
        """The squared difference to the neighbour found, by channel ``(n, C)``."""
        out = np.empty((len(codes), channels))
        for start in range(0, len(codes), BLOCK):
            block = slice(start, start + BLOCK)
            back = (codes[block] - self.stored[found[block]]) @ self.basis.T
            back *= back
            np.sum(back.reshape(len(back), ROWS, channels), axis=1, out=out[block])
        return out

    def contributions(self, scene: Scene) -> Array:
        """How far each channel is from normal ``(n, C)``."""
        codes = self._codes(scene.rows, scene.at)
        found = nearest(codes, self.stored, k=1)[1][:, 0]
        out = self._split(codes, found, scene.rows.shape[1])
        for c in np.flatnonzero(self.still):
            for back in range(ROWS):
                out[:, c] += (scene.rows[scene.at - back, c] - self.centre[c]) ** 2
        return out

    def own(self, scenes: Sequence[Scene]) -> Array:
        """Of training rows, which must not find themselves."""
        parts = []
        for scene, numbers in zip(scenes, self._numbers(scenes), strict=True):
            codes = self._codes(scene.rows, scene.at)
            apart = min(APART, len(self.when) // 4)
            first = np.searchsorted(self.when, numbers - apart, side="left")
            last = np.searchsorted(self.when, numbers + apart, side="right")
            _, found = nearest(codes, self.stored, k=1, skip=(first, last))
            known = found[:, 0] >= 0
            parts.append(self._split(codes[known], found[known, 0], scene.rows.shape[1]))
        return np.concatenate(parts)
