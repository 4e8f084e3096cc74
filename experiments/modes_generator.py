"""A generated plant with operating modes: shifts, weekends, set-points, pump stops, an on/off valve and a counter.

Twelve channels, one row per minute, from a Monday 00:00 on. A **schedule** of shifts gives the set-point; an operator
moves it now and then and stops the pump some ten times a week, at any hour of work. The pump's flow follows the set-point;
pressure, current, power, vibration and bearing temperature follow the flow through their own curves and inertia; the flow
fills a tank that a valve empties between two levels; a counter adds the flow up and starts again at its limit. In the
second week the bearing's sensor is replaced, and reads with an offset from then on: this is no fault.

Faults are of the kinds a plant has. Each acts on the machine and not on a column, so that a valve that does not open lets
the tank overflow its levels. Everything follows from one seed. This module does not know detectors or metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from tisat.datasets.injected_faults import DAY, WEEK, Fault, Plant
from tisat.errors import ParameterError
from tisat.events import labels_from_events
from tisat.series import Series
from tisat.utils.random import Seed, generator
from tisat.utils.types import Array, Flags
from tisat.utils.validation import check_integer

CHANNELS = (
    "set_point", "flow", "pressure", "pump_running", "motor_current", "bearing_temperature", "vibration", "drain_valve",
    "tank_level", "total_flow", "ambient_temperature", "power",
)  # fmt: skip
MODE_FAULTS: dict[str, tuple[str, ...]] = {  # kind -> the channels that a correct explanation begins with
    "valve stuck": ("drain_valve", "tank_level"),
    "leak": ("pressure",),
    "sensor drift": ("bearing_temperature",),
    "counter stuck": ("total_flow",),
    "stuck sensor": ("pressure",),
    "bearing wear": ("vibration", "bearing_temperature"),
    "loose contact": ("motor_current",),
    "pump worn": ("motor_current", "power"),
    "hunting control": ("flow",),
    "run on a Sunday": ("set_point", "flow", "pump_running"),
}
SUNDAY = "run on a Sunday"
COUNTER_LIMIT = 100_000.0
STOPS_PER_DAY = 2.0  # of a working day
LONGEST = 300  # minutes a fault takes at most
SLOTS = (8 * 60, 14 * 60 + 30)  # minutes of a day at which a fault may begin, within half an hour


@dataclass(frozen=True)
class _Machine:
    """Parameters of one generated plant."""

    shifts: tuple[int, int, int]  # minutes of the day: early shift, late shift, end of work
    levels: tuple[float, float, float]  # set-point of the early shift, the late shift and the night; 0: no work
    saturday: bool
    inertia: tuple[float, float, float]  # minutes: flow, pressure, bearing
    gains: Array  # (6,) pressure, idle current, current, vibration, temperature, power
    noise: Array  # (6,) flow, pressure, current, temperature, vibration, power
    tank: tuple[float, float, float]  # low and high level, outflow while the valve is open
    replaced: float  # offset of the new bearing sensor


def _machine(rng: np.random.Generator) -> _Machine:
    early = int(rng.integers(5 * 60, 7 * 60))
    late = early + 8 * 60
    night = float(rng.choice([0.0, 25.0, 30.0]))
    return _Machine(
        shifts=(early, late, min(late + int(rng.integers(7 * 60, 9 * 60)), DAY - 30)),
        levels=(float(rng.uniform(52, 64)), float(rng.uniform(40, 50)), night),
        saturday=bool(rng.random() < 0.5),
        inertia=(float(rng.uniform(2, 6)), float(rng.uniform(1, 4)), float(rng.uniform(25, 60))),
        gains=rng.uniform(0.85, 1.15, size=6),
        noise=np.array([0.35, 0.03, 0.12, 0.15, 0.05, 0.12]) * rng.uniform(0.7, 1.3, size=6),
        tank=(float(rng.uniform(1.0, 1.5)), float(rng.uniform(3.5, 4.5)), float(rng.uniform(140, 200))),
        replaced=float(rng.choice([-1.0, 1.0]) * rng.uniform(0.6, 1.2)),
    )


def _schedule(minutes: Array, machine: _Machine) -> Array:
    """The set-point of the shifts ``(T,)``: lower at night, on Saturdays work until the late shift at most, none on Sundays."""
    day, minute = (minutes // DAY).astype(np.int64) % 7, minutes % DAY
    begin, change, end = machine.shifts
    early, late, night = machine.levels
    goal = np.full(len(minutes), night)
    goal[(minute >= begin) & (minute < change)] = early
    goal[(minute >= change) & (minute < end)] = late
    goal[(day == 5) & ((minute >= change) | (not machine.saturday))] = 0.0
    goal[(day == 6) | ((day == 0) & (minute < begin))] = 0.0
    return goal


def _follow(values: Array, minutes: float) -> Array:
    """First-order response with a time constant in minutes."""
    keep = np.exp(-1.0 / minutes)
    return np.asarray(lfilter([1 - keep], [1.0, -keep], values, zi=[keep * values[0]])[0])


def _wander(length: int, memory: float, rng: np.random.Generator) -> Array:
    """Slow noise of unit spread."""
    keep = np.exp(-1.0 / memory)
    return np.asarray(lfilter([np.sqrt(1 - keep**2)], [1.0, -keep], rng.standard_normal(length)))


def _stops(goal: Array, rng: np.random.Generator) -> Flags:
    """Rows at which the pump is stopped by hand, 6 to 40 minutes each."""
    stopped = np.zeros(len(goal), dtype=np.bool_)
    for start in np.flatnonzero((rng.random(len(goal)) < STOPS_PER_DAY / (16 * 60)) & (goal > 0)):
        stopped[start : start + int(rng.integers(6, 40))] = True
    return stopped


def _moved(goal: Array, rng: np.random.Generator) -> Array:
    """The operator's corrections of the set-point: a step of up to a tenth that stays for some hours."""
    moves = rng.random(len(goal)) < 1.0 / 400
    steps = rng.uniform(0.92, 1.08, size=int(moves.sum()) + 1).round(2)
    return np.asarray(goal * steps[np.cumsum(moves)])


