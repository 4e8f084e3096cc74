"""Are budgets met by very long training data and by data with seasons? Generated normal rows, alarms counted on later ones.

    python experiments/long_and_seasonal_budgets.py long [--rows 5000000] [--seeds 1]
    python experiments/long_and_seasonal_budgets.py seasonal [--seeds 8]

``long``: five channels, each a sine of its own period and white noise, a row a minute; fitted on 5 million rows, the next million
counted at 1/day. ``seasonal``: four channels with a cycle of the year, of the week and of the day and correlated noise, a row an
hour; fitted on two years, the third counted at 1/week. Printed: alarms, the alarms that are allowed, their quotient, its exact
95 % interval, and whether that holds 1 or lies below it; with the threshold that follows the alarms (the default) and with one
that stays.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from scipy.stats import chi2

from tisat import Series
from tisat.watch import Watch

HOUR, MINUTE = 3600, 60
START = np.datetime64("2020-01-01T00:00:00", "s")


def long_rows(rows: int, seed: int) -> tuple[np.ndarray, int]:
    """Sines and white noise, a row a minute."""
    rng = np.random.default_rng(seed)
    at = np.arange(rows)[:, None]
    periods, phases = np.array([37.0, 90.0, 240.0, 720.0, 1440.0]), rng.uniform(0, 2 * np.pi, 5)
    return np.sin(2 * np.pi * at / periods + phases) + 0.2 * rng.standard_normal((rows, 5)), MINUTE


def seasonal_rows(rows: int, seed: int) -> tuple[np.ndarray, int]:
    """Cycles of the year, the week and the day with correlated noise, a row an hour."""
    rng = np.random.default_rng(seed)
    hours = np.arange(rows)[:, None]
    size, phase = rng.uniform(0.5, 2.0, (3, 4)), rng.uniform(0, 2 * np.pi, (3, 4))
    cycles = sum(
        size[i] * np.sin(2 * np.pi * hours / length + phase[i]) for i, length in enumerate((8766.0, 168.0, 24.0))
    )
    noise = np.empty((rows, 4))
    noise[0] = rng.standard_normal(4)
    shocks = rng.standard_normal((rows, 4)) * np.sqrt(1 - 0.7**2)
    for row in range(1, rows):
        noise[row] = 0.7 * noise[row - 1] + shocks[row]
    return cycles + 0.3 * noise, HOUR


def interval(alarms: int, allowed: float) -> tuple[float, float]:
    """Exact 95 % interval of observed / allowed for a Poisson count."""
    low = chi2.ppf(0.025, 2 * alarms) / 2 if alarms else 0.0
    return low / allowed, chi2.ppf(0.975, 2 * alarms + 2) / 2 / allowed


def count(values: np.ndarray, step: int, train: int, budget: str, period: float, *, control: bool) -> tuple[int, float]:
    """Alarms on the rows after the training rows, and those allowed there."""
    times = START + np.arange(len(values)) * step
    names = [f"c{i}" for i in range(values.shape[1])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = Watch(budget=budget, control=control).fit(
            Series(values[:train], timestamps=times[:train], channels=names)
        )
        found = watch.alarms(Series(values[train:], timestamps=times[train:], channels=names))
    return len(found), (len(values) - train) / period


def main() -> None:
    """Print one line for each seed and way, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("long", "seasonal"))
    parser.add_argument("--rows", type=int, default=5_000_000, help="training rows of long")
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    print(
        "| data | seed | threshold | alarms | allowed | observed / allowed | 95 % | CPU s |\n|---|--:|---|--:|--:|--:|---|--:|"
    )
    for control in (True, False):
        way, sums = "follows" if control else "stays", [0, 0.0]
        for seed in range(given.seeds):
            began = time.process_time()
            if given.kind == "long":
                train, budget, period = given.rows, "1/day", 1440.0
                values, step = long_rows(train + 1_000_000, seed)
            else:
                train, budget, period = 2 * 8766, "1/week", 168.0
                values, step = seasonal_rows(3 * 8766, seed)
            alarms, allowed = count(values, step, train, budget, period, control=control)
            sums = [sums[0] + alarms, sums[1] + allowed]
            low, high = interval(alarms, allowed)
            seconds = time.process_time() - began
            print(f"| {given.kind} | {seed} | {way} | {alarms} | {allowed:.0f} | {alarms / allowed:.2f} | {low:.2f} to {high:.2f} | {seconds:.0f} |", flush=True)  # fmt: skip
        low, high = interval(int(sums[0]), sums[1])
        print(f"| {given.kind} | all | {way} | {sums[0]:.0f} | {sums[1]:.0f} | {sums[0] / sums[1]:.2f} | {low:.2f} to {high:.2f} | |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
