"""Does TiSAT learn? Trained against its untrained self and the last-value forecast, over three seeds.

For each entity: the mean squared one-step forecast error on the unlabelled rows of the test split, in units of the
last-value forecast's, and SPD at delta_max 100 of the plain score and under the excess rule (one entity at a time). The untrained
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

from tisat.alarms.rules import make_rule
from tisat.datasets.synthetic import make_plant
from tisat.detectors import make
from tisat.detectors.tisat import TiSAT
from tisat.metrics import spd_score
from tisat.series import Series
from tisat_bench.datasets import load
from tisat_bench.rule_counts import NEVER

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
WARM_UP = 100  # rows, TiSAT's window: the first forecast of every system is of the row after them


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
    return found.train, found.test


def run(group: str, name: str, system: str, seed: int) -> dict[str, float]:
    train, test = entity(group, name)
    started = time.process_time()
    if system == "last value":
        detector = make("last-value").fit(train)
    elif system == "linear-mean":
        detector = make("linear-mean").fit(train)
    else:
        cls, skip = (Untrained, False) if system == "untrained" else (TiSAT, None)
        detector = cls(random_state=seed, device="cpu", linear_skip=skip).fit(train)
    points, values = detector.points(test), np.asarray(test.values)
    scale = np.ptp(np.asarray(train.values), axis=0)
    moved = scale > 0
    normal = ~test.labels[WARM_UP:]
    if isinstance(detector, TiSAT):
        residuals = detector._window_residuals(values, every=1)[:, 0]  # one row ahead
    else:
        residuals = (points * detector.spread_)[WARM_UP:]
    errors = (residuals / np.where(moved, scale, 1.0))[:, moved][normal]
    score = float(spd_score(test.labels, detector.aggregate(points), delta_max=DELTA_MAX))
    rule = make_rule("excess").fit(detector.normal_, scores=detector.aggregate(detector.normal_))
    evidence = rule.evidence(points, scores=detector.aggregate(points))
    excess = float(spd_score(test.labels, rule.accumulate(evidence, threshold=NEVER).statistic, delta_max=DELTA_MAX))
    return {
        "error": float((errors**2).mean()),
        "spd": score,
        "excess": excess,
        "seconds": time.process_time() - started,
    }


def finished(results: Path) -> list[dict[str, float | str]]:
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def table(rows: list[dict[str, float | str]], measure: str) -> None:
    systems = ("last value", "linear-mean", "untrained", "trained")
    print(f"\n| {measure} | " + " | ".join(systems) + " |\n|---" + "|---" * len(systems) + "|")
    for group, name in ENTITIES:
        mine = [row for row in rows if row["entity"] == f"{group} {name}"]
        base = [row["error"] for row in mine if row["system"] == "last value"] if measure == "error" else [1.0]
        cells = []
        for system in systems:
            found = np.array([row[measure] for row in mine if row["system"] == system]) / (base or [np.nan])[0]
            spread = f" ({found.min():.3g} to {found.max():.3g})" if len(found) > 1 else ""
            cells.append(f"{found.mean():.3g}{spread}" if len(found) else "")
        print(f"| {group} {name} | " + " | ".join(cells) + " |")


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
    tasks.sort(key=lambda task: task[0] == "smd")  # the costliest last
    if options.seed is not None:
        tasks = [task for task in tasks if task[3] == options.seed]
    for group, name, system, seed in [] if options.table else tasks:
        key = {"entity": f"{group} {name}", "system": system, "seed": seed}
        if any(all(row[k] == v for k, v in key.items()) for row in finished(options.results)):
            continue
        row = {**key, **run(group, name, system, seed)}
        with options.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
    for measure in ("error", "spd", "excess"):
        table(finished(options.results), measure)


if __name__ == "__main__":
    main()
