"""The views of prism on single windows, in one compiled loop: what a monitor and a fleet ask of it.

The quantities are those of the views, which whole series are given to; here each window is scaled, looked at and fused without
coming back to Python, and each sum has the same order for one window and for many. Windows that lack a value, and models with
mode views, one channel or another forecaster, are not looked at here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism import activity, neighbour, rhythm
from tisat.detectors.prism.activity import mean_squares
from tisat.detectors.prism.fusion import OTHERS, RELATIONS, fuse
from tisat.detectors.prism.line import line_forecasts
from tisat.detectors.prism.relations import FILTERS, filtered
from tisat.detectors.prism.rhythm import echo_distances, make_echoes
from tisat.detectors.prism.transitions import EDGES
from tisat.utils.compiled import compiled
from tisat.utils.neighbors import closest, heads_of
from tisat.utils.types import AnyArray, Flags, Integers

if TYPE_CHECKING:
    from tisat.detectors.prism.detector import Prism

ERROR, JOINT, NEIGHBOUR, ACTIVITY, RHYTHM = 0, 1, 2, 3, 5  # places of the views; fusion has that of RELATIONS
LEAST_SQUARE = activity.LEAST_STEP**2
STEPS, LAGS, WINDOW, LIVELY = rhythm.ROWS, rhythm.LAGS, neighbour.ROWS, activity.ROWS
LOWEST, HIGHEST = -4.0, 5.0  # scaled values are cut off here: 4 training ranges outside the training range
NOTHING = np.zeros((0, 0, 0), dtype=np.bool_)
NO_SWITCHES, NO_UNITS = np.zeros(0, dtype=np.int64), np.zeros((0, 0, 0))


@compiled()
def _clear(values: Array) -> None:  # pragma: no cover - compiled
    for k in range(len(values)):  # an assignment to a slice takes ten times as long to compile
        values[k] = 0.0


@compiled()
def _add_product(vector: Array, weights: Array, out: Array) -> None:  # pragma: no cover - compiled
    """Add ``vector @ weights`` to ``out``, in the order of the vector."""
    for k in range(len(vector)):
        value, row = vector[k], weights[k]
        for m in range(len(row)):
            out[m] += value * row[m]


@compiled()
def _scale(window: Array, low: Array, span: Array, rows: Array) -> bool:  # pragma: no cover - compiled
    """Rows in units of the training range, cut off; whether none lacks a value."""
    whole = True
    for t in range(len(rows)):
        given, row = window[t], rows[t]
        for c in range(len(low)):
            value = (given[c] / 2 - low[c]) / span[c]
            whole &= value == value
            row[c] = min(max(value, LOWEST), HIGHEST)
    return whole


@compiled()
def _give_to_faulty(part: Array, signed: Array, patterns: Array, room: Array) -> None:  # pragma: no cover - compiled
    """Give the contributions of a row to the channel they come from: :func:`tisat.detectors.prism.blame.blamed`."""
    deviations, strengths = room[0], room[1]
    for c in range(len(part)):
        deviations[c] = np.copysign(np.sqrt(part[c]), signed[c])
        strengths[c] = 0.0
    _add_product(deviations, patterns, strengths)
    best = 0
    for c in range(len(part)):
        if abs(strengths[c]) > abs(strengths[best]):
            best = c
    strength = strengths[best]
    for c in range(len(part)):
        part[c] = (deviations[c] - strength * patterns[c, best]) ** 2
    part[best] += strength**2


@compiled()
def _cell(rows: Array, switches: Integers, edges: Array) -> int:  # pragma: no cover - compiled
    """How long ago the last switch was: :meth:`tisat.detectors.prism.transitions.Transitions.cells` of the last row."""
    age = 0
    while age < edges[-1] and age + 1 < len(rows):
        for c in switches:
            if rows[len(rows) - 1 - age, c] != rows[len(rows) - 2 - age, c]:
                cell = 0
                while edges[cell] <= age:
                    cell += 1
                return cell
        age += 1
    return len(edges)


@compiled()
def look_at_windows(
    windows: Array,  # (n, T, C or C + 1): as they came
    vectors: Array,  # (14, C): one number a channel; see :func:`_learned`
    line: Array,  # (lags - 1, C)
    precision: Array,  # (C, C)
    centre: Array,  # (20 C,)
    basis: Array,  # (20 C, K)
    back: Array,  # (K, 20 C): its transpose
    stored: Array,  # (N, K)
    heads: Array,  # (8, N): the first columns of stored
    weights: Array,  # (3 C, C): of the relations
    filters: Array,  # (3, 59)
    usual: Array,  # (lags, C): of the rhythm
    whitening: Array,  # (lags, lags, C)
    patterns: Array,  # (C, C): of faults, one per column
    ordinary: Array,  # (V, C)
    levels: Array,  # (V, 2)
    exponents: Array,  # (V,)
    others: Integers,
    switches: Integers,  # channels; empty where none switches
    units: Array,  # (cells, V, C); empty where none switches
    edges: Array,
    unknown: Flags,  # (0, 0, 0)
    whole: Flags,  # (n,): set to False where a window lacks a value
    points: Array,  # (n, V + 3 C + 1)
) -> None:  # pragma: no cover - compiled
    """Points of the last row of each window, with deviations beside them."""
    n, length, channels, views = len(windows), windows.shape[1], line.shape[1], len(ordinary)
    last = np.empty(1, dtype=np.int64)
    last[0] = length - 1
    rows, part = np.empty((length, channels)), np.empty(len(stored))
    steps, needed = np.empty((STEPS + LAGS, channels)), np.empty(STEPS, dtype=np.bool_)
    tens, echoes = np.empty((STEPS, LAGS + 1, channels)), np.empty((1, LAGS, channels))
    inputs, summed = np.empty((1, len(filters), channels)), np.empty((1, channels))
    codes, difference, room = np.empty(stored.shape[1]), np.empty(len(centre)), np.empty((2, channels))
    parts, scores = np.empty((1, views, channels)), np.empty((3, views))
    errors, beside, lively, signed = (
        np.empty((1, channels)),
        np.empty((1, channels)),
        np.empty((1, channels)),
        np.empty(channels),
    )
    low, span, intercepts, farthest = vectors[0], vectors[1], vectors[2], vectors[3]
    spread, mean, still, active, active_spread = vectors[4], vectors[5], vectors[6], vectors[7], vectors[8]
    constant, related, related_spread, largest, least = vectors[9], vectors[10], vectors[11], vectors[12], vectors[13]
    for i in range(n):
        whole[i] = _scale(windows[i], low, span, rows)
        if not whole[i]:
            continue
        row = rows[length - 1]
        # errors of the forecast
        line_forecasts(rows, last, line, intercepts, farthest, errors)
        for c in range(channels):
            errors[0, c] = row[c] - errors[0, c]
            parts[0, ERROR, c] = (errors[0, c] / spread[c]) ** 2
            room[0, c] = errors[0, c] - mean[c]
            room[1, c] = 0.0
        _add_product(room[0], precision, room[1])
        for c in range(channels):
            parts[0, JOINT, c] = room[0, c] * room[1, c]
        # the nearest normal window
        _clear(codes)
        for j in range(WINDOW):
            for c in range(channels):
                difference[j * channels + c] = rows[length - WINDOW + j, c] - centre[j * channels + c]
        _add_product(difference, basis, codes)
        found = stored[closest(codes, stored, heads, part)]
        _clear(difference)
        for k in range(len(codes)):
            codes[k] -= found[k]
        _add_product(codes, back, difference)
        near = parts[0, NEIGHBOUR]
        _clear(near)
        for j in range(WINDOW):
            for c in range(channels):
                near[c] += difference[j * channels + c] ** 2
        for c in range(channels):
            if still[c] != 0.0:
                for j in range(WINDOW):
                    near[c] += (rows[length - 1 - j, c] - centre[c]) ** 2
        # activity
        _clear(summed[0])
        mean_squares(rows, last, LIVELY, summed)
        for c in range(channels):
            lively[0, c] = (0.5 * np.log(summed[0, c] + LEAST_SQUARE) - active[c]) / active_spread[c]
            parts[0, ACTIVITY, c] = lively[0, c] ** 2
        # relations
        for k in range(len(filters)):
            _clear(inputs[0, k])
        filtered(rows, last, filters, inputs)
        _clear(room[0])
        for k in range(len(filters)):
            _add_product(inputs[0, k], weights[k * channels : (k + 1) * channels], room[0])
        for c in range(channels):
            signed[c] = (inputs[0, 0, c] - room[0, c] - constant[c] - related[c]) / related_spread[c]
            parts[0, RELATIONS, c] = signed[c] ** 2
            beside[0, c] = signed[c] * related_spread[c]
        # rhythm
        make_echoes(rows, last, STEPS, largest, least, steps, needed, tens, room[0], echoes)
        _clear(summed[0])
        echo_distances(echoes, usual, whitening, room[0], summed)
        for c in range(channels):
            parts[0, RHYTHM, c] = summed[0, c]
        # together
        if len(switches):
            cell = _cell(rows, switches, edges)
            for v in range(views):
                for c in range(channels):
                    parts[0, v, c] /= units[cell, v, c]
        _give_to_faulty(parts[0, RELATIONS], signed, patterns, room)
        fuse(
            parts, unknown, ordinary, levels, exponents, rows[length - 1 :], errors, beside, lively, others, RELATIONS, scores, points[i : i + 1]
        )  # fmt: skip
        for c in switches:  # nobody expects a switch beyond its positions
            place = views + channels + c
            points[i, place] = min(max(points[i, place], 0.0), 1.0)
        for c in range(channels):
            points[i, views + 2 * channels + 1 + c] = signed[c]


def answers(prism: Prism, windows: Array) -> Array:
    """Points of the last rows of windows ``(n, T, C + 1)``, with deviations beside them."""
    if prism._modes or prism.forecaster_ is not None or prism.n_channels_ == 1:
        return _by_views(prism, windows)
    if prism._windowed is None:
        prism._windowed = _learned(prism)
    views, switched = len(prism._views), prism._transitions
    points = np.empty((len(windows), views + 3 * prism.n_channels_ + 1))
    whole = np.empty(len(windows), dtype=np.bool_)
    switches, units = (NO_SWITCHES, NO_UNITS) if switched is None else (switched.channels, switched.units)
    now = (prism.ordinary_, prism.levels_, prism.exponents_, OTHERS, switches, units, EDGES, NOTHING)
    look_at_windows(*(windows, *prism._windowed, *now, whole, points))
    if not np.logical_and.reduce(whole):
        points[~whole] = _by_views(prism, windows[~whole])
    return points


def _by_views(prism: Prism, windows: Array) -> Array:
    """The same by the views, one window below the other: no view looks beyond its own."""
    rows = windows.reshape(-1, windows.shape[2])
    return prism._points_at(rows, np.arange(windows.shape[1] - 1, len(rows), windows.shape[1]))


def _learned(prism: Prism) -> tuple[Array, ...]:
    """The arrays of the model in the order of :func:`look_at_windows`."""
    known: dict[str, Mapping[str, AnyArray]] = {name: view.arrays() for name, view in prism._views.items()}
    errors, joint, near, active = (known[name] for name in ("error", "joint", "neighbour", "activity"))
    related, echo = known["relations"], known["rhythm"]
    vectors = np.array([
        prism.low_ / 2, prism.span_, prism.intercepts_, prism.farthest_, errors["spread"], joint["mean"], near["still"],
        active["usual"], active["spread"], related["intercepts"], related["usual"], related["spread"],
        rhythm.LARGEST * echo["step"], rhythm.LEAST_ENERGY * echo["step"] ** 2,
    ])  # fmt: skip
    return (
        vectors, prism.weights_, joint["precision"], near["centre"], near["basis"],
        np.ascontiguousarray(near["basis"].T), near["stored"], heads_of(near["stored"]), related["weights"], FILTERS,
        echo["usual"], echo["whitening"], np.ascontiguousarray(prism._patterns_of_faults().T),
    )  # fmt: skip
