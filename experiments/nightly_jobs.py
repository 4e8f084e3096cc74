"""Services with a job every night that no column tells: what knowing the times of jumps is worth.

    python experiments/nightly_jobs.py [--first 10] [--services 6] [--jitter 1]

Each service has six channels, a row every five minutes, four weeks of training and four of test with eight faults. A fault is found where an
alarm is raised in it or up to an hour later, reached where one is on by then; a false alarm is at night from 01:40 to 03:20. Without: the
same with the times taken away.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from tisat import Watch
from tisat.detectors.prism import modes

DAY, DAYS = 288, 28
LATE = 12  # rows after a fault in which an alarm is still about it
NIGHT = (20, 40)  # rows of the day
CHANNELS = ["requests", "cpu", "latency", "memory", "errors", "queue"]
KINDS = ("latency", "cpu", "leak", "traffic", "stuck", "errors", "queue", "noisy")


def smooth(rng: np.random.Generator, rows: int, keep: float) -> np.ndarray:
    """An autoregression with variance 1."""
    return np.asarray(lfilter([1.0], [1.0, -keep], rng.normal(size=rows) * np.sqrt(1 - keep**2)))


def service(rng: np.random.Generator, jitter: int) -> np.ndarray:
    """Eight weeks ``(T, 6)`` with a job of half an hour at two each night."""
    rows = 2 * DAYS * DAY
    at, weekend = np.arange(rows) % DAY / DAY, np.arange(rows) // DAY % 7 >= 5
    base = 1 + 0.6 * np.sin(2 * np.pi * (at - 0.35)) + 0.15 * np.sin(4 * np.pi * at)
    load = 200 * np.where(weekend, 0.6 * base + 0.2, base) * np.exp(0.05 * smooth(rng, rows, 0.9))
    runs = np.zeros(rows)
    for day in range(2 * DAYS):
        first = day * DAY + 24 + rng.integers(-jitter, jitter + 1)
        runs[first : first + 6 + rng.integers(-1, 2)] = 1.0
    return np.column_stack([
        load * (1 + 0.02 * rng.normal(size=rows)),
        10 + 0.15 * load + 35 * runs * np.exp(0.05 * rng.normal(size=rows)) + 1.5 * smooth(rng, rows, 0.6),
        40 + 0.1 * load + 25 * runs + 3 * smooth(rng, rows, 0.5) * np.sqrt(load / 200 + 0.1),
        50 + 2 * smooth(rng, rows, 0.99) + 6 * runs + 0.3 * rng.normal(size=rows),
        rng.poisson(0.01 * np.maximum(load, 0.0)) + 2 * runs,
        np.maximum(0.0, 5 + 0.02 * load + 2 * smooth(rng, rows, 0.8) + 40 * runs),
    ])  # fmt: skip


def break_it(values: np.ndarray, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Put eight faults into four weeks; where each is."""
    faults = []
    for k, kind in enumerate(KINDS):
        first = DAY * (2 + k * (DAYS - 4) // len(KINDS)) + int(rng.integers(60, 230))
        rows = slice(first, first + {"leak": 96, "stuck": 48}.get(kind, 24))
        long = rows.stop - first
        if kind == "latency":
            values[rows, 2] *= 1.8
        elif kind == "cpu":
            values[rows, 1] += 15
        elif kind == "leak":
            values[rows, 3] += np.linspace(0, 14, long)
        elif kind == "traffic":
            values[rows, 0] *= 0.5
        elif kind == "stuck":
            values[rows, 1] = values[first, 1]
        elif kind == "errors":
            values[rows, 4] += 12
        elif kind == "queue":
            values[rows, 5] += 15
        else:
            values[rows, 2] += 15 * rng.normal(size=long)
        faults.append((first, rows.stop))
    return faults


def main() -> None:
    """Print a line for each budget, with and without the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=10)
    parser.add_argument("--services", type=int, default=6)
    parser.add_argument("--jitter", type=int, default=1, help="rows by which the job may begin earlier or later")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    times, scheduled = pd.date_range("2026-01-05", periods=2 * DAYS * DAY, freq="5min"), modes.scheduled
    for knows in (False, True):
        modes.scheduled = scheduled if knows else lambda parts, clocks: np.zeros(0)
        for budget, allowed in {"1/day": 28, "1/week": 4, "2/month": 2}.items():
            counts = []
            for seed in range(given.first, given.first + given.services):
                rng = np.random.default_rng(seed)
                values = service(rng, given.jitter)
                faults = break_it(values[DAYS * DAY :], rng)
                frame = pd.DataFrame(values, columns=CHANNELS, index=times)
                alarms = Watch(budget=budget).fit(frame[: DAYS * DAY]).alarms(frame[DAYS * DAY :])
                found = sum(any(a <= one.raised <= b + LATE for one in alarms) for a, b in faults)
                reached = sum(
                    any(one.raised <= b + LATE and (one.cleared or len(frame)) >= a for one in alarms)
                    for a, b in faults
                )
                false = [one for one in alarms if not any(a <= one.raised <= b + LATE for a, b in faults)]
                nightly = sum(NIGHT[0] <= one.raised % DAY <= NIGHT[1] for one in false)
                counts.append((found, reached, len(false), nightly))
            found, reached, many, nightly = np.mean(counts, axis=0)
            print(
                f"{'with' if knows else 'without'} the times, {budget}: {found:.1f} of 8 found, an alarm on in {reached:.1f}; "
                f"{many:.1f} false alarms of {allowed}, {nightly:.1f} of them at night"
            )


if __name__ == "__main__":
    main()
