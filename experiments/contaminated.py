"""Training data that holds anomalies: a plain fit, a contaminated one and a scan, on NAB and UCR.

    TISAT_DATA=folder python experiments/contaminated.py [--sets NAB,UCR] [--detectors mahalanobis,prism] [--most 30000]

The unsupervised protocol of TSB-AD: each series is learned from whole, its anomalies among the training rows, and scored whole. VUS-PR of the
statistic that alarms are raised on (2025 version, 250 thresholds), series with no event left out; differences are paired over series, with a
95 % bootstrap interval. Beside it, at a budget of 1/1000 rows: labelled events with an alarm while they last, and alarms in all. NAB and UCR are
read from TISAT_DATA/NAB and TISAT_DATA/UCR, files of arrays train, test and labels. No setting was chosen on these figures.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np

import tisat
from tisat.events import events_from_labels
from tisat_bench.tsb_ad.scoring import vus_of

BUDGET = "1/1000 rows"
WAYS = ("plain", "contaminated", "scan")


def scored(way: str, detector: str, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The statistic of every row, where an alarm is on, and how many alarms there are."""
    if way == "scan":
        found = tisat.scan(values, budget=BUDGET, detector=detector)
        return found.statistic, found.active, len(found)
    watch = tisat.Watch(detector, budget=BUDGET, contaminated=way == "contaminated").fit(values)
    found = watch.alarms(values)
    return watch.score(values), found.active, len(found)


def main() -> None:
    """Print a table for each set and detector."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", default="NAB,UCR")
    parser.add_argument("--detectors", default="mahalanobis,prism")
    parser.add_argument("--most", type=int, default=30_000, help="rows; longer series are left out")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in chosen.sets.split(","):
        files = sorted(Path(os.environ["TISAT_DATA"], name).glob("*.npz"))
        for detector in chosen.detectors.split(","):
            begun, rows = time.process_time(), []
            total, events_in_all, counts = 0, 0, {way: np.zeros(2) for way in WAYS}
            for file in files:
                held = np.load(file)
                values = np.concatenate([held["train"], held["test"]]).astype(np.float64)
                labels = np.concatenate([np.zeros(len(held["train"])), held["labels"]]).astype(bool)
                if len(values) > chosen.most or not labels.any():
                    continue
                events = events_from_labels(labels)
                total, events_in_all = total + len(values), events_in_all + len(events)
                measured = []
                for way in WAYS:
                    statistic, active, alarms = scored(way, detector, values)
                    measured.append(vus_of(values, labels, statistic))
                    counts[way] += sum(bool(active[start:stop].any()) for start, stop in events), alarms
                rows.append(measured)
            table = np.array(rows)
            print(
                f"\n{name}, {detector}: {len(table)} series, {total} rows, {events_in_all} events; budget {BUDGET}, {time.process_time() - begun:.0f} s CPU"
            )
            print("| way | VUS-PR | less plain (95 %) | events with an alarm | alarms |\n|---|---|---|---|---|")
            rng = np.random.default_rng(0)
            for column, way in enumerate(WAYS):
                difference = table[:, column] - table[:, 0]
                drawn = [rng.choice(difference, len(difference)).mean() for _ in range(10_000)]
                low, high = np.quantile(drawn, (0.025, 0.975))
                less = f"{difference.mean():+.3f} [{low:+.3f}, {high:+.3f}]" if column else ""
                print(
                    f"| {way} | {table[:, column].mean():.3f} | {less} | {counts[way][0]:.0f} | {counts[way][1]:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
