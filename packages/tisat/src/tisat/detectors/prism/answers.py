"""Ask a prism about single windows: its learned arrays in the order of the compiled loops of :mod:`tisat.detectors.prism.online`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism import VIEWS, rhythm
from tisat.detectors.prism.fusion import OTHERS
from tisat.detectors.prism.online import NOTHING, look_at_modes, look_at_windows
from tisat.detectors.prism.relations import FILTERS
from tisat.detectors.prism.schedule import places_of
from tisat.detectors.prism.transitions import EDGES
from tisat.utils.neighbors import heads_of
from tisat.utils.types import AnyArray

if TYPE_CHECKING:
    from tisat.detectors.prism.detector import Prism

NO_SWITCHES, NO_UNITS, NO_ERRORS = np.zeros(0, dtype=np.int64), np.zeros((0, 0, 0)), np.zeros((0, 0))
NO_TIMES = np.zeros(0, dtype=np.bool_)
WITH_MODES = np.append(OTHERS, [len(VIEWS), len(VIEWS) + 1])  # the views that know which channel it is


def answers(prism: Prism, windows: Array) -> Array:
    """Points of the last rows of windows ``(n, T, C + 1)``, with deviations beside them."""
    if prism._windowed is None:
        prism._windowed = _learned(prism)
    points = np.empty((len(windows), len(prism._views) + 3 * prism.n_channels_ + 1))
    whole = np.empty(len(windows), dtype=np.bool_)
    given = NO_ERRORS if prism.forecaster_ is None else _errors(prism, windows)
    look: Callable[..., None] = look_at_modes if prism._modes else look_at_windows
    now = (prism.ordinary_, prism.levels_, prism.exponents_, EDGES, NOTHING, whole, points)
    look(*(windows, given, *prism._windowed, *now))
    if not np.logical_and.reduce(whole):
        points[~whole] = _by_views(prism, windows[~whole])
    return points


def _by_views(prism: Prism, windows: Array) -> Array:
    """The same by the views, one window below the other: no view looks beyond its own."""
    rows = windows.reshape(-1, windows.shape[2])
    return prism._points_at(rows, np.arange(windows.shape[1] - 1, len(rows), windows.shape[1]))


def _errors(prism: Prism, windows: Array) -> Array:
    """Errors ``(n, C)`` of the last rows by another forecaster than the line."""
    rows = prism._scaled(windows[:, :, : prism.n_channels_])
    return np.concatenate([prism._errors(one, np.array([len(one) - 1])) for one in rows])


def _learned(prism: Prism) -> tuple[object, ...]:
    """The arrays of the model in the order of :func:`look_at_windows` or :func:`look_at_modes`."""
    known: dict[str, Mapping[str, AnyArray]] = {name: view.arrays() for name, view in prism._views.items()}
    errors, joint, near, active = (known[name] for name in ("error", "joint", "neighbour", "activity"))
    related, echo = known["relations"], known["rhythm"]
    vectors = np.array([
        prism.low_ / 2, prism.span_, prism.intercepts_, prism.farthest_, errors["spread"], joint["mean"], near["still"],
        active["usual"], active["spread"], related["intercepts"], related["usual"], related["spread"],
        rhythm.LARGEST * echo["step"], rhythm.LEAST_ENERGY * echo["step"] ** 2,
    ])  # fmt: skip
    patterns = np.ascontiguousarray(prism._patterns_of_faults().T)
    both = (vectors, prism.weights_, echo["usual"], echo["whitening"], patterns)
    if prism._modes:
        modes = prism._modes
        stacked = (np.stack([view.arrays()[name] for view in modes]) for name in ("weights", "intercepts", "spread"))
        forests = tuple(view._forest.columns for view in modes)
        switches = modes[0].switches.astype(np.int64)
        return (*both, modes[0].calendar, modes[0].holidays, *stacked, forests, WITH_MODES, switches, modes[0].units)
    hours, switched = prism._units.hours, prism._units.transitions
    cells: tuple[AnyArray, ...] = (NO_SWITCHES, NO_TIMES, NO_UNITS)
    if switched is not None:
        cells = (switched.channels, switched.scheduled if len(switched.times) else NO_TIMES, switched.units)
    return (
        *both, joint["precision"], joint["shapes"], heads_of(joint["shapes"]), near["centre"], near["basis"],
        np.ascontiguousarray(near["basis"].T), near["stored"], heads_of(near["stored"]), related["weights"], FILTERS,
        OTHERS, *cells, NO_UNITS if hours is None else hours.units,
        places_of(active["slots"]) if len(active["slots"]) else NO_SWITCHES, active["slot_usual"], active["slot_spread"],
    )  # fmt: skip
