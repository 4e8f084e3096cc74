"""Faults found and false alarms on generated plants with on/off channels whose switching the other channels explain.

Three kinds of plant, all at one alarm per day, three weeks of training, four normal weeks, a week with six faults:

``stops``   a pump that runs on weekdays from 6 to 22, with a stop of 5 to 40 minutes about once a day at any time
``valve``   four smooth channels and a valve that opens and closes at random, on which none of them depends
``heater``  a thermostat: a heater that switches every 20 to 60 minutes, a temperature that follows it

A fault is found where an alarm is raised between its first row and an hour after its last; the channel is right where the
first alarm of the fault begins with it.

    python experiments/plants_that_switch.py --first 0 --plants 4       to develop on
    python experiments/plants_that_switch.py --first 500 --plants 10    looked at once
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from tisat.watch.watch import Watch

DAY = 1440
TRAIN, NORMAL, FAULTY = 21 * DAY, 28 * DAY, 7 * DAY
LATE = 60
ROWS = TRAIN + NORMAL + FAULTY
Columns = dict[str, np.ndarray]
Fault = tuple[str, int, int, str]


def smooth(values: np.ndarray, rate: float) -> np.ndarray:
    """First-order lag."""
    return np.asarray(lfilter([rate], [1.0, rate - 1.0], values))


def stops(rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """A pump with two loads, nights off, weekends off and irregular stops."""
    t = np.arange(ROWS)
    minute, weekday = t % DAY, (t // DAY) % 7
    run = ((minute >= 360) & (minute < 1320) & (weekday < 5)).astype(float)
    for _ in range(ROWS // DAY):
        first = int(rng.integers(0, ROWS - 60))
        run[first : first + int(rng.integers(5, 40))] = 0.0
    speed = smooth(np.where(minute >= 840, 1.0, 0.6) * run, 0.2)
    outside = 15 + 5 * np.sin(2 * np.pi * (minute - 540) / DAY) + 0.005 * np.cumsum(rng.normal(size=ROWS))
    made = {
        "current": 20 + 60 * speed + 0.8 * rng.normal(size=ROWS),
        "flow": 100 * speed + rng.normal(size=ROWS),
        "pressure": 2 + 4 * speed**2 + 0.05 * rng.normal(size=ROWS),
        "bearing": outside + 30 + 30 * smooth(speed, 0.02) + 0.3 * rng.normal(size=ROWS),
        "vibration": 0.3 + 1.5 * speed + 0.05 * rng.normal(size=ROWS),
        "level": 50 + 5 * np.sin(2 * np.pi * t / 300) + 0.4 * rng.normal(size=ROWS),
        "outside": outside,
        "on": run,
    }
    return made, run > 0


def valve(rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """Smooth channels and a valve that has nothing to do with them."""
    t = np.arange(ROWS)
    load = 50 + 10 * np.sin(2 * np.pi * t / DAY) + smooth(rng.normal(size=ROWS), 0.01) * 10
    switches = np.zeros(ROWS)
    at = 0
    while at < ROWS:
        at += int(rng.integers(30, 400))
        switches[at : at + 1] = 1
    flow = 2 * load + rng.normal(size=ROWS)
    made = {
        "flow": flow,
        "temperature": 20 + 0.4 * load + 0.3 * rng.normal(size=ROWS),
        "pressure": 3 + 0.02 * flow + 0.02 * rng.normal(size=ROWS),
        "vibration": 1 + 0.01 * load + 0.05 * rng.normal(size=ROWS),
        "valve": np.cumsum(switches) % 2,
    }
    return made, np.ones(ROWS, dtype=bool)


def heater(rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """A thermostat with a dead band."""
    t = np.arange(ROWS)
    outside = 5 + 6 * np.sin(2 * np.pi * t / DAY) + smooth(rng.normal(size=ROWS), 0.003) * 20
    on, temperature, noise = np.zeros(ROWS), np.zeros(ROWS), 0.01 * rng.normal(size=ROWS)
    now, hot = 40.0, 0.0
    for i in range(ROWS):
        hot = 1.0 if now < 38.0 else 0.0 if now > 42.0 else hot
        now += 0.32 * hot - 0.004 * (now - outside[i]) + noise[i]
        on[i], temperature[i] = hot, now
    made = {
        "temperature": temperature + 0.1 * rng.normal(size=ROWS),
        "power": 1 + 12 * on + 0.1 * rng.normal(size=ROWS),
        "return": smooth(temperature, 0.1) - 4 + 0.1 * rng.normal(size=ROWS),
        "outside": outside + 0.1 * rng.normal(size=ROWS),
        "fan": 3 + 0.05 * temperature + 0.1 * rng.normal(size=ROWS),
        "heater": on,
    }
    return made, np.ones(ROWS, dtype=bool)


PLANTS = {"stops": stops, "valve": valve, "heater": heater}
KINDS = ("level", "drift", "scaled", "stuck", "spike", "noisy")


def break_it(made: Columns, running: np.ndarray, rng: np.random.Generator) -> list[Fault]:
    """Put one fault of each kind into a day of the last week each, while the plant runs."""
    faults: list[Fault] = []
    names = [name for name, values in made.items() if len(np.unique(values)) > 10 and name != "outside"]
    spread = {name: float(np.std(np.diff(made[name])[running[1:]])) for name in names}
    for day, kind in enumerate(KINDS):
        name, rows = str(rng.choice(names)), 10 if kind == "spike" else int(rng.integers(90, 200))
        begin = TRAIN + NORMAL + (day if day < 5 else 3) * DAY
        good = [
            i
            for i in range(begin, begin + DAY - rows)
            if running[i : i + rows].all() and all(abs(i - a) > 400 for _, a, _, _ in faults)
        ]
        start = int(rng.choice(good)) if good else begin + 600
        here, values = slice(start, start + rows), made[name]
        size = max(4 * spread[name], 0.07 * float(np.ptp(values[:TRAIN])))
        if kind in ("level", "spike"):
            values[here] += size * (1 if kind == "level" else 2)
        elif kind == "drift":
            values[here] += np.linspace(0, 1.5 * size, rows)
        elif kind == "scaled":
            values[here] = (
                values[here].mean() + 2.0 * (values[here] - values[here].mean())
                if name == "level"
                else values[here] * 0.85
            )
        elif kind == "stuck":
            values[here] = values[start]
        else:
            values[here] += 3 * spread[name] * rng.normal(size=rows)
        faults.append((name, start, start + rows, kind))
    return faults


def look(kind: str, seed: int, *, verbose: bool) -> tuple[int, int, int, float, float]:
    """Faults found, found with the right channel first, false alarms in the normal weeks, threshold, CPU seconds."""
    rng = np.random.default_rng([seed, list(PLANTS).index(kind)])
    made, running = PLANTS[kind](rng)
    faults = break_it(made, running, rng)
    frame = pd.DataFrame(made, index=pd.date_range("2026-03-02", periods=ROWS, freq="min"))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = Watch(budget="1/day").fit(frame.iloc[:TRAIN])
        alarms = watch.alarms(frame.iloc[TRAIN:])
    spent = time.process_time() - began
    found = right = 0
    for name, start, stop, how in faults:
        own = [alarm for alarm in alarms if start - TRAIN <= alarm.raised < stop - TRAIN + LATE]
        found += bool(own)
        right += bool(own) and next(iter(own[0].channels)) == name
        if verbose:
            print(f"  {how:8s} {name:12s} {own[0] if own else 'not found'}")
    normal = [alarm for alarm in alarms if alarm.raised < NORMAL]
    if verbose:
        for alarm in normal:
            print(f"  false {alarm}")
    return found, right, len(normal), float(watch.calibration.threshold), spent


def main() -> None:
    """Print a line per plant and the totals of each kind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--plants", type=int, default=4)
    parser.add_argument("--kinds", default=",".join(PLANTS))
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    for kind in args.kinds.split(","):
        rows = []
        for seed in range(args.first, args.first + args.plants):
            rows.append(look(kind, seed, verbose=args.verbose))
            found, right, normal, threshold, spent = rows[-1]
            print(
                f"{kind:7s} {seed:4d}: {found} of 6 found, {right} right, {normal:3d} false of 28 allowed, threshold {threshold:.2f}, {spent:.1f} CPU s",
                flush=True,
            )
        mean = np.mean(rows, axis=0)
        within = sum(one[2] <= 28 for one in rows)
        print(
            f"{kind}: {mean[0]:.1f} found, {mean[1]:.1f} right, {mean[2]:.1f} false; within 28 in {within} of {len(rows)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
