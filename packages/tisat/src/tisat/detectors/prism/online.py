"""The views of prism on single windows, in one compiled loop: what a monitor and a fleet ask of it.

The quantities are those of the views, which whole series are given to; here each window is scaled, looked at and fused without
coming back to Python, and each sum has the same order for one window and for many. Windows that lack a value are not looked at here.
"""

from __future__ import annotations

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism import activity, neighbour, rhythm
from tisat.detectors.prism.activity import mean_squares
from tisat.detectors.prism.fusion import RELATIONS, fuse
from tisat.detectors.prism.hours import multiply
from tisat.detectors.prism.line import line_forecasts
from tisat.detectors.prism.modes import LEAST_STEP, summaries
from tisat.detectors.prism.relations import filtered
from tisat.detectors.prism.rhythm import echo_distances, make_echoes
from tisat.detectors.prism.schedule import place_of
from tisat.detectors.prism.switches import DAY, WEEKDAYS
from tisat.detectors.prism.transitions import cell_of, cell_of_window
from tisat.detectors.prism.trees import walk
from tisat.utils.compiled import compiled
from tisat.utils.neighbors import closest
from tisat.utils.types import AnyArray, Flags, Integers

ERROR, JOINT, NEIGHBOUR, ACTIVITY, RHYTHM = 0, 1, 2, 3, 5  # places of the views; fusion has that of RELATIONS
LEAST_SQUARE = activity.LEAST_STEP**2
STEPS, LAGS, WINDOW, LIVELY = rhythm.ROWS, rhythm.LAGS, neighbour.ROWS, activity.ROWS
LOWEST, HIGHEST = -4.0, 5.0  # scaled values are cut off here: 4 training ranges outside the training range
NOTHING = np.zeros((0, 0, 0), dtype=np.bool_)


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
def _spare(channels: int) -> tuple[Array, Flags, Array, Array, Array]:  # pragma: no cover - compiled
    """Room for :func:`_look_at_channels`, taken once for all windows."""
    steps, needed = np.empty((STEPS + LAGS, channels)), np.empty(STEPS, dtype=np.bool_)
    return steps, needed, np.empty((STEPS, LAGS + 1, channels)), np.empty((1, LAGS, channels)), np.empty((1, channels))


@compiled()
def _look_at_channels(
    rows: Array,
    at: Integers,  # (1,): the last row
    given: Array,  # (1, C): its errors by another forecaster than the line; (0, 0): none
    vectors: Array,
    line: Array,
    usual: Array,
    whitening: Array,
    spare: tuple[Array, Flags, Array, Array, Array],
    room: Array,  # (C,)
    errors: Array,  # (1, C)
    lively: Array,  # (1, C)
    parts: Array,  # (V, C)
    place: int,  # of the row's time among the slots at which jumps recur; -1: none of them
    slot_usual: Array,  # (S, C)
    slot_spread: Array,  # (S, C)
) -> None:  # pragma: no cover - compiled
    """The views of each channel by itself: error, activity and rhythm."""
    channels = line.shape[1]
    steps, needed, tens, echoes, summed = spare
    spread, active, active_spread = vectors[4], vectors[7], vectors[8]
    if len(given) == 0:
        line_forecasts(rows, at, line, vectors[2], vectors[3], errors)
    for c in range(channels):
        errors[0, c] = given[0, c] if len(given) else rows[at[0], c] - errors[0, c]
        parts[ERROR, c] = (errors[0, c] / spread[c]) ** 2
    _clear(summed[0])
    mean_squares(rows, at, LIVELY, summed)
    for c in range(channels):
        usual_now, spread_now = active[c], active_spread[c]
        if place >= 0:
            usual_now, spread_now = slot_usual[place, c], slot_spread[place, c]
        lively[0, c] = (0.5 * np.log(summed[0, c] + LEAST_SQUARE) - usual_now) / spread_now
        parts[ACTIVITY, c] = lively[0, c] ** 2
    make_echoes(rows, at, STEPS, vectors[12], vectors[13], steps, needed, tens, room, echoes)
    _clear(summed[0])
    echo_distances(echoes, usual, whitening, room, summed)
    for c in range(channels):
        parts[RHYTHM, c] = summed[0, c]


