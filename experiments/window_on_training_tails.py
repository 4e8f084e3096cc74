"""How long the windows of the windowed detectors should be, asked of training data alone.

    TISAT_DATA=... python experiments/window_on_training_tails.py [--only pca,lof]

Fit on the first 60 % of a training split and look at the rest of it, twice: as it is (the share of normal rows above the
fitted q99; 1 % would be kept exactly), and with made-up faults of every kind of the generator, one after another, each in
one moving channel and as large as that channel's standard deviation (SPD at delta_max 100, mean over entities). Three SMD
machines with seven faults each, and the ten longest telemetry channels of SMAP that move, with three short faults each. No
test row and no label of the data sets is read. The table is in ``docs/detectors/README.md``.
"""

from __future__ import annotations

import argparse

import numpy as np

from tisat.datasets.synthetic import KINDS
from tisat.detectors import make
from tisat.metrics import spd_score
from tisat_bench import datasets

DETECTORS = ("pca", "mahalanobis", "isolation-forest", "ocsvm", "lof", "nearest-neighbors")
WINDOWS = (1, 5, 10, 20, 40)
SMD = ("machine-1-2", "machine-2-1", "machine-3-2")
SHORT = ("spike", "level shift", "changed frequency")


def with_faults(
    tail: np.ndarray, spread: np.ndarray, kinds: tuple[str, ...], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The tail with one fault a kind, evenly spread, and its labels."""
    rng = np.random.default_rng(seed)
    faulty, labels = tail.copy(), np.zeros(len(tail), dtype=np.int8)
    slot = len(tail) // len(kinds)
    moving = np.flatnonzero(spread > 0)
    for i, kind in enumerate(kinds):
        maker, (shortest, longest) = KINDS[kind]
        length = min(int(rng.integers(shortest, longest + 1)), slot // 3)
        start = i * slot + slot // 2
        c = rng.choice(moving)
        event = slice(start, start + length)
        faulty[event, c] = maker(tail[event, c], tail[:, c], start, float(spread[c]), rng)
        labels[event] = 1
    return faulty, labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only")
    options = parser.parse_args()
    cases = []
    for which, names, kinds in (("smd", SMD, tuple(KINDS)), ("smap", None, SHORT)):
        trains = [np.asarray(entity.train.values) for entity in datasets.load(which, entities=names).entities]
        trains = [train for train in trains if np.ptp(train[: int(0.6 * len(train))]) > 0]
        cases.append((which, sorted(trains, key=len)[-10:], kinds))
    print(
        "| detector | window | SMD above q99 | SMD made-up faults | SMAP above q99 | SMAP made-up faults |\n|---|---|---|---|---|---|"
    )
    for name in options.only.split(",") if options.only else DETECTORS:
        for window in WINDOWS:
            cells = []
            for _, trains, kinds in cases:
                above, found = [], []
                for seed, train in enumerate(trains):
                    cut = int(0.6 * len(train))
                    detector = make(name, window=window).fit(train[:cut], holdout=0)
                    normal = detector.decision_function(train[cut:])
                    above.append(np.mean(normal[~np.isnan(normal)] > detector.normal_level()))
                    faulty, labels = with_faults(train[cut:], train[:cut].std(axis=0), kinds, seed)
                    found.append(spd_score(labels, detector.decision_function(faulty), delta_max=100))
                cells += [f"{100 * np.mean(above):.1f} %", f"{np.mean(found):.2f}"]
            print(f"| {name} | {window} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
