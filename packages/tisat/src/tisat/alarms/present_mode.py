"""The operating mode a machine is in, told by the positions of the channels that switch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.utils.stage import State
from tisat.utils.types import Array

MEAN = 40  # rows over which a deviation is averaged
STEADY = MEAN + 60  # rows after a switch in which a mean deviation, of views that look back 60 rows, is of both modes
Switch = tuple[int, float]  # a channel that switches, and the step that is a switch, in its units


def slow(switches: Sequence[Switch], moves_every: Sequence[float]) -> tuple[Switch, ...]:
    """The channels that switch rarely enough for a mean deviation to be of one mode; all where nothing is known.

    Examples
    --------
    >>> slow([(0, 0.5), (1, 2.0)], [300.0, 30.0])
    ((0, 0.5),)
    """
    return tuple((c, least) for c, least in switches if c >= len(moves_every) or moves_every[c] >= STEADY)


class PresentMode:
    """The positions of the channels that switch, and for how many rows they have been there.

    Parameters
    ----------
    switches : sequence of (int, float)
        Channels, and half the range of each: positions that are closer are one.
    """

    def __init__(self, switches: Sequence[Switch]) -> None:
        self._columns = np.array([channel for channel, _ in switches], dtype=np.int64)
        self._least = np.array([least for _, least in switches])
        self.positions = np.full(len(switches), np.nan)
        self.rows = 0  # at most STEADY

    @property
    def settled(self) -> bool:
        """Whether all rows of a mean deviation are of this mode."""
        return self.rows >= STEADY

    def step(self, values: Array | None) -> None:
        """Take in the values ``(C,)`` of a row; None: unknown."""
        if values is None or not len(self._columns):
            return
        now = values[self._columns]
        if np.isnan(now).any():
            return
        same = self.is_at(now)
        self.rows = min(self.rows + 1, STEADY) if same else 0
        if not same:
            self.positions = now

    def is_at(self, positions: Array) -> bool:
        """Whether the channels that switch are at these positions."""
        return bool((np.abs(positions - self.positions) < self._least).all())

    def state(self) -> State:
        """Return everything that continues after a restart."""
        return {"positions": self.positions.copy(), "rows": self.rows}

    def restore(self, state: State) -> None:
        """Continue from what :meth:`state` returned."""
        self.positions[:], self.rows = state["positions"], min(max(int(state["rows"]), 0), STEADY)
