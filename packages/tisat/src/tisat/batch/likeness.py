"""Are machines alike enough to share one model? The out-of-sample error of a model of all beside that of one for each.

Two plain models stand for any detector: the mean of each channel, and each channel from the others by ridge regression. They are fitted on the
first part of the rows, of all machines or of one, and their errors taken on the rest. A detector pools what these pool.
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


@dataclass(frozen=True)
class Likeness:
    """How much larger the error of a model of all machines is than that of a model for each."""

    level: float  # of the mean of a channel; the median over machines, of the channel that differs most
    relation: float  # of each channel predicted from the others; 1 where there is one channel
    machines: int  # looked at
    worst: str  # the machine that a pooled model suits least

    @property
    def unlike(self) -> bool:
        """Whether one model for all is not advised."""
        return max(self.level, self.relation) >= UNLIKE

    @property
    def sentence(self) -> str:
        """The finding, without what to type."""
        what = "levels of its channels" if self.level >= self.relation else "channels from each other"
        return (
            f"These machines are unlike: a model of all predicts the {what} on held-out rows with {max(self.level, self.relation):.1f} times the "
            f"error of a model for each (median of {self.machines}; most of all {self.worst})."
        )

    def __str__(self) -> str:
        return f"{self.sentence} --each fits one model for each."


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
    split: dict[str, tuple[Array, Array]] = {}
    for place in places:
        machine = machines[place]
        if machine.channels != machines[0].channels and set(machine.channels) == set(machines[0].channels):
            machine = machine.select(machines[0].channels)
        rows = carry_forward(np.asarray(machine.values[-ROWS:], dtype=np.float64))
        rows = rows[~np.isnan(rows).any(axis=1)]
        if machine.channels == machines[0].channels and len(rows) >= FEWEST:
            cut = int(TRAINED * len(rows))
            split[machine.name or str(place)] = rows[:cut], rows[cut:]
    if len(split) < 2:
        return None
    together = np.concatenate([train for train, _ in split.values()])
    middle, spread = together.mean(axis=0), together.std(axis=0)
    unit = np.where(spread > 0, spread, 1.0)
    scaled = {name: ((train - middle) / unit, (test - middle) / unit) for name, (train, test) in split.items()}
    pooled = _Models((together - middle) / unit)
    ratios = np.array([pooled.errors(test) / _Models(train).errors(test) for train, test in scaled.values()])
    level, relation = np.median(ratios, axis=0).max(axis=1)  # a channel alike everywhere says nothing of the others
    worst = list(scaled)[int(np.argmax(ratios.max(axis=(1, 2))))]
    return Likeness(float(level), float(relation), len(scaled), worst)


class _Models:
    """The mean of each channel, and each channel from the others."""

    def __init__(self, rows: Array) -> None:
        self.mean = rows.mean(axis=0)
        centred = rows - self.mean
        channels = rows.shape[1]
        gram = centred.T @ centred + RIDGE * len(rows) * np.eye(channels)
        inverse = np.linalg.inv(gram)
        self.weights = -inverse / np.diag(inverse)[:, None]  # row c: channel c from the others
        np.fill_diagonal(self.weights, 0.0)

    def errors(self, rows: Array) -> Array:
        """Root mean square errors ``(2, C)`` of both models over rows; not below LEAST."""
        centred = rows - self.mean
        residuals = centred - centred @ self.weights.T if rows.shape[1] > 1 else np.ones_like(centred)
        return np.maximum([np.sqrt(np.mean(one**2, axis=0)) for one in (centred, residuals)], LEAST)
