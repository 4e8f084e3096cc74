"""How long should an alarm rule look back, and hold an alarm, where a row is an hour?

    python experiments/hourly_lengths.py [--first 0] [--buildings 6] [--hours 1] [--detector prism]

Buildings of three channels (power with a working week and weather, water, temperature), two years of training and one with
ten faults of 2 to 48 hours, at 1/week: 52 false alarms are allowed. ``--hours 0.25`` makes the same of rows of 15 minutes. A fault counts as
found where an alarm is raised in it or up to two hours after, as named where its channel is among the reasons with 30 % of the evidence.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd

from tisat import Watch

LENGTHS = [(20, 30), (10, 15), (6, 6), (4, 3), (3, 3)]
YEAR = 8760
# start as a share of the year, hours, channel, what becomes of the values
FAULTS = [
    (0.11, 3, 0, lambda x: x + 70.0), (0.19, 6, 1, lambda x: 0.0 * x), (0.28, 24, 0, lambda x: 0.0 * x + x[0]),
    (0.38, 4, 2, lambda x: x + 12.0), (0.47, 2, 1, lambda x: x + 9.0), (0.57, 48, 0, lambda x: x + 25.0),
    (0.67, 5, 0, lambda x: 0.3 * x), (0.76, 12, 1, lambda x: x + 2.0), (0.86, 3, 2, lambda x: x - 15.0), (0.94, 8, 0, lambda x: x + 60.0),
]  # fmt: skip


def building(years: int, seed: int, hours: float) -> pd.DataFrame:
    """Power, water and outside temperature of an office, a row every so many hours."""
    rng = np.random.default_rng(seed)
    times = pd.date_range("2023-01-02", periods=round(years * YEAR / hours), freq=pd.Timedelta(hours=hours))
    hour, day = times.hour + times.minute / 60, times.dayofyear
    walk, keep = np.zeros(len(times)), 0.98**hours
    noise = rng.normal(size=len(times)) * 2.5 * np.sqrt(1 - keep**2)
    for row in range(1, len(times)):
        walk[row] = keep * walk[row - 1] + noise[row]
    temperature = 10 - 9 * np.cos(2 * np.pi * (day - 15) / 365) + 4 * np.sin(2 * np.pi * (hour - 9) / 24) + walk
    busy = ((hour >= 7) & (hour < 19) & (times.dayofweek < 5)).astype(float)
    power = 30 + 60 * busy * (1 + 0.1 * rng.normal(size=len(times))) + 2 * np.maximum(18 - temperature, 0)
    water = 0.5 + 4 * busy * np.exp(0.15 * rng.normal(size=len(times))) + 0.1 * rng.normal(size=len(times))
    power = power + 2 * rng.normal(size=len(times))
    return pd.DataFrame({"power": power, "water": water, "temperature": np.asarray(temperature)}, index=times)


def main() -> None:
    """Print a line for each pair of lengths."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--buildings", type=int, default=6)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--detector", default="prism")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    counts = {lengths: np.zeros(5) for lengths in [None, *LENGTHS]}
    lasted: dict[object, list[float]] = {lengths: [] for lengths in counts}
    for seed in range(given.first, given.first + given.buildings):
        rows = building(3, seed, given.hours)
        year = round(YEAR / given.hours)
        train, test = rows[: 2 * year], rows[2 * year :].copy()
        faults = [(round(at * year), max(round(long / given.hours), 1), c, change) for at, long, c, change in FAULTS]
        for start, long, c, change in faults:
            test.iloc[start : start + long, c] = change(test.iloc[start : start + long, c].to_numpy())
        default = Watch(given.detector, budget="1/week").fit(train)
        for lengths, count in counts.items():
            watch = (
                default if lengths is None else default.recalibrated(rule={"length": lengths[0], "hold": lengths[1]})
            )
            alarms = list(watch.alarms(test))
            found = set()
            for start, long, c, _ in faults:
                hits = [one for one in alarms if start <= one.raised <= start + long + round(2 / given.hours)]
                found |= {id(one) for one in hits}
                count[0] += bool(hits)
                reasons = [why for one in hits for told in (one, *one.further) for why in told.reasons]
                count[1] += any(why.channel == rows.columns[c] and why.share >= 0.3 for why in reasons)
            count[2] += sum(id(one) not in found for one in alarms)
            lengths_on = [((one.cleared or year) - one.raised) * given.hours for one in alarms]
            count[3] += sum(lengths_on) / YEAR
            lasted[lengths] += lengths_on
    for lengths, count in counts.items():
        found, right, false, on, _ = count / given.buildings
        what = "as it is" if lengths is None else f"length {lengths[0]}, hold {lengths[1]}"
        print(
            f"{what:<22}{found:5.1f} of 10 found, {right:4.1f} named; {false:5.1f} false alarms of 52; "
            f"an alarm is on in {100 * on:4.1f} % of the hours, half of them longer than {np.median(lasted[lengths]):.0f} h"
        )


if __name__ == "__main__":
    main()
