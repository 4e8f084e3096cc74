"""Something goes wrong early in a stream: are later faults still found, and as soon?

    python experiments/early_faults.py [--detectors prism,linear-last] [--set warm=100]

Eight plants of six channels, a week of training, 1 false alarm a day, six kinds of fault, three of each kind at rows 700, 1500 and
2300 (60 rows). Beside each such file the same with one more event at row 130, 200, 300 or 450: one value of 1e30 in another
channel; the same fault; another fault in another channel; a level shift of 150 rows in another channel. *Kept*: later faults
found without the event that are found with it too (within 80 rows); *late*: those of them found more than 2 rows later.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from excess_settings import DAY, FAULTS, normal, scored

from tisat.alarms.calibration import NormalEvidence
from tisat.alarms.rules import make_rule
from tisat.datasets.synthetic import KINDS, make_plant
from tisat.detectors import make

SEEDS, EARLY, LATE, SPAN, ROWS = range(700, 708), (130, 200, 300, 450), (700, 1500, 2300), 60, 3000
EVENTS = ("absurd value", "same fault", "another fault", "long shift")


def files(values: np.ndarray, step: np.ndarray, seed: int) -> Any:
    """For each kind of fault the rows without an early event, and with each, by its name."""

    def put(rows: np.ndarray, kind: str, start: int, c: int, number: int) -> None:
        size = 8 * step[c] * (4 if kind == "spike" else 1)
        here, rng = slice(start, start + SPAN), np.random.default_rng(number)
        rows[here, c] = KINDS[kind][0](rows[here, c], values[:, c], start, size, rng)

    for number, kind in enumerate(FAULTS):
        c = (seed + number) % 6
        alone = values[:ROWS].copy()
        for start in LATE:
            put(alone, kind, start, c, number + start)
        made = []
        for event in EVENTS:
            for t in EARLY:
                rows = alone.copy()
                if event == "absurd value":
                    rows[t, (c + 1) % 6] = 1e30
                elif event == "same fault":
                    put(rows, kind, t, c, number)
                elif event == "another fault":
                    put(rows, FAULTS[(number + 1) % 6], t, (c + 2) % 6, number)
                else:
                    rows[t : t + 150, (c + 1) % 6] += 20 * step[(c + 1) % 6]
                made.append((event, rows))
        yield alone, made


def measured(name: str, options: dict[str, float]) -> None:
    found: dict[str, list[np.ndarray]] = {event: [] for event in EVENTS}
    for seed in SEEDS:
        plant = make_plant(n_train=7 * DAY, n_test=ROWS, n_channels=6, n_faults=0, random_state=seed)
        detector: Any = make(name).fit(plant.train)
        rule = make_rule("excess", **options)
        breaks = np.asarray(detector.normal_breaks_).tolist()
        threshold = NormalEvidence(rule, normal(detector), breaks=breaks).calibrate(1 / DAY).threshold

        def first(rows: np.ndarray, detector: Any = detector, rule: Any = rule, h: float = threshold) -> np.ndarray:
            active = rule.accumulate(rule.evidence(scored(detector, rows)), threshold=h).active
            within = [np.append(np.flatnonzero(active[start : start + SPAN + 20]), np.inf) for start in LATE]
            return np.array([one[0] for one in within])

        values = np.array(plant.test.values)
        for alone, made in files(values, np.diff(plant.train.values, axis=0).std(axis=0), seed):
            before = first(alone)
            for event, rows in made:
                found[event].append(np.stack([before, first(rows)]))
    cells = []
    for pairs in found.values():
        before, after = np.concatenate(pairs, axis=1)
        both = np.isfinite(before) & np.isfinite(after)
        late = (after[both] - before[both] > 2).mean()
        cells.append(f"{both.sum() / np.isfinite(before).sum():.3f}, {late:.3f}")
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--detectors", default="prism,linear-last,mahalanobis")
    parser.add_argument("--set", action="append", default=[], help="An option of the excess rule, as warm=100.")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    options = {name: int(value) for name, _, value in (one.partition("=") for one in given.set)}
    print("| kept, late | " + " | ".join(EVENTS) + " |\n|" + "---|" * (1 + len(EVENTS)))
    for name in given.detectors.split(","):
        measured(name, options)


if __name__ == "__main__":
    main()
