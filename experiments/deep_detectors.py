"""The eight deep detectors, compact presets, on three SMD machines and six NASA channels: one command, resumable.

    TISAT_DATA=... python experiments/deep_detectors.py [--only dagmm,thoc] [--entities C-1,machine-2-1] [--jobs 2]

One model an entity, fitted on its training split (holdout 0.2, as users do), the plain score without any alarm rule,
delta_max 100. The entities are the first of each SMD group and of three families of MSL and SMAP whose values are there,
chosen by name before any run; MSL and SMAP are the telemetry value alone. Every row stands beside the best fool's SPD on the
same labels, and beside random guessing under point adjustment. ``oracle_`` marks a threshold chosen with the labels.
Seconds are CPU seconds of one process with one thread, so that other work on the machine does not count.

The result is ``experiments/deep_detectors.csv``: one row a detector and entity; rows that are there are not computed again
(delete a row to have it again). A run that fails is a row that says why. ``--table`` prints the means from the file.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

HERE = Path(__file__).parent
DELTA_MAX = 100
DETECTORS = (
    "deep-svdd", "dagmm", "lstm-vae", "beatgan", "omni-anomaly", "interfusion", "thoc", "anomaly-transformer",
)  # fmt: skip
ENTITIES = (
    ("msl", "C-1"), ("msl", "M-1"), ("msl", "T-4"), ("smap", "A-1"), ("smap", "E-1"), ("smap", "P-1"),
    ("smd", "machine-1-2"), ("smd", "machine-2-1"), ("smd", "machine-3-2"),
)  # fmt: skip
FIELDS = (
    "dataset", "entity", "detector", "spd", "floor", "chance_corrected", "oracle_adjusted_f1", "oracle_guess_adjusted_f1",
    "train_seconds", "epochs", "train_windows_per_second", "score_windows_per_second", "parameters", "note",
)  # fmt: skip


def run(dataset: str, entity: str, detector: str) -> dict[str, object]:
    """One row of the table."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    from tisat import datasets
    from tisat.detectors import make
    from tisat.errors import TisatError
    from tisat.metrics import best_adjusted_f1, best_random_guess, chance_corrected, floors, spd_score

    torch.set_num_threads(1)
    row: dict[str, object] = {"dataset": dataset, "entity": entity, "detector": detector}
    data = datasets.load(dataset, entities=entity).entities[0]
    labels = data.test.labels
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            begun = time.process_time()
            fitted = make(detector).fit(data.train)
            trained = time.process_time()
            scores = fitted.decision_function(data.test)
            done = time.process_time()
        except TisatError as error:
            return {**row, "note": f"failed: {error}"}
    floor = floors(labels, DELTA_MAX).best
    spd = float(spd_score(labels, scores, delta_max=DELTA_MAX))
    epochs = len(fitted.history_)
    windows = len(fitted._split([fitted.trained_on_["rows_used"]])[0])
    numbers = {
        "spd": spd,
        "floor": floor,
        "chance_corrected": chance_corrected(spd, floor),
        "oracle_adjusted_f1": best_adjusted_f1(labels, scores).f1,
        "oracle_guess_adjusted_f1": best_random_guess(labels)[1].f1,
        "train_seconds": trained - begun,
        "train_windows_per_second": epochs * windows / (trained - begun),
        "score_windows_per_second": len(scores) / (done - trained),
    }
    row |= {name: f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}" for name, value in numbers.items()}
    row |= {"epochs": epochs, "parameters": sum(weight.numel() for weight in fitted.network_.parameters())}
    said = sorted({str(one.message) for one in caught if issubclass(one.category, UserWarning)})
    return {**row, "note": "; ".join(said)}


def read(file: Path) -> dict[tuple[str, str], dict[str, str]]:
    if not file.exists():
        return {}
    with file.open(newline="") as lines:
        return {(row["entity"], row["detector"]): row for row in csv.DictReader(lines)}


def write(file: Path, rows: dict[tuple[str, str], dict[str, str]]) -> None:
    order = [(entity, detector) for detector in DETECTORS for _, entity in ENTITIES]
    new = file.with_suffix(".new")
    with new.open("w", newline="") as lines:
        table = csv.DictWriter(lines, FIELDS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows[key] for key in order if key in rows)
    new.replace(file)


def table(rows: dict[tuple[str, str], dict[str, str]]) -> str:
    """Means over the entities each detector has; Markdown."""
    columns = ("chance_corrected", "spd", "floor", "oracle_adjusted_f1", "oracle_guess_adjusted_f1", "train_seconds")
    lines = ["| detector | data | entities | " + " | ".join(columns) + " |", "|" + "---|" * (3 + len(columns))]
    for detector in DETECTORS:
        for group in (("msl", "smap"), ("smd",)):
            mine = [row for row in rows.values() if row["detector"] == detector and row["dataset"] in group]
            good = [row for row in mine if row["spd"]]
            if mine:
                means = [sum(float(row[name]) for row in good) / max(len(good), 1) for name in columns]
                count = f"{len(good)}" + (f" ({len(mine) - len(good)} failed)" if len(good) < len(mine) else "")
                cells = " | ".join(f"{mean:.3f}" if abs(mean) < 10 else f"{mean:.0f}" for mean in means)
                lines.append(f"| {detector} | {'+'.join(group)} | {count} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(DETECTORS))
    parser.add_argument("--entities", default=",".join(entity for _, entity in ENTITIES))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "deep_detectors.csv")
    parser.add_argument("--table", action="store_true", help="print the means and stop")
    options = parser.parse_args()
    rows = read(options.out)
    if options.table:
        print(table(rows))
        return
    from tisat import registry

    wanted = [name for name in options.only.split(",") if name in registry.DETECTORS]
    chosen = options.entities.split(",")
    tasks = [
        (dataset, entity, name)
        for dataset, entity in ENTITIES
        for name in wanted
        if entity in chosen and (entity, name) not in rows
    ]
    begun = time.perf_counter()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=spawn) as pool:
        pending = {pool.submit(run, *task): task for task in tasks}
        for future in as_completed(pending):
            broken = future.exception()
            if broken is not None:  # not the data's fault: shown, and tried again next time
                print(*pending[future], "broke:", repr(broken), flush=True)
                continue
            row = {name: str(value) for name, value in future.result().items()}
            rows = read(options.out) | {(row["entity"], row["detector"]): {**dict.fromkeys(FIELDS, ""), **row}}
            write(options.out, rows)
            print(*row.values(), f"({time.perf_counter() - begun:.0f} s)", flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
