"""Offices with a working week in hourly rows: false alarms of a normal year, weak faults, closed working days, worked Sundays.

    python experiments/working_weeks.py [--first 0] [--offices 2]

Heat, outside temperature and electricity with a year, a day and a week; 1 to 2 years of training, a third, normal year at 1/week (52 false
alarms allowed), and the same with 24 faults of 8 hours. A fault is found where an alarm is raised in it or up to four hours after, a closed day or
a worked Sunday (7 to 19 o'clock) where one is raised within 17 hours of its beginning. Without: the same with the times of jumps taken away.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from tisat import Watch
from tisat.detectors.prism import modes

YEAR = 8760
SIZES = {"heat": 4.0, "outdoor": 4.0, "electricity": 10.0}


def office(seed: int) -> pd.DataFrame:
    """Three years, a row an hour; on working days electricity and heat are higher from 7 to 19 o'clock."""
    rng = np.random.default_rng(seed)
    times = pd.date_range("2021-01-01", periods=3 * YEAR, freq="h")
    year = np.cos(2 * np.pi * (np.asarray(times.dayofyear) - 20) / 365.25)
    day = np.sin(2 * np.pi * (np.asarray(times.hour) - 9) / 24)
    works = ((times.dayofweek < 5) & (times.hour >= 7) & (times.hour < 19)).astype(float)
    slow = [lfilter([1.0], [1.0, -0.95], size * rng.normal(size=len(times))) for size in (0.3, 0.6)]
    values = {
        "heat": 50 + 30 * year + 6 * day + 8 * works + slow[0],
        "outdoor": 10 - 12 * year + 4 * day + slow[1],
        "electricity": 100 + 25 * works + 5 * day - 5 * year + 2 * rng.normal(size=len(times)),
    }
    return pd.DataFrame(values, index=times)


def changed(frame: pd.DataFrame, first: int, rows: int, sizes: dict[str, float]) -> pd.DataFrame:
    """The frame with some channels moved for so many rows."""
    frame = frame.copy()
    for name, size in sizes.items():
        frame.iloc[first : first + rows, frame.columns.get_loc(name)] += size
    return frame


def main() -> None:
    """Print a line for each length of training, without and with the times of jumps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--offices", type=int, default=2)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    scheduled = modes.scheduled
    for knows in (False, True):
        modes.scheduled = scheduled if knows else lambda parts, clocks: np.zeros(0)
        for years in (1.0, 1.5, 2.0):
            counts = []
            for seed in range(given.first, given.first + given.offices):
                frame = office(seed)
                train, normal = frame[round((2 - years) * YEAR) : 2 * YEAR], frame[2 * YEAR :]
                watch = Watch(budget="1/week").fit(train)
                faulty, starts = normal, 300 + 350 * np.arange(24)
                for k, first in enumerate(starts):
                    name = list(SIZES)[k % 3]
                    faulty = changed(faulty, int(first), 8, {name: SIZES[name]})
                raised = [one.raised for one in watch.alarms(faulty)]
                weak = sum(any(first <= row < first + 12 for row in raised) for first in starts)
                midnights = np.flatnonzero(normal.index.hour == 0)[10:]
                days = {
                    True: midnights[normal.index.dayofweek[midnights] < 5][5::26],
                    False: midnights[normal.index.dayofweek[midnights] == 6][1::5],
                }
                seen = []
                for works, some in days.items():
                    sizes = {"heat": -8.0 if works else 8.0, "electricity": -25.0 if works else 25.0}
                    found = 0
                    for first in some[:10]:
                        alarms = watch.alarms(changed(normal, int(first) + 7, 12, sizes))
                        found += any(first + 7 <= one.raised < first + 24 for one in alarms)
                    seen.append(found)
                counts.append((len(watch.alarms(normal)), weak, *seen))
            false, weak, closed, sundays = np.mean(counts, axis=0)
            print(
                f"{'with' if knows else 'without'} the times, {years:g} years: {false:.1f} false alarms of 52, {weak:.1f} of 24 weak faults, "
                f"{closed:.1f} of 10 closed days, {sundays:.1f} of 10 worked Sundays",
                flush=True,
            )


if __name__ == "__main__":
    main()
