"""How long an alarm is ongoing: rows after a step that stays, after it is undone, and normal rows, on generated plants.

A plant has six channels that follow one load; a model is fitted on 8,000 rows, and 6,000 more are watched with a step of 1.5, 3 or 6
standard deviations of a channel's noise from row 1,000 on, or without. "different" counts rows at which an alarm is raised or ongoing.

    python experiments/still_different.py               plants 0 to 5
    python experiments/still_different.py --plants 2
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from tisat.alarms.alarms import Alarm
from tisat.watch.watch import Watch

TRAIN, TEST, AT, UNDONE = 8000, 6000, 1000, 4000
SIZES = (1.5, 3.0, 6.0)
NOISE = 0.15


def make_rows(rows: int, rng: np.random.Generator) -> np.ndarray:
    """Six channels that follow a load, with noise of their own."""
    t = np.arange(rows) + rng.integers(0, 10_000)
    load = np.sin(t / 230.0) + 0.4 * np.sin(t / 41.0) + 0.2 * np.sin(t / 7.0)
    gains = np.linspace(0.5, 2.0, 6) * np.where(np.arange(6) % 2, -1.0, 1.0)
    return np.outer(load, gains) + NOISE * rng.standard_normal((rows, 6))


def share(alarms: tuple[Alarm, ...], begin: int, end: int) -> tuple[float, float]:
    """The shares of rows from ``begin`` to ``end`` with an alarm raised or ongoing, and with one ongoing."""
    on, ongoing = np.zeros((2, end), dtype=bool)
    for alarm in alarms:
        fell = end if alarm.cleared is None else alarm.cleared
        over = end if alarm.state in ("raised", "ongoing") else alarm.back or fell
        on[alarm.raised : over] = True
        if alarm.ongoing_since is not None:
            ongoing[alarm.ongoing_since : over] = True
    return float(on[begin:].mean()), float(ongoing[begin:].mean())


def main() -> None:
    """Print a line per size of step and one for normal rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--plants", type=int, default=6)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    stays: dict[float, list[float]] = {size: [] for size in SIZES}
    back: dict[float, list[int]] = {size: [] for size in SIZES}
    raised = dict.fromkeys(SIZES, 0)
    normal = []
    for seed in range(args.plants):
        rng = np.random.default_rng(seed)
        rows = make_rows(TRAIN + TEST, rng)
        watch = Watch(budget="1/2000 rows").fit(rows[:TRAIN])
        test = rows[TRAIN:]
        normal.append(share(watch.alarms(test).alarms, 0, TEST)[1])
        for size in SIZES:
            stepped = test.copy()
            stepped[AT:, seed % 6] += size * NOISE
            found = [one for one in watch.alarms(stepped) if one.raised >= AT]
            if found and found[0].raised < AT + 200:
                raised[size] += 1
                stays[size].append(share(tuple(found), found[0].raised, TEST)[0])
            stepped[UNDONE:, seed % 6] -= size * NOISE
            found = [one for one in watch.alarms(stepped) if AT <= one.raised < AT + 200]
            if found and found[0].ongoing_since is not None and found[0].back is not None:
                back[size].append(found[0].back - UNDONE)
    for size in SIZES:
        rest = f"{np.mean(stays[size]):.4f}" if stays[size] else "-"
        undone = f"{np.median(back[size]):.0f}" if back[size] else "-"
        print(
            f"step of {size} sd: raised in {raised[size]} of {args.plants}; different at {rest} of the rows from the raise to the end; "
            f"undone, it is back after {undone} rows (median of {len(back[size])})"
        )
    print(f"normal rows with an alarm ongoing: {100 * np.mean(normal):.3f} %")


if __name__ == "__main__":
    main()
