"""The operating mode an alarm was raised in, in words: which on/off channel switched within the hour of rows before, and where to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.utils.stage import Folded, Stateful
from tisat.utils.types import Array

ROWS = 60  # before the raise
Switch = tuple[int, float]  # a channel that switches, and the step that is a switch, in its units


def mode_of(rows: Array, switches: Sequence[Switch], channels: Sequence[str]) -> str:
    """The last switch in rows ``(n, K)`` of the switching channels, the first of ``switches`` that has one before the others.

    Examples
    --------
    >>> mode_of(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]), [(3, 0.5), (0, 0.5)], ["door", "a", "b", "pump"])
    'pump down'
    """
    for place, (channel, least) in enumerate(switches):
        moves = np.diff(rows[:, place])
        found = moves[np.abs(np.nan_to_num(moves)) >= least]
        if len(found):
            return f"{channels[channel]} {'up' if found[-1] > 0 else 'down'}"
    return ""


def switches_note(names: Sequence[str], *, modes: bool) -> str:
    """The sentence about channels that switch; ``modes``: they tell what to expect of the others.

    Examples
    --------
    >>> print(switches_note(["pump_on"], modes=True))
    pump_on switches: every channel is compared with what is usual in the same operating mode.
    >>> print(switches_note(["door", "valve"], modes=False))
    door, valve switch: rows after a switch are compared with those after earlier ones.
    """
    compared = "every channel is compared with what is usual in the same operating mode"
    after = "rows after a switch are compared with those after earlier ones"
    return f"{', '.join(names)} switch{'es' * (len(names) == 1)}: {compared if modes else after}."


class RecentRows(Stateful, Folded[Array | None, None]):
    """The last rows of the switching channels."""

    _kept = ("rows",)

    def __init__(self, switches: Sequence[Switch]) -> None:
        self.switches = tuple(switches)
        self._columns = [channel for channel, _ in switches]
        self._rows = np.full((ROWS + 1, len(switches)), np.nan)

    @property
    def rows(self) -> Array:
        """The rows ``(n, K)``, newest last."""
        return self._rows

    def step(self, row: Array | None, /) -> None:
        """Take in the values ``(C,)`` of a row; None: nothing is known of it."""
        if self._columns:
            self._rows[:-1] = self._rows[1:]
            self._rows[-1] = np.nan if row is None else row[self._columns]
