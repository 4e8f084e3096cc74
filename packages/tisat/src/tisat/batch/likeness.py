"""Are machines alike enough to share one model? The out-of-sample error of a model of all beside that of one for each.

Two plain models stand for any detector: the mean of each channel, and each channel from the others by ridge regression. They are fitted on the
first part of the rows, of all machines or of one, and their errors taken on the rest. A detector pools what these pool. Means and
covariances of both parts are all that is needed, so groups of machines are found without reading rows again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tisat.gap_filling import carry_forward
from tisat.series import Series
from tisat.utils.types import Array

LOOKED_AT = 30  # machines, evenly over all of them
ROWS = 3000  # of each
TRAINED = 0.7  # share of the rows that the models are fitted on
UNLIKE = 1.5  # times the error of own models, from which a pooled one is not advised
LEAST = 0.05  # of a channel's spread: errors below it are not told apart
FEWEST = 30  # rows of a machine
RIDGE = 1e-3
ROUNDS = 3  # of moving machines between the two halves of a split


@dataclass(frozen=True)
class Likeness:
    """How much larger the error of a model of all machines is than that of a model for each."""

    level: float  # of the mean of a channel; the median over machines, of the channel that differs most
    relation: float  # of each channel predicted from the others; 1 where there is one channel
    machines: int  # looked at
    worst: str  # the machine that a pooled model suits least
    alone: int  # machines that are alike no other

    @property
    def unlike(self) -> bool:
        """Whether one model for all is not advised."""
        return max(self.level, self.relation) >= UNLIKE

    def __str__(self) -> str:
        what = "levels of its channels" if self.level >= self.relation else "channels from each other"
        advice = "--each fits one model for each, --each --group-by auto one for each group of machines alike."
        if 2 * self.alone > self.machines:
            advice = f"Use --each, one model for each: {self.alone} of {self.machines} are alike no other, so groups do not help."
        return (
            f"These machines are unlike: a model of all predicts the {what} on held-out rows with {max(self.level, self.relation):.1f} times the "
            f"error of a model for each (median of {self.machines}; most of all {self.worst}). {advice}"
        )


@dataclass(frozen=True)
class Moments:
    """Mean and covariance of the first rows of a machine, and of the rest."""

    count: int  # of the first rows
    mean: Array  # (C,)
    covariance: Array  # (C, C)
    later_mean: Array
    later_covariance: Array

    @classmethod
    def of(cls, series: Series) -> Moments | None:
        """The moments of a machine; None where it has too few rows with a value in every channel."""
        rows = carry_forward(np.asarray(series.values[-ROWS:], dtype=np.float64))
        rows = rows[~np.isnan(rows).any(axis=1)]
        if len(rows) < FEWEST:
            return None
        cut = int(TRAINED * len(rows))
        parts = [(part.mean(axis=0), _covariance(part - part.mean(axis=0))) for part in (rows[:cut], rows[cut:])]
        return cls(cut, *parts[0], *parts[1])

    def scaled(self, middle: Array, unit: Array) -> Moments:
        """The moments of the rows less ``middle``, in ``unit``."""
        square = np.outer(unit, unit)
        return Moments(
            self.count, (self.mean - middle) / unit, self.covariance / square, (self.later_mean - middle) / unit,
            self.later_covariance / square,
        )  # fmt: skip

    def select(self, order: Sequence[int]) -> Moments:
        """The channels in another order."""
        both = np.ix_(order, order)
        return Moments(
            self.count, self.mean[order], self.covariance[both], self.later_mean[order], self.later_covariance[both]
        )


def likeness(machines: Sequence[Series]) -> Likeness | None:
    """Compare a model of all machines with one for each, out of sample.

    Parameters
    ----------
    machines : sequence of Series
        Normal, with the same channels.

    Returns
    -------
    Likeness or None
        None where there are not two machines with rows enough.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> alike, other = ([Series(rng.normal(shift, size=(200, 2))) for shift in shifts] for shifts in ((0, 0, 0), (0, 50, 90)))
    >>> likeness(alike).unlike, likeness(other).unlike
    (False, True)
    """
    places = np.unique(np.linspace(0, len(machines) - 1, min(len(machines), LOOKED_AT)).round().astype(int))
    described: dict[str, Moments] = {}
    for place in places:
        machine = machines[place]
        if machine.channels != machines[0].channels and set(machine.channels) == set(machines[0].channels):
            machine = machine.select(machines[0].channels)
        if machine.channels == machines[0].channels and (moments := Moments.of(machine)) is not None:
            described[machine.name or str(place)] = moments
    if len(described) < 2:
        return None
    every = list(described.values())
    ratios = _ratios(_in_common_units(every))
    level, relation = np.median(ratios, axis=0).max(axis=1)  # a channel alike everywhere says nothing of the others
    worst = list(described)[int(np.argmax(ratios.max(axis=(1, 2))))]
    alone = sum(len(group) == 1 for group in alike_groups(every))
    return Likeness(float(level), float(relation), len(every), worst, alone)


def alike_groups(machines: Sequence[Moments]) -> list[list[int]]:
    """Groups of machines in which a pooled model has less than ``UNLIKE`` times the error of its own for every machine.

    A group with a machine above it is split in two: that machine, and the one its model suits least, take each machine to the one whose model
    suits it better.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> alike_groups([Moments.of(Series(rng.normal(level, size=(200, 2)))) for level in (0, 50, 0, 50, 90)])
    [[0, 2], [1, 3], [4]]
    """
    left, groups = [list(range(len(machines)))] if machines else [], []
    while left:
        group = left.pop()
        if len(group) > 1:
            members = _in_common_units([machines[place] for place in group])
            ratios = _ratios(members).max(axis=(1, 2))
            if ratios.max() >= UNLIKE:
                second = _second_half(members, int(np.argmax(ratios)))
                left += [
                    [place for place, here in zip(group, second, strict=True) if here == half] for half in (False, True)
                ]
                continue
        groups.append(group)
    return sorted(groups)


def _second_half(members: Sequence[Moments], worst: int) -> list[bool]:
    """Whether each machine of a group goes with its worst one."""
    own = np.array([_Models([one]).errors(one) for one in members])

    def misfit(models: _Models) -> Array:
        return np.asarray((np.array([models.errors(one) for one in members]) / own).max(axis=(1, 2)))

    far = misfit(_Models([members[worst]]))
    far[worst] = -np.inf
    first = int(np.argmax(far))
    second: list[bool] = []
    models = _Models([members[first]]), _Models([members[worst]])
    for _ in range(ROUNDS):
        nearer = misfit(models[1]) < misfit(models[0])
        second = [i == worst or (i != first and bool(nearer[i])) for i in range(len(members))]
        models = (
            _Models([one for one, here in zip(members, second, strict=True) if not here]),
            _Models([one for one, here in zip(members, second, strict=True) if here]),
        )
    return second


def _covariance(centred: Array) -> Array:
    return np.asarray(centred.T @ centred / len(centred))


def _pooled(machines: Sequence[Moments]) -> tuple[Array, Array]:
    """Mean and covariance of the first rows of all machines together."""
    weights = np.array([one.count for one in machines], dtype=np.float64)
    weights /= weights.sum()
    means = np.array([one.mean for one in machines])
    mean = weights @ means
    apart = means - mean
    inner = sum(weight * one.covariance for weight, one in zip(weights, machines, strict=True))
    return mean, np.asarray(inner + (weights[:, None] * apart).T @ apart)


def _in_common_units(machines: Sequence[Moments]) -> list[Moments]:
    mean, covariance = _pooled(machines)
    spread = np.sqrt(np.diag(covariance))
    unit = np.where(spread > 0, spread, 1.0)
    return [one.scaled(mean, unit) for one in machines]


def _ratios(machines: Sequence[Moments]) -> Array:
    """``(N, 2, C)``: the errors of a model of all over those of a model for each."""
    pooled = _Models(machines)
    return np.array([pooled.errors(one) / _Models([one]).errors(one) for one in machines])


class _Models:
    """The mean of each channel, and each channel from the others."""

    def __init__(self, machines: Sequence[Moments]) -> None:
        self.mean, covariance = _pooled(machines)
        inverse = np.linalg.inv(covariance + RIDGE * np.eye(len(self.mean)))
        self.kept = inverse / np.diag(inverse)[:, None]  # row c: channel c less what the others say of it

    def errors(self, machine: Moments) -> Array:
        """Root mean square errors ``(2, C)`` of both models over the later rows of a machine; not below LEAST."""
        shift = machine.later_mean - self.mean
        square = machine.later_covariance + np.outer(shift, shift)
        level = np.diag(square)
        relation = np.einsum("cd,de,ce->c", self.kept, square, self.kept, optimize=True)
        if len(level) == 1:
            relation = np.ones(1)
        return np.maximum(np.sqrt(np.maximum([level, relation], 0.0)), LEAST)
