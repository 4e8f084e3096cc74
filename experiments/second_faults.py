"""Is a fault named that begins while the alarm of another one is on?

    python experiments/second_faults.py [--first 100] [--plants 4] [--pairs 160]

Each pair is two faults on two channels of a plant (offset, ramp, noise or spikes of 3 to 10 of the channel's standard
deviations, 20 to 120 rows), the second 3 to 60 rows after the first begins. A pair counts where each fault alone raises an
alarm. The delay of the second is that of its channel's name in any alarm, less that of its alarm when it comes alone. The
first faults alone say how often a channel is named that has none.
"""

from __future__ import annotations

import argparse

import numpy as np

from tisat import Watch
from tisat.datasets.synthetic import make_plant

KINDS = ("offset", "ramp", "noise", "spikes")
LARGE = 0.3  # share of the evidence from which a channel counts as named
AFTER = 60  # rows after the second fault in which its channel may still be named


def add(values: np.ndarray, start: int, fault: dict, unit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A copy of the values with a fault in it."""
    rows = np.arange(fault["rows"])
    shape = {
        "offset": np.ones(len(rows)), "ramp": np.minimum(1.0, rows / 15), "noise": 0.5 * rng.normal(size=len(rows)),
        "spikes": (rows % 7 == 0).astype(float),
    }[fault["kind"]]  # fmt: skip
    out = values.copy()
    out[start : start + len(rows), fault["channel"]] += fault["size"] * unit[fault["channel"]] * shape
    return out


def named(alarms: object, channel: str, start: int, stop: int) -> int | None:
    """The first row from which an alarm names the channel."""
    rows = []
    for alarm in alarms:
        if alarm.cleared is not None and alarm.cleared <= start:
            continue
        if any(why.channel == channel and why.share >= LARGE for why in alarm.reasons):
            rows.append(max(alarm.raised, start))
        rows += [more.at for more in alarm.further for why in more.reasons if why.channel == channel]
    return min((row for row in rows if start <= row < stop), default=None)


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--plants", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=160)
    given = parser.parse_args()
    rng, late, missed, wrong, counted = np.random.default_rng(given.first), [], 0, 0, 0
    plants = [
        make_plant(random_state=given.first + number, n_train=8000, n_test=6000, n_faults=0)
        for number in range(given.plants)
    ]
    watches = [Watch(budget="1/1000 rows").fit(plant.train) for plant in plants]
    for number in range(given.pairs):
        plant, watch = plants[number % given.plants], watches[number % given.plants]
        names, unit = watch.channels, plant.train.values.std(axis=0)
        first = int(rng.integers(0, 5000))
        rows, start = plant.test.values[first : first + 900], 400
        second = start + int(rng.integers(3, 60))
        faults = [
            {"channel": int(c), "kind": str(rng.choice(KINDS)), "size": rng.uniform(3, 10), "rows": int(rng.integers(20, 120))}
            for c in rng.choice(len(names), 2, replace=False)
        ]  # fmt: skip
        one = add(rows, start, faults[0], unit, rng)
        first_alone = [each for each in watch.alarms(one) if start <= each.raised < start + 200]
        others = [why.channel for each in first_alone for more in each.further for why in more.reasons]
        wrong += any(channel != names[faults[0]["channel"]] for channel in others)
        stop = second + faults[1]["rows"]
        raised = [
            each.raised
            for each in watch.alarms(add(rows, second, faults[1], unit, rng))
            if second <= each.raised < stop + 20
        ]
        if not first_alone or not raised:
            continue
        counted += 1
        channel = names[faults[1]["channel"]]
        row = named(watch.alarms(add(one, second, faults[1], unit, rng)), channel, second, stop + AFTER)
        if row is None:
            missed += 1
        else:
            late.append(row - min(raised))
    soon = sum(rows <= 5 for rows in late)
    print(
        f"{counted} pairs: the second fault is named in {counted - missed}, in {soon} at most 5 rows later than alone "
        f"(median {np.median(late):.0f} rows); {wrong} of {given.pairs} single faults name a channel without one"
    )


if __name__ == "__main__":
    main()