def _tank(flow: Array, stuck: Array, machine: _Machine, noise: Array) -> tuple[Array, Array]:
    """Level and valve ``(T,)``.

    ``stuck`` is NaN, or the position the valve is held in.
    """
    low, high, outflow = machine.tank
    levels, valves = np.empty(len(flow)), np.empty(len(flow))
    level, opened = (low + high) / 2, 0.0
    for t in range(len(flow)):
        opened = 1.0 if level >= high else 0.0 if level <= low else opened
        held = stuck[t]
        position = opened if held != held else held
        level = min(max(level + (flow[t] - position * outflow * min(level, 1.0)) / 2400.0, 0.0), 6.5)
        levels[t], valves[t] = level, position
    return levels + noise, valves


def _ramp(length: int, spans: Sequence[tuple[int, int]], rise: float) -> Array:
    """0 outside the spans, rising from 0 to 1 over the first share ``rise`` of each."""
    out = np.zeros(length)
    for start, stop in spans:
        out[start:stop] = np.minimum(np.arange(stop - start) / max(rise * (stop - start), 1.0), 1.0)
    return out


def _simulate(
    length: int, spans: dict[str, list[tuple[int, int]]], machine: _Machine, rng: np.random.Generator
) -> Array:
    """Values ``(T, 12)`` with faults in the spans given."""
    minutes = np.arange(length, dtype=np.float64)
    shape = {kind: _ramp(length, spans.get(kind, []), rise) for kind, rise in (
        ("leak", 0.1), ("sensor drift", 1.0), ("bearing wear", 0.5), ("pump worn", 0.2), ("hunting control", 0.0),
    )}  # fmt: skip
    g, n = machine.gains, machine.noise

    def white(size: float) -> Array:
        return size * rng.standard_normal(length)

    goal = _schedule(minutes, machine)
    for start, stop in spans.get(SUNDAY, []):
        goal[start:stop] = machine.levels[0]
    goal = _moved(goal, rng)
    running = (goal > 0) & ~_stops(goal, rng)
    drive = np.where(running, goal, 0.0)
    hunting = 2.5 * shape["hunting control"] * np.sin(2 * np.pi * minutes / 9.0)
    flow = _follow(drive, machine.inertia[0]) + running * hunting
    busy = flow / 60.0
    pressure = _follow(
        running * g[0] * (2.0 + 2.4 * busy**1.6) * (1.0 - 0.06 * shape["leak"]), machine.inertia[1]
    ) + 0.02 * _wander(length, 120.0, rng)
    current = running * (g[1] * 4.0 + g[2] * 7.5 * busy**1.3) * (1.0 + 0.06 * shape["pump worn"])
    wear = shape["bearing wear"]
    day = np.sin(2 * np.pi * (minutes - 9 * 60) / DAY)
    ambient = 18.0 + 4.0 * day + 2.5 * _wander(length, 2 * DAY, rng)
    heat = g[4] * (22.0 * busy + 8.0 * running) * (1.0 + 0.15 * wear)
    bearing = ambient + _follow(heat, machine.inertia[2])
    vibration = g[3] * (0.05 + running * (0.6 + 0.9 * busy**2)) * (1.0 + 0.35 * wear)
    vibration = vibration * (1.0 + n[4] * rng.standard_normal(length)) + white(0.01)
    power = g[5] * 0.66 * current + 1.5 + 0.8 * (ambient < 17.0)
    measured = np.maximum(flow + white(n[0]) * (0.2 + busy), 0.0)
    stuck = np.full(length, np.nan)
    for start, stop in spans.get("valve stuck", []):
        stuck[start:stop] = 0.0
    level, valve = _tank(flow, stuck, machine, white(0.01))
    rate = flow / 6.0
    for start, stop in spans.get("counter stuck", []):
        rate[start:stop] = 0.0
    total = np.floor(np.cumsum(rate) + rng.uniform(0, COUNTER_LIMIT)) % COUNTER_LIMIT
    current = current + white(n[2]) * running
    for start, stop in spans.get("loose contact", []):
        current[start:stop] += running[start:stop] * 6.0 * n[2] * rng.standard_normal(stop - start)
    pressure = pressure + white(n[1])
    for start, stop in spans.get("stuck sensor", []):
        pressure[start:stop] = pressure[start]
    bearing = bearing + white(n[3]) + 4.0 * shape["sensor drift"] + machine.replaced * (minutes >= 1.3 * WEEK)
    return np.column_stack([
        goal, measured, pressure, running, current, bearing, vibration, valve, level, total, ambient + white(0.1),
        power + white(n[5]),
    ])  # fmt: skip


