"""CUSUM: evidence accumulated over time, never below zero.

An alarm where it reaches the threshold.

``s_t = max(s_{t-1} + D_t, 0)``, ``s_0 = 0``, alarm where ``s_t >= h``. (The paper prints ``s_t`` on the right and
``<= h``: slips.) What ends an alarm is a policy:

* ``restart``: the statistic starts again from 0 at the next row, the alarm is on for one row. The policy the
  false-alarm bound is about. A long event raises many alarms, one each time the statistic climbs back.
* ``recovery``: the statistic goes on, cut off at h, and the alarm lasts until it is back at 0. One alarm for one long
  event; on a level that has changed for good it never ends.
* ``cooldown``: the statistic starts again from 0 after a pause of ``cooldown`` rows during which the alarm is on.
  At most one alarm in ``cooldown + 1`` rows, whatever happens.
* ``endless``: the statistic goes on as if there were no alarm, which is on while it is at or above h. After a strong event
  it takes as long to come down as the event was strong.

An unknown row (NaN) ends the alarm and empties the sum: what was before a hole in the data says nothing about what
comes after. This module does not know where evidence comes from, nor how h is chosen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tisat.alarms import _kernels
from tisat.alarms.control import Control, control_state, no_control, restore
from tisat.errors import InputError
from tisat.utils.stage import State, Stateful
from tisat.utils.types import Array, Flags
from tisat.utils.validation import check_choice, check_integer, check_real, check_vector

POLICIES = {
    "restart": _kernels.RESTART,
    "recovery": _kernels.RECOVERY,
    "cooldown": _kernels.COOLDOWN,
    "endless": _kernels.ENDLESS,
}
COOLDOWN = 50  # rows; half the headline delta_max, like the hold of the excess rule


class TraceRow(NamedTuple):
    """A row of a :class:`Trace`."""

    statistic: float
    active: bool
    onset: int
    threshold: float


@dataclass(frozen=True)
class Trace:
    """Statistic, alarm and onset of each row of evidence."""

    statistic: Array  # (T,), NaN where the evidence is
    active: Flags  # (T,), the alarm is on
    onset: npt.NDArray[
        np.int64
    ]  # (T,), the last row up to this one at which the statistic was 0 or an alarm had just ended
    threshold: Array  # (T,), in force

    def row(self, place: int) -> TraceRow:
        """Return one row."""
        return TraceRow(
            float(self.statistic[place]), bool(self.active[place]), int(self.onset[place]), float(self.threshold[place])
        )

    def evidence_rows(self, raised: int) -> tuple[int, slice]:
        """The onset of the alarm of a row and the rows that made it: those since its onset.

        Where the statistic was only held, and the threshold came down to it, those of its last rise.
        """
        rise, onset = raised, int(self.onset[raised])
        while rise > 0 and self.statistic[rise] <= self.statistic[rise - 1] and not self.active[rise - 1]:
            rise -= 1
        own = int(self.onset[rise])  # of the last rise; where that is its row, no rows made it
        if rise > onset or rise <= own or (rise > 0 and self.active[rise - 1]):
            return onset, slice(min(onset + 1, raised), raised + 1)
        stop, onset = rise + 1, own
        while self.onset[stop] == onset:
            stop += 1
        return onset, slice(onset + 1, stop)

    @classmethod
    def empty(cls, length: int) -> Trace:
        """Room for ``length`` rows."""
        flags, numbers = np.empty(length, dtype=np.bool_), np.empty(length, dtype=np.int64)
        return cls(np.empty(length), flags, numbers, np.empty(length))


class _Accumulator(Stateful, ABC):
    """Evidence in, a trace out, in calls of any length."""

    def __repr__(self) -> str:
        said = (f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_"))
        return f"{type(self).__name__}({', '.join(said)})"

    def run(self, evidence: npt.ArrayLike, /) -> Trace:
        """Accumulate evidence ``(T,)``, continuing from the last call."""
        values = check_vector(evidence, "evidence", f"{type(self).__name__}.run")
        trace = Trace.empty(len(values))
        self.run_into(values, trace)
        return trace

    def step(self, evidence: float | Array, /) -> TraceRow:
        """Accumulate the evidence of one row, a number or ``(V,)``."""
        return self.run(np.asarray(evidence, dtype=np.float64)[None]).row(0)

    @abstractmethod
    def run_into(self, evidence: Array, trace: Trace) -> None:
        """Like :meth:`run`, into a trace of the caller; its arguments are not checked."""


class Cusum(_Accumulator):
    """Cumulative sum of evidence with a threshold and a policy for what ends an alarm.

    Parameters
    ----------
    threshold : float
        h, in the unit of the evidence.
    end : str
        ``restart``, ``recovery``, ``cooldown`` or ``endless``: see :mod:`tisat.alarms.cusum`.
    cooldown : int
        Rows an alarm lasts under ``cooldown``.

    Examples
    --------
    >>> cusum = Cusum(threshold=2.0)
    >>> [cusum.step(e)[:2] for e in (-1.0, 1.5, 1.0, 1.0)]
    [(0.0, False), (1.5, False), (2.5, True), (1.0, False)]
    >>> Cusum(threshold=2.0).run([-1.0, 1.5, 1.0, 1.0]).statistic.tolist()
    [0.0, 1.5, 2.5, 1.0]
    """

    _kept = ("sums", "clock")

    def __init__(self, *, threshold: float, end: str = "restart", cooldown: int = COOLDOWN) -> None:
        self.threshold = check_real(threshold, "threshold", "Cusum", above=0.0)
        self.end = check_choice(end, "end", "Cusum", choices=POLICIES)
        self.cooldown = check_integer(cooldown, "cooldown", "Cusum", minimum=1)
        self.reset()

    def run_into(self, evidence: Array, trace: Trace) -> None:
        """Like :meth:`run`, into a trace of the caller; its arguments are not checked."""
        _kernels.cusum(
            evidence,
            self.threshold,
            POLICIES[self.end],
            self.cooldown,
            self._sums,
            self._clock,
            trace.statistic,
            trace.active,
            trace.onset,
        )
        trace.threshold[:] = self.threshold

    def reset(self) -> None:
        """Forget everything."""
        self._sums = np.zeros(1)
        self._clock = _kernels.fresh_clock()


class WindowSum(_Accumulator):
    """The sum of the last ``length`` evidence values, held at its maximum for ``hold`` rows: a finite memory.

    Parameters
    ----------
    threshold : float
        The alarm is on while the statistic is at or above it.
    length : int
        Rows summed; 1 gives the evidence itself, a plain threshold.
    hold : int
        Rows over which the running maximum is taken; 1 holds nothing.

    Examples
    --------
    >>> WindowSum(threshold=2.0, length=2, hold=2).run([0.0, 1.0, 1.0, 0.0, 0.0]).statistic.tolist()
    [0.0, 1.0, 2.0, 2.0, 1.0]
    """

    _kept = ("recent", "held", "clock")
    unit: float = 0.0  # of a logarithmic scale; 0: the sum itself

    def __init__(self, *, threshold: float, length: int = 20, hold: int = 50) -> None:
        whose = type(self).__name__
        self.threshold = check_real(threshold, "threshold", whose)
        self.length = check_integer(length, "length", whose, minimum=1)
        self.hold = check_integer(hold, "hold", whose, minimum=1)
        self._control = no_control()  # see tisat.alarms.control
        self.reset()

    def follow(self, control: Control | None) -> None:
        """Let a control move the threshold from here on; None: it stays."""
        self._control = no_control() if control is None else control.array()

    @property
    def control(self) -> Array:
        """The state of the control, which the caller may change."""
        return self._control

    def run_into(self, evidence: Array, trace: Trace) -> None:
        """Like :meth:`run`, into a trace of the caller; its arguments are not checked."""
        _kernels.window_sum(
            evidence if evidence.ndim == 2 else evidence[:, None], self.threshold, self.unit, self._recent.reshape(self.length, -1),
            self._held, self._clock, self._control, trace.statistic, trace.active, trace.onset, trace.threshold,
        )  # fmt: skip

    def reset(self) -> None:
        """Forget everything."""
        self._recent = self._nothing()
        self._held = np.zeros(self.hold)
        self._clock = _kernels.fresh_clock()

    def _nothing(self) -> Array:
        """The last evidence values before there are any."""
        return np.zeros(self.length)

    def state(self) -> State:
        """Return everything that continues after a restart."""
        return {**super().state(), **control_state(self._control)}

    def restore(self, state: State, /) -> None:
        """Continue from what :meth:`state` returned."""
        super().restore(state)
        restore(self._control, state)


class CompressedSum(WindowSum):
    """Evidence of several views: each summed over the last ``length`` rows, then added up on a logarithmic scale.

    The statistic is the sum over views of ``log(1 + S / unit)``, S a view's sum, held at its maximum for ``hold`` rows.
    With one view it orders rows as :class:`WindowSum` does; it grows by 7 where the sum grows a thousandfold.

    Parameters
    ----------
    threshold : float
        The alarm is on while the statistic is at or above it.
    length, hold : int
        Rows.
    unit : float
        A sum that counts as one unit.
    views : int
        Number of views.

    Examples
    --------
    >>> sums = CompressedSum(threshold=2.0, length=2, hold=2, unit=1.0)
    >>> sums.run([[0.0, 0.0], [1.0, 0.0], [1.0, 3.0], [0.0, 0.0], [0.0, 0.0]]).statistic.round(2).tolist()
    [0.0, 0.69, 2.48, 2.48, 2.08]
    """

    views: int = 1

    def __init__(
        self, *, threshold: float, length: int = 20, hold: int = 30, unit: float = 0.2, views: int = 1
    ) -> None:
        super().__init__(threshold=threshold, length=length, hold=hold)
        self.unit = check_real(unit, "unit", "CompressedSum", above=0.0)
        self.views = check_integer(views, "views", "CompressedSum", minimum=1)
        self.reset()

    def run(self, evidence: npt.ArrayLike, /) -> Trace:
        """Accumulate evidence ``(T,)`` or ``(T, V)``, continuing from the last call."""
        values = np.ascontiguousarray(evidence, dtype=np.float64)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2:
            raise InputError(f"The evidence of CompressedSum must have shape (T, V). Got shape {values.shape} instead.")
        if values.shape[1] != self.views:
            if self._clock[_kernels.NOW] > 0:
                raise InputError(
                    f"The evidence of CompressedSum must have the {self.views} views it began with. Got {values.shape[1]} instead."
                )
            self.views = values.shape[1]
            self.reset()
        trace = Trace.empty(len(values))
        self.run_into(values, trace)
        return trace

    def _nothing(self) -> Array:
        return np.zeros((self.length, self.views))
