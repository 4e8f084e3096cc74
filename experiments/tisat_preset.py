"""Which sizes and settings TiSAT's compact preset has, decided on training data alone.

Each setting is fitted on the first 80 % of an entity's *training* split and forecasts the rest; no test row and no label
is read. What is compared is the mean squared forecast error on that tail, in units of the last-value forecast's, and the
seconds of training. Finished rows are kept in the results file and skipped when the script is started again.

    python experiments/tisat_preset.py --results experiments/tisat_preset.jsonl
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from tisat.datasets.synthetic import make_plant
from tisat.detectors import make
from tisat_bench.datasets import load

ENTITIES = (("plant", "0"), ("msl", "C-1"), ("smap", "E-1"), ("smd", "machine-1-2"))
SMALL = {"d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 2, "decoder_layers": 1}
MEDIUM = {"d_model": 32, "n_heads": 4, "d_ff": 64, "encoder_layers": 3, "decoder_layers": 2}
COMMON = {"linear_skip": True, "anchor": "mean", "learning_rate": 1e-3, "epochs": 8, "patience": 8}
SETTINGS = {
    "small": SMALL,
    "small, linear start": {**SMALL, "epochs": 0},
    "small, rate halved each epoch": {**SMALL, "decay": 0.5},
    "small, one row ahead alone": {**SMALL, "lookahead": 1},
    "small, without linear skip": {**SMALL, "linear_skip": False, "decay": 1.0},
    "medium": MEDIUM,
    "small, anchor last": {**SMALL, "anchor": "last"},
    "small, anchor none": {**SMALL, "anchor": "none"},
    "medium, without linear skip": {**MEDIUM, "linear_skip": False, "decay": 1.0},
}
LINEAR = {"linear-mean": {}, "linear-last": {}}
WINDOWS = 1000  # training windows an epoch: what is compared is settings, at one budget
TAIL = 2000  # rows of the tail that are forecast at most


def training_series(group: str, name: str) -> np.ndarray:
    if group == "plant":
        return np.asarray(make_plant(random_state=int(name)).train.values, dtype=np.float64)
    return np.asarray(load(group, entities=[name])[name].train.values, dtype=np.float64)


def tail_errors(group: str, name: str, setting: str) -> dict[str, float]:
    """Squared forecast error on the tail over that of the last-value forecast, and seconds."""
    values = training_series(group, name)
    cut = int(0.8 * len(values))
    head, tail = values[:cut], values[cut - 100 :][: TAIL + 100]
    span = np.ptp(head, axis=0)
    moved = span > 0  # a channel that never moved in training has no scale to measure errors in
    started = time.process_time()
    if setting in LINEAR:
        detector = make(setting, window=100).fit(head, holdout=0.0)
        residuals = tail[100:] - detector._forecast(tail)[100:]
    else:
        params = {**COMMON, **SETTINGS[setting], "max_windows": WINDOWS, "device": "cpu"}
        detector = make("tisat", **params).fit(head, holdout=0.01)
        residuals = detector._window_residuals(tail, every=1)[:, 0]
    seconds = time.process_time() - started
    naive = tail[100:] - tail[99:-1]
    scaled = (residuals / np.where(moved, span, 1.0))[:, moved]
    reference = (naive / np.where(moved, span, 1.0))[:, moved]
    return {"ratio": float((scaled**2).mean() / (reference**2).mean()), "seconds": seconds}


def finished(results: Path) -> list[dict[str, float | str]]:
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--reverse", action="store_true", help="Start from the end: a second process meets the first.")
    options = parser.parse_args()
    results = options.results
    torch.set_num_threads(1)
    tasks = [(setting, group, name) for setting in (*LINEAR, *SETTINGS) for group, name in ENTITIES]
    for setting, group, name in reversed(tasks) if options.reverse else tasks:
        if any((row["entity"], row["setting"]) == (f"{group} {name}", setting) for row in finished(results)):
            continue
        row = {"entity": f"{group} {name}", "setting": setting, **tail_errors(group, name, setting)}
        with results.open("a") as file:
            file.write(json.dumps(row) + "\n")
    done = finished(results)
    entities = [f"{group} {name}" for group, name in ENTITIES]
    print("| setting | " + " | ".join(entities) + " | geometric mean | CPU seconds |")
    print("|---" * (len(entities) + 3) + "|")
    for setting in (*LINEAR, *SETTINGS):
        rows = {row["entity"]: row for row in done if row["setting"] == setting}
        ratios = [rows[entity]["ratio"] for entity in entities]
        cells = [f"{ratio:.3f}" for ratio in ratios]
        mean = float(np.exp(np.mean(np.log(ratios))))
        print(
            f"| {setting} | "
            + " | ".join(cells)
            + f" | {mean:.3f} | {sum(row['seconds'] for row in rows.values()):.0f} |"
        )


if __name__ == "__main__":
    main()
