"""The relations view: each channel against what the others say it should be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism.view import Scene, View, gathered, rare_unit, thinned
from tisat.utils.compiled import compiled
from tisat.utils.types import Arrays, Integers

SMOOTH = 20  # rows over which a deviation is averaged
PAST = (1, 10, 40)  # the others enter as means over so many rows
RIDGE = 0.01  # penalty, as a share of the mean variance of the inputs
LEAST_SPREAD = 0.01  # of the training range
LEARNED_FROM = 10_000  # rows
FEW = 2000  # rows a variance is taken from


def _filters() -> Array:
    """Weights ``(3, 59)``, newest row last: the mean over SMOOTH rows of each mean over PAST rows."""
    weights = np.zeros((len(PAST), SMOOTH + max(PAST) - 1))
    for k, span in enumerate(PAST):
        both = np.convolve(np.full(SMOOTH, 1.0 / SMOOTH), np.full(span, 1.0 / span))
        weights[k, weights.shape[1] - len(both) :] = both[::-1]
    return weights


FILTERS = _filters()


@compiled()
def filtered(rows: Array, at: Integers, weights: Array, out: Array) -> None:  # pragma: no cover - compiled
    """Each filter over the rows that end at each row: ``out`` (n, K, C)."""
    length = weights.shape[1]
    for i in range(len(at)):
        for k in range(len(weights)):
            total = out[i, k]
            for j in range(length):
                weight, row = weights[k, j], rows[at[i] - length + 1 + j]
                if weight != 0.0:
                    for c in range(rows.shape[1]):
                        total[c] += weight * row[c]


def partners_of(weights: Array, *, most: int = 2) -> tuple[tuple[int, ...], ...]:
    """The channels that tell most of each channel, by the size of their weights ``(K C, C)``; empty where there is one channel.

    Examples
    --------
    >>> partners_of(np.array([[0.0, 1.0, 0.1], [0.9, 0.0, 0.5], [0.2, 0.0, 0.0]]))
    ((1, 2), (0,), (1, 0))
    """
    channels = weights.shape[1]
    weight_sums = np.abs(weights).reshape(-1, channels, channels).sum(axis=0)
    if channels == 1:
        return ()
    order = np.argsort(-weight_sums, axis=0, kind="stable")[:most].T
    return tuple(tuple(int(j) for j in order[c] if weight_sums[j, c] > 0) for c in range(channels))


def regressions(gram: Array, channels: int) -> Array:
    """Weights ``(K * C, C)`` of each channel on the inputs of all others, from one inverse.

    With P the inverse of ``gram`` and S the inputs of channel c, the solution on the others is ``-P[others, S] @ inv(P[S, S])``,
    of which the column of c itself is wanted.
    """
    inverse = np.linalg.inv(gram)
    weights = np.zeros((len(gram), channels))
    for c in range(channels if channels > 1 else 0):
        own = np.arange(c, len(gram), channels)
        weights[:, c] = -inverse[:, own] @ np.linalg.inv(inverse[np.ix_(own, own)])[:, 0]
        weights[own, c] = 0.0
    return weights


def relations_at_once(learned: Arrays, row: Array, expected: Array) -> Array:
    """What the other channels say of a row ``(C,)``, where that is farther from it than what they said of the mean over rows.

    A step is not yet in the mean. Values that are missing leave the expectation as it is.
    """
    gains = learned["weights"].reshape(len(PAST), len(row), len(row)).sum(axis=0)
    now = row @ gains + learned["intercepts"] + learned["usual"]
    further = ((row - now) * (row - expected) > 0.0) & (np.abs(row - now) > np.abs(row - expected))
    return np.asarray(np.where(further, now, expected))


class Relations(View):
    """Squared deviation, averaged over 20 rows, of each channel from a ridge regression on all the others.

    With one channel there are no others: the regression is the channel's mean, and this is a view of its level.

    Sees: a level, a drift or a replay in one channel that the others do not share.
    Blind to: what all channels do together; a fault shorter than a few rows.
    """

    name = "relations"
    kind = "broken correlation"
    context: ClassVar[int] = SMOOTH + max(PAST) - 2
    reach: ClassVar[float] = 2.0
    slow: ClassVar[bool] = True
    signed: ClassVar[bool] = True
    learned: ClassVar[dict[str, tuple[str, ...]]] = {
        "weights": ("inputs", "C"), "intercepts": ("C",), "usual": ("C",), "spread": ("C",), "wider": ("C", "C"),
        "limits": ("C",),
    }  # fmt: skip
    added: ClassVar[tuple[str, ...]] = ("limits",)

    weights: Array  # (K * C, C), 0 where a channel would look at itself
    intercepts: Array  # (C,)
    usual: Array  # (C,) mean deviation in training
    spread: Array  # (C,)
    wider: Array  # (C, C): [c, j] is by how much the variance of j's deviation grows while c is filled, as a share
    limits: Array  # (C,) largest normal mean deviation over 40 rows, in spreads; 0: unknown

    @staticmethod
    def sizes(n_channels: int) -> dict[str, int]:
        """The weights belong to the means of each channel."""
        return {"inputs": len(PAST) * n_channels}

    def _inputs(self, scene: Scene, out: Array | None = None) -> Array:
        shape = (len(scene.at), len(PAST), scene.rows.shape[1])
        out = np.empty(shape) if out is None else out.reshape(shape)
        out[...] = 0.0
        filtered(scene.rows, scene.at, FILTERS, out)
        return out.reshape(len(out), -1)

    def fit(self, scenes: Sequence[Scene]) -> None:
        """Learn what is normal."""
        channels = scenes[0].rows.shape[1]
        inputs = gathered(thinned(scenes, LEARNED_FROM), (len(PAST) * channels,), self._inputs)
        targets = inputs[:, :channels]  # PAST starts with 1: the smoothed channels themselves
        mean = inputs.mean(axis=0)
        centred = inputs - mean
        products = centred.T @ centred / len(centred)
        penalty = RIDGE * np.trace(products) / len(products) + 1e-9
        self.weights = regressions(products + penalty * np.eye(len(products)), channels)
        self.intercepts = mean[:channels] - mean @ self.weights
        deviations = targets - inputs @ self.weights - self.intercepts
        self.usual = deviations.mean(axis=0)
        self.spread = np.maximum(deviations.std(axis=0), LEAST_SPREAD)
        self.spread *= np.sqrt(rare_unit(((deviations - self.usual) / self.spread) ** 2))
        self.limits = np.zeros(channels)

    def learn_without(self, scenes: Sequence[Scene], fills: Array) -> None:
        """Learn how much less the others know of each other while one channel is filled from them.

        ``fills`` (C, C) are the weights of the filling, row c for channel c, 0 for itself. Deviations and filling are linear, so
        that the deviation of j without c is its deviation with c plus the error of the filling, as far as j looks at c.
        """
        channels = len(self.usual)
        inputs = gathered(thinned(scenes, FEW), (len(PAST) * channels,), self._inputs)
        deviations = inputs[:, :channels] - inputs @ self.weights
        deviations -= deviations.mean(axis=0)
        variance = deviations.var(axis=0) + LEAST_SPREAD**2
        past = inputs.reshape(len(inputs), len(PAST), channels)
        errors = past - past @ fills.T  # (n, K, C): of the filling of each channel
        errors -= errors.mean(axis=0)
        partner_weights = self.weights.reshape(len(PAST), channels, channels).transpose(
            1, 0, 2
        )  # (c, K, C): how the others look at c
        weight_pair = (
            (errors.reshape(len(errors), -1).T @ deviations).reshape(len(PAST), channels, channels).transpose(1, 0, 2)
        )
        own = np.einsum("nkc,nlc->ckl", errors, errors, optimize=False)
        total = (partner_weights * (2.0 * weight_pair + own @ partner_weights)).sum(axis=1) / len(inputs)
        self.wider = np.maximum(total / variance, 0.0)
        np.fill_diagonal(self.wider, 0.0)

    def deviations(self, scene: Scene) -> Array:
        """The same with a sign."""
        inputs = self._inputs(scene)
        smooth = inputs[:, : scene.rows.shape[1]]
        return np.asarray((smooth - inputs @ self.weights - self.intercepts - self.usual) / self.spread)