def _placed(
    kinds: Sequence[str], n_faults: int, first: int, length: int, rng: np.random.Generator
) -> list[tuple[str, int, int]]:
    """Kind, first row and row after the last of each fault: two per working day at most, Sunday's on a Sunday."""
    days = range(-(-first // DAY), length // DAY)
    slots = [day * DAY + slot for day in days if day % 7 < 5 for slot in SLOTS]
    sundays = [day * DAY + SLOTS[0] for day in days if day % 7 == 6]
    fault_kinds = [kinds[i % len(kinds)] for i in range(n_faults)]
    on_sunday = fault_kinds.count(SUNDAY)
    if len(sundays) < on_sunday or len(slots) < n_faults - on_sunday:
        raise ParameterError(
            f"The 'n_test' parameter of make_plant_with_modes must leave two faults per working day and one per Sunday. "
            f"Got {len(slots)} places on working days and {len(sundays)} on Sundays for {n_faults} faults instead."
        )
    places = {True: sundays, False: sorted(rng.choice(slots, size=n_faults - on_sunday, replace=False).tolist())}
    order = rng.permutation(n_faults)
    placed = []
    for number in order:
        kind = fault_kinds[number]
        start = int(places[kind == SUNDAY].pop(0)) + int(rng.integers(30))
        placed.append((kind, start, start + int(rng.integers(150, LONGEST))))
    return sorted(placed, key=lambda one: one[1])


def make_plant_with_modes(
    *,
    n_train: int = 3 * WEEK,
    n_test: int = 5 * WEEK,
    n_normal: int = 4 * WEEK,
    n_faults: int = len(MODE_FAULTS),
    kinds: Sequence[str] = tuple(MODE_FAULTS),
    random_state: Seed = 0,
) -> Plant:
    """Make a plant with operating modes: normal training data, and test data with faults after some normal weeks.

    Parameters
    ----------
    n_train, n_test : int
        Rows, one per minute; the test follows the training data.
    n_normal : int
        Rows of the test before the first fault.
    n_faults : int
        Number of faults; their kinds are taken from ``kinds`` in turn.
    kinds : sequence of str
        Among ``MODE_FAULTS``, which names the channels of each.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    Plant
        Training series, test series and faults.

    Examples
    --------
    >>> plant = make_plant_with_modes(n_test=WEEK, n_normal=0, random_state=3)
    >>> plant.test
    Series('plant', 10080 rows x 12 channels, 10 events)
    >>> sorted(fault.kind for fault in plant.faults)[:3]
    ['bearing wear', 'counter stuck', 'hunting control']
    """
    caller = "make_plant_with_modes"
    check_integer(n_train, "n_train", caller, minimum=2)
    check_integer(n_test, "n_test", caller, minimum=2)
    check_integer(n_normal, "n_normal", caller, minimum=0)
    check_integer(n_faults, "n_faults", caller, minimum=0)
    if any(kind not in MODE_FAULTS for kind in kinds) or (n_faults and not kinds):
        raise ParameterError(
            f"The 'kinds' parameter of {caller} must be among {', '.join(MODE_FAULTS)}. Got {kinds!r} instead."
        )
    rng = generator(random_state, whose=caller)
    length = n_train + n_test
    machine = _machine(rng)
    placed = _placed(kinds, n_faults, n_train + n_normal, length, rng)
    spans: dict[str, list[tuple[int, int]]] = {}
    for kind, start, stop in placed:
        spans.setdefault(kind, []).append((start, min(stop, length)))
    values = _simulate(length, spans, machine, rng)
    faults = tuple(
        Fault(kind, start - n_train, min(stop, length) - n_train, tuple(map(CHANNELS.index, MODE_FAULTS[kind])))
        for kind, start, stop in placed
    )
    times = np.datetime64("2026-01-05T00:00:00", "ns") + np.arange(length) * np.timedelta64(60, "s")
    labels = labels_from_events([(fault.start, fault.stop) for fault in faults], length=n_test)
    return Plant(
        train=Series(values[:n_train], timestamps=times[:n_train], channels=CHANNELS, name="plant"),
        test=Series(values[n_train:], timestamps=times[n_train:], channels=CHANNELS, labels=labels, name="plant"),
        faults=faults,
    )
