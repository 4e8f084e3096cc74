"""Does TiSAT learn? Trained against its untrained self and the last-value forecast, over three seeds.

For each entity: the mean squared one-step forecast error on the unlabelled rows of the test split, in units of the
last-value forecast's, and SPD at delta_max 100 of the plain score (no alarm rule, one entity at a time). The untrained
self has the same architecture, scaling, anchor and spreads, and the weights of the seed; nothing is tuned here. Finished
rows are kept and skipped when the script is started again.

    TISAT_DATA=... python experiments/tisat_learns.py --results experiments/tisat_learns.jsonl
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from tisat.datasets import load
from tisat.datasets.synthetic import make_plant
from tisat.detectors import make
from tisat.detectors.tisat import TiSAT
from tisat.metrics import spd_score
from tisat.series import Series

ENTITIES = (
    ("plant", "0"),
    ("plant", "1"),
    ("msl", "C-1"),
    ("msl", "D-15"),
    ("msl", "F-7"),
    ("smap", "E-1"),
    ("smap", "T-1"),
    ("smap", "P-1"),
    ("smd", "machine-1-2"),
    ("smd", "machine-2-1"),
    ("smd", "machine-3-2"),
)
SEEDS = (0, 1, 2)
DELTA_MAX = 100
WINDOWS = 1500  # training windows an epoch at most, by stride
ROWS = 10_000  # rows of a test split that are scored at most: its beginning


class Untrained(TiSAT):
    """TiSAT with the weights it starts from; random ones throughout, as without the linear skip."""

    def _train(self, values: torch.Tensor, lengths: Sequence[int]) -> None:
        self.network_.eval()
        self.history_, self.training_seconds_ = (), 0.0


def entity(group: str, name: str) -> tuple[Series, Series]:
    if group == "plant":
        plant = make_plant(random_state=int(name))
        return plant.train, plant.test
    found = load(group, entities=[name])[name]
    return found.train, found.test[:ROWS]


def run(group: str, name: str, system: str, seed: int) -> dict[str, float]:
    train, test = entity(group, name)
    started = time.process_time()
    if system == "last value":
        detector = make("last-value").fit(train)
    elif system == "linear-mean":
        detector = make("linear-mean").fit(train)
    else:
        cls, skip = (Untrained, False) if system == "untrained" else (TiSAT, None)
        stride = max(1, len(train) // WINDOWS)
        detector = cls(random_state=seed, stride=stride, device="cpu", linear_skip=skip).fit(train)
    points = detector.points(test)
    spread = np.atleast_2d(detector.spread_)[0]
    scale = np.ptp(np.asarray(train.values), axis=0)
    moved = scale > 0
    nominal = ~test.labels
    nominal[:100] = False  # the longest warm-up, for all alike
    errors = (points * spread / np.where(moved, scale, 1.0))[:, moved][nominal]
    score = float(spd_score(test.labels, detector._aggregate(points), delta_max=DELTA_MAX))
    return {"error": float((errors**2).mean()), "spd": score, "seconds": time.process_time() - started}


def finished(results: Path) -> list[dict[str, float | str]]:
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def table(rows: list[dict[str, float | str]]) -> None:
    systems = ("last value", "linear-mean", "untrained", "trained")
    print(
        "| entity | "
        + " | ".join(f"{s}: error" for s in systems[1:])
        + " | "
        + " | ".join(f"{s}: SPD" for s in systems)
        + " |"
    )
    print("|---" * (len(systems) * 2) + "|")
    for group, name in ENTITIES:
        mine = [row for row in rows if row["entity"] == f"{group} {name}"]
        base = [row["error"] for row in mine if row["system"] == "last value"]
        if not base:
            continue
        errors, scores = [], []
        for system in systems:
            error = np.array([row["error"] for row in mine if row["system"] == system]) / base[0]
            spd = np.array([row["spd"] for row in mine if row["system"] == system])
            if system != "last value":
                errors.append(
                    f"{error.mean():.2f} ({error.min():.2f} to {error.max():.2f})"
                    if len(error) > 1
                    else "".join(f"{e:.2f}" for e in error)
                )
            scores.append(
                f"{spd.mean():.3f} ({spd.min():.3f} to {spd.max():.3f})"
                if len(spd) > 1
                else "".join(f"{s:.3f}" for s in spd)
            )
        print(f"| {group} {name} | " + " | ".join(errors) + " | " + " | ".join(scores) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--seed", type=int, help="Only this seed: several processes may share a results file.")
    parser.add_argument("--table", action="store_true", help="Only print the table of what is finished.")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tasks = [(group, name, system, 0) for group, name in ENTITIES for system in ("last value", "linear-mean")]
    tasks += [
        (group, name, system, seed) for seed in SEEDS for group, name in ENTITIES for system in ("trained", "untrained")
    ]
    if options.seed is not None:
        tasks = [task for task in tasks if task[3] == options.seed]
    for group, name, system, seed in [] if options.table else tasks:
        key = {"entity": f"{group} {name}", "system": system, "seed": seed}
        if any(all(row[k] == v for k, v in key.items()) for row in finished(options.results)):
            continue
        row = {**key, **run(group, name, system, seed)}
        with options.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
    table(finished(options.results))


if __name__ == "__main__":
    main()
