"""Limits of each channel's mean deviation: what tells a channel that is still different from one that is back.

The deviation is that of the relations view, or of the mode view where it is taken; with one channel, that of its level. It
has no moving reference, so that a step that stays remains visible. It raises no alarm and enters no statistic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tisat.alarms.present_mode import MEAN
from tisat.detectors.base import Array
from tisat.detectors.prism.blame import blamed, fault_patterns
from tisat.detectors.prism.schedule import in_words
from tisat.detectors.prism.units import Units
from tisat.detectors.prism.view import View
from tisat.utils.types import Flags

LEAST = 0.01  # of the training range: no deviation below it counts
HIGH = 0.999  # quantile of the normal mean deviation


def mean_deviations(deviations: Array) -> Array:
    """Means ``(T - 39, C)`` of deviations ``(T, C)`` over 40 rows each; empty where there are fewer."""
    sums = np.cumsum(np.concatenate([np.zeros((1, deviations.shape[1])), deviations]), axis=0)
    return np.asarray((sums[MEAN:] - sums[:-MEAN]) / MEAN) if len(deviations) >= MEAN else deviations[:0]


def highest_means(stretches: Sequence[Array]) -> Array | None:
    """The largest mean deviation that is normal ``(C,)``, from stretches ``(T_i, C)`` of one part that the model has not seen."""
    means = [np.abs(mean_deviations(stretch)) for stretch in stretches if len(stretch) >= 2 * MEAN]
    return np.asarray(np.quantile(np.concatenate(means), HIGH, axis=0)) if means else None


def deviation_limits(highest: Sequence[Array], view: View) -> Array:
    """The largest of the :func:`highest_means` of each part ``(C,)``; 0 where there are none.

    Parameters
    ----------
    highest : sequence of arrays of shape (C,)
        In spreads of the view, each by a model that was not fitted on the part.
    view : View
        Whose deviations they are.
    """
    spread = np.atleast_2d(view.arrays()["spread"])[-1]
    return np.asarray(np.maximum(np.max(highest, axis=0), LEAST / spread)) if len(highest) else np.zeros(len(spread))


class Deviating:
    """The part of a prism that gives the deviations of its points and their limits."""

    n_channels_: int
    span_: Array  # (C,) half the training range
    _views: dict[str, View]
    _fault_patterns: Array | None = None
    _units: Units

    @property
    def _standing(self) -> View:
        """The view whose deviations are given."""
        return self._views["mode" if "mode" in self._views else "relations"]

    @property
    def _plain(self) -> int:
        """The width of a point without the deviations beside it."""
        return len(self._views) + 2 * self.n_channels_ + 1

    @property
    def switches(self) -> tuple[tuple[int, float], ...]:
        """Channels that switch the operating mode and half their training range, the rarest first."""
        switched = self._units.transitions
        found = np.zeros(0) if switched is None else switched.switches
        if "mode" in self._views:
            found = self._views["mode"].arrays()["switches"]
        return tuple((int(c), float(self.span_[int(c)])) for c in found[::-1])

    def _blame(self, parts: Array, signed: Array, unknown: Flags | None) -> None:
        """Give contributions ``(n, C)``, the squares of ``signed``, to the channels they come from, in rows in which all are known."""
        some = slice(None) if unknown is None else ~unknown.any(axis=1)
        parts[some] = blamed(np.copysign(np.sqrt(parts[some]), signed[some]), self._patterns_of_faults())

    def _patterns_of_faults(self) -> Array:
        """What a fault of each channel does to the deviations of all ``(C, C)``."""
        if self._fault_patterns is None:
            known = self._standing.arrays()  # both views look at the others through three means
            spread = np.atleast_2d(known["spread"])[-1]
            self._fault_patterns = fault_patterns(known["weights"][: 3 * self.n_channels_], spread)
        return self._fault_patterns

    @property
    def knows_modes(self) -> bool:
        """Whether the mode views were taken."""
        return "mode" in self._views

    @property
    def scheduled_times(self) -> str:
        """The times of the week at which jumps are known to recur, in words; empty where there are none."""
        return "" if self._units.transitions is None else in_words(self._units.transitions.times)

    @property
    def knows_calendar(self) -> bool:
        """Whether the time of day and the day of the week count."""
        return (
            bool(self.scheduled_times)
            or self._units.hours is not None
            or ("mode" in self._views and bool(self._views["mode"].arrays()["calendar"][0]))
        )

    def _highest_of(self, parts: Sequence[Sequence[Array]]) -> list[Array]:
        """The highest mean deviations ``(C,)`` of each part, from points with deviations beside them."""
        found = (highest_means([one[:, self._plain :] for one in part]) for part in parts)
        return [one for one in found if one is not None]

    def _learn_limits(self, highest: Sequence[Array]) -> None:
        view: Any = self._standing
        view.limits = deviation_limits(highest, view)

    def _for_calibration(self, points: Array) -> Array:
        return np.ascontiguousarray(points[:, : self._plain])

    @property
    def deviation_limits(self) -> Array:
        """The largest normal mean deviation of each channel ``(C,)``; 0 where unknown, as in files of version 0.2."""
        return np.asarray(self._standing.arrays()["limits"])
