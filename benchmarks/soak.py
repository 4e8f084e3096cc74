"""Soak: a fleet for as long as asked, with faults in rows, times and restarts; memory, results and latency are watched.

    python benchmarks/soak.py --entities 1000 --minutes 20

Every row carries the entity's own count in its first channel, so that a result that is lost or doubled shows. Bad rows (text,
infinities, wrong lengths), bad times (late, repeated, far ahead, garbage), silent channels and huge values come at random;
entities retire and come back from their own state, and the whole fleet is saved and restored. It ends with exit code 1
where a result was lost or doubled, or where memory grew by more than 5 % after the first fifth.
"""

import argparse
import json
import os
import random
import sys
import time
import warnings

import numpy as np

from tisat.watch import Fleet, Watch

PERIOD = 60.0
CHANNELS = 8


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def bad_row(rng, row, moment):
    """A row or time that must be refused, left out or judged, and never break anything; None: the row as it is."""
    kind = rng.randrange(400)
    if kind == 0:
        return ["x"] * CHANNELS, moment
    if kind == 1:
        return row[:-1], moment
    if kind == 2:
        return [float("inf"), *row[1:]], moment
    if kind == 3:
        return row, "garbage"
    if kind == 4:
        return row, moment - 10 * PERIOD
    if kind == 5:
        return row, moment + 1e8
    if kind == 6:
        return [10**400, *row[1:]], moment
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--detector", default="linear-last")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    noise = np.random.default_rng(options.seed)
    rng = random.Random(options.seed)
    train = noise.standard_normal((3000, CHANNELS)).cumsum(axis=0) * 0.1
    watch = Watch(options.detector, budget="1/1000 rows", period=PERIOD).fit(train)
    names = [f"entity-{number}" for number in range(options.entities)]
    fleet = watch.fleet(names)
    accepted = dict.fromkeys(names, 0)  # rows each entity must have judged
    level = np.zeros((options.entities, CHANNELS))
    waits, sizes, lost, steps, alarms = [], [], 0, 0, 0
    end = time.monotonic() + 60.0 * options.minutes
    while time.monotonic() < end:
        steps += 1
        moment = PERIOD * steps
        level = 0.95 * level + 0.1 * noise.standard_normal(level.shape)
        level[noise.random(level.shape) < 1e-5] += 50.0
        values = np.where(noise.random(level.shape) < 1e-3, np.nan, level)
        if steps % 50 < 15:
            values[: options.entities // 100, 3] = np.nan  # some sensors die for a while
        items, expected = [], []
        for number, name in enumerate(names):
            row = values[number].tolist()
            wrong = bad_row(rng, row, moment) if steps > 2 else None  # the first times of an entity are believed
            if wrong is not None:
                items.append((name, *wrong))
                expected.append(None)
            items.append((name, row, moment))
            expected.append(accepted[name])
            accepted[name] += 1
        start = time.perf_counter()
        verdicts = fleet.judge(items)
        waits.append((time.perf_counter() - start) / len(items))
        for (name, _, _), verdict, count in zip(items, verdicts, expected, strict=True):
            json.dumps(verdict.to_json(), allow_nan=False)
            alarms += verdict.raised
            if (
                verdict.entity != name
                or (count is None) != (verdict.row < 0)
                or (count is not None and verdict.row != count)
            ):
                lost += 1
        if rng.random() < 0.2:
            name = rng.choice(names)
            fleet.enrol(name, fleet.retire(name))
        if steps % 200 == 0:
            fleet.snapshot(f"soak-{os.getpid()}.state")
            fleet = Fleet.load(watch, f"soak-{os.getpid()}.state")
            os.unlink(f"soak-{os.getpid()}.state")
        if steps % 10 == 0:
            sizes.append(resident())
    rows = steps * options.entities
    early = max(sizes[len(sizes) // 5 : 2 * len(sizes) // 5 + 1], default=resident())
    growth = max(sizes[-len(sizes) // 5 :], default=early) / early - 1.0
    print(f"{rows:,} rows of {options.entities:,} entities in {options.minutes:g} minutes; {alarms:,} alarms raised")
    print(f"results lost or doubled: {lost}")
    print(f"memory: {early / 1e6:.0f} MB, growth {growth:+.1%}")
    print(
        f"time per row in a call: median {1e6 * np.median(waits):.0f} us, p99 {1e6 * np.quantile(waits, 0.99):.0f} us"
    )
    sys.exit(1 if lost or growth > 0.05 else 0)


if __name__ == "__main__":
    main()