@compiled()
def _finish(
    parts: Array, units: Array, signed: Array, patterns: Array, errors: Array, beside: Array, lively: Array, row: Array, switches: Integers,
    ordinary: Array, levels: Array, exponents: Array, others: Integers, aside: int, unknown: Flags, room: Array, points: Array,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """A point ``(1, m)`` from contributions ``(1, V, C)`` of the views, the first of which are in ``units`` (V', C)."""
    views, channels = len(ordinary), len(signed)
    for v in range(len(units)):
        for c in range(channels):
            parts[0, v, c] /= units[v, c]
    _give_to_faulty(parts[0, aside], signed, patterns, room)
    fuse(
        parts, unknown, ordinary, levels, exponents, row, errors, beside, lively, others, aside, np.empty((3, views)), points
    )  # fmt: skip
    for c in switches:  # nobody expects a switch beyond its positions
        place = views + channels + c
        points[0, place] = min(max(points[0, place], 0.0), 1.0)
    for c in range(channels):
        points[0, views + 2 * channels + 1 + c] = signed[c]


@compiled()
def look_at_windows(
    windows: Array,  # (n, T, C or C + 1): as they came
    given: Array,  # (n, C): errors of the last rows by another forecaster than the line; (0, 0): none
    vectors: Array,  # (14, C): one number a channel; see :func:`_learned`
    line: Array,  # (lags - 1, C)
    usual: Array,  # (lags, C): of the rhythm
    whitening: Array,  # (lags, lags, C)
    patterns: Array,  # (C, C): of faults, one per column
    precision: Array,  # (C, C)
    shapes: Array,  # (N, 20): of the only channel; (0, 20) where there are several
    shape_heads: Array,
    centre: Array,  # (20 C,)
    basis: Array,  # (20 C, K)
    back: Array,  # (K, 20 C): its transpose
    stored: Array,  # (N, K)
    heads: Array,  # (8, N): the first columns of stored
    weights: Array,  # (3 C, C): of the relations
    filters: Array,  # (3, 59)
    others: Integers,
    switches: Integers,  # channels; empty where none switches
    scheduled: Flags,  # of each slot of a week: whether the series jumps; empty where it does in none
    units: Array,  # (cells, V, C); empty where there is neither
    hours: Array,  # (25, V, C): units of each hour; empty where hours are alike
    places: Integers,  # (673,) of each slot of a week among those at which jumps recur; empty where there is none
    slot_usual: Array,  # (S, C)
    slot_spread: Array,  # (S, C)
    ordinary: Array,  # (V, C)
    levels: Array,  # (V, 2)
    exponents: Array,  # (V,)
    edges: Array,
    unknown: Flags,  # (0, 0, 0)
    whole: Flags,  # (n,): set to False where a window lacks a value
    points: Array,  # (n, V + 3 C + 1)
) -> None:  # pragma: no cover - compiled
    """Points of the last row of each window, with deviations beside them, where there are no mode views."""
    n, length, channels, views = len(windows), windows.shape[1], line.shape[1], len(ordinary)
    last = np.empty(1, dtype=np.int64)
    last[0] = length - 1
    rows, part = np.empty((length, channels)), np.empty(max(len(stored), len(shapes)))
    inputs, codes, difference = np.empty((1, len(filters), channels)), np.empty(stored.shape[1]), np.empty(len(centre))
    room, parts, form = np.empty((2, channels)), np.empty((1, views, channels)), np.empty(shapes.shape[1])
    errors, beside, lively = np.empty((1, channels)), np.empty((1, channels)), np.empty((1, channels))
    signed, now = np.empty(channels), np.empty((views if len(units) or len(hours) else 0, channels))
    mean, still, constant, related, related_spread = vectors[5], vectors[6], vectors[9], vectors[10], vectors[11]
    spare = _spare(channels)
    for i in range(n):
        whole[i] = _scale(windows[i], vectors[0], vectors[1], rows)
        if not whole[i]:
            continue
        place = place_of(windows[i, length - 1, channels], places) if len(places) else -1
        _look_at_channels(
            rows, last, given[i : i + 1], vectors, line, usual, whitening, spare, room[0], errors, lively, parts[0],
            place, slot_usual, slot_spread,
        )  # fmt: skip
        # errors that do not go together; the shape of the only channel
        for c in range(channels):
            room[0, c] = errors[0, c] - mean[c]
            room[1, c] = 0.0
        _add_product(room[0], precision, room[1])
        for c in range(channels):
            parts[0, JOINT, c] = room[0, c] * room[1, c]
        if len(shapes):
            total = 0.0
            for j in range(len(form)):
                total += rows[length - len(form) + j, 0]
            for j in range(len(form)):
                form[j] = rows[length - len(form) + j, 0] - total / len(form)
            alike = shapes[closest(form, shapes, shape_heads, part[: len(shapes)])]
            parts[0, JOINT, 0] = 0.0
            for j in range(len(form)):
                parts[0, JOINT, 0] += (form[j] - alike[j]) ** 2
        # the nearest normal window
        _clear(codes)
        for j in range(WINDOW):
            for c in range(channels):
                difference[j * channels + c] = rows[length - WINDOW + j, c] - centre[j * channels + c]
        _add_product(difference, basis, codes)
        found = stored[closest(codes, stored, heads, part[: len(stored)])]
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
        # relations
        for k in range(len(filters)):
            _clear(inputs[0, k])
        filtered(rows, last, filters, inputs)
        _clear(room[0])
        for k in range(len(filters)):
            _add_product(inputs[0, k], weights[k * channels : (k + 1) * channels], room[0])
        for c in range(channels):
            lively[0, c] *= vectors[8, c]
            signed[c] = (inputs[0, 0, c] - room[0, c] - constant[c] - related[c]) / related_spread[c]
            parts[0, RELATIONS, c] = signed[c] ** 2
            beside[0, c] = signed[c] * related_spread[c]
        for v in range(len(now)):
            for c in range(channels):
                now[v, c] = 1.0
        if len(hours):
            clock = windows[i, length - 1, channels]
            multiply(now, hours[int(clock % DAY // 3600.0) if clock == clock else len(hours) - 1])
        if len(units):
            multiply(now, units[cell_of_window(rows, windows[i], switches, scheduled, edges)])
        _finish(
            parts, now, signed, patterns, errors, beside, lively, rows[length - 1 :], switches, ordinary, levels, exponents,
            others, RELATIONS, unknown, room, points[i : i + 1],
        )  # fmt: skip


@compiled()
def look_at_modes(
    windows: Array,
    given: Array,
    vectors: Array,
    line: Array,
    usual: Array,
    whitening: Array,
    patterns: Array,
    calendar: Array,  # (1,): 1 where the time of day counts
    holidays: Array,  # days since 1970
    weights: Array,  # (2, 4 C, C): of the regressions of levels and of activities
    intercepts: Array,  # (2, C)
    spread: Array,  # (2, cells, C)
    forests: tuple[tuple[AnyArray, ...], ...],  # of levels and of activities
    others: Integers,
    switches: Integers,
    units: Array,
    ordinary: Array,
    levels: Array,
    exponents: Array,
    edges: Array,
    unknown: Flags,
    whole: Flags,
    points: Array,
) -> None:  # pragma: no cover - compiled
    """The same where mode views stand in the place of those across channels."""
    n, length, channels, views = len(windows), windows.shape[1], line.shape[1], len(ordinary)
    last, past, mode = np.empty(1, dtype=np.int64), 4 * channels, views - len(weights)
    last[0] = length - 1
    rows, room, inputs = np.empty((length, channels)), np.empty((2, channels)), np.empty((1, past + len(switches) + 3))
    parts, expected, signed = np.zeros((1, views, channels)), np.empty((1, channels)), np.empty((2, channels))
    errors, beside, lively = np.empty((1, channels)), np.empty((1, channels)), np.empty((1, channels))
    spare = _spare(channels)
    for i in range(n):
        clock = windows[i, length - 1, channels] if windows.shape[2] > channels else np.nan
        whole[i] = _scale(windows[i], vectors[0], vectors[1], rows) and not (calendar[0] and np.isnan(clock))
        if not whole[i]:
            continue
        _look_at_channels(
            rows, last, given[i : i + 1], vectors, line, usual, whitening, spare, room[0], errors, lively, parts[0],
            -1, usual, usual,
        )  # fmt: skip
        summaries(rows, last, switches, LEAST_STEP, inputs)
        minute, weekday = -1.0, -1.0
        if calendar[0]:
            day = np.floor(clock / DAY)
            minute, weekday = np.floor((clock % DAY) / 60.0), (day + 3) % WEEKDAYS
            for holiday in holidays:
                weekday = 6.0 if holiday == day else weekday
        inputs[0, -2], inputs[0, -1] = minute, weekday
        cell = cell_of(inputs[0, -3], edges)
        for k in range(len(weights)):
            _clear(room[0])
            _clear(expected[0])
            _add_product(inputs[0, :past], weights[k], room[0])
            walk(inputs, expected, *forests[k])
            for c in range(channels):
                away = inputs[0, 3 * channels * k + c] - (room[0, c] + intercepts[k, c]) - expected[0, c]
                signed[k, c] = away / spread[k, cell, c]
                parts[0, mode + k, c] = signed[k, c] ** 2
        _clear(expected[0])
        for k in range(3):
            for c in range(channels):
                room[0, c] = rows[length - 1, c] - inputs[0, k * channels + c]
            _add_product(room[0], weights[0, k * channels : (k + 1) * channels], expected[0])
        for c in range(channels):
            beside[0, c], lively[0, c] = signed[0, c] * spread[0, cell, c], signed[1, c] * spread[1, cell, c]
            step = rows[length - 1, c] - inputs[0, c] - expected[0, c]  # not yet in the mean: see Mode.at_once
            beside[0, c] += step if step * beside[0, c] > 0.0 else 0.0
        _finish(
            parts, units[cell], signed[0], patterns, errors, beside, lively, rows[length - 1 :], switches, ordinary, levels,
            exponents, others, mode, unknown, room, points[i : i + 1],
        )  # fmt: skip
