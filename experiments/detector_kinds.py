"""What each detector sees and what it is blind to: chance-corrected SPD per kind of fault, on generated plants.

    python experiments/detector_kinds.py [--only pca,lof] [--plants 3]   computes, resumes, writes detector_kinds.csv
    python experiments/detector_kinds.py --table                         prints the table of docs/detectors/README.md
    python experiments/detector_kinds.py --long                          the second table: densities of single values

Faults come in two sizes: 6, the generator's default, hidden well inside each channel's range, and 30, gross (in units of a
channel's minute-to-minute spread; a stuck sensor, a broken correlation and a contextual fault have no size). Three plants
(seeds 0, 1, 2; the costly detectors saw fewer, column "events") of 8 channels, 6000 normal rows to train on; for each
kind of fault a test series of 8000 rows with 7 faults of that kind alone. Plain threshold on scores in units of the
normal level, delta_max 100, the plants pooled. Corrected: 0 is what the best trivial baseline gets on the same labels, 1 is perfect. Detectors have their default parameters.

Densities of single values (isolation forest, ECOD, HBOS) say only that a value is unseen, not how far out it is, and four
days of training leave much normal load unseen; a fault in one of eight channels adds little to a sum over channels.
``--long`` gives them 40,000 training rows, four weeks, and faults of size 100, beyond a channel's range, with eight channels
and with one, where the matrix profile, meant for single channels, stands beside them.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path
from typing import Any

from tisat.alarms.rules import Scored, make_rule
from tisat.datasets.synthetic import KINDS, make_plant
from tisat.detectors import make
from tisat.metrics import baselines, chance_corrected, spd_score

DELTA_MAX = 100
SIZES = (6, 30)
SIZED = ("spike", "level shift", "slow drift", "changed frequency")
COLUMNS = [(kind, 6) for kind in KINDS] + [(kind, 30) for kind in SIZED]
LONG_COLUMNS = [*((kind, 100) for kind in SIZED), ("stuck sensor", 100)]
LONG_DETECTORS = (
    "random-guess",
    "ecod",
    "isolation-forest",
    "adapter (PyOD HBOS)",
)  # and, on one channel, matrix-profile
OUT = Path(__file__).with_suffix(".csv")
FIELDS = ["detector", "kind", "size", "events", "spd", "baseline_score", "corrected"]

DETECTORS: dict[str, tuple[str, dict[str, object]]] = {
    "random-guess": ("random-guess", {}),
    "prism": ("prism", {}),
    "prism (excess rule)": ("prism", {"rule": "excess"}),
    "last-value": ("last-value", {}),
    "ewma": ("ewma", {}),
    "linear": ("linear", {}),
    "linear-last": ("linear-last", {}),
    "linear-mean": ("linear-mean", {}),
    "vector-autoregression": ("vector-autoregression", {}),
    "arima": ("arima", {"n_jobs": 1}),
    "lstm": ("lstm", {"device": "cpu"}),
    "pca": ("pca", {}),
    "mahalanobis": ("mahalanobis", {}),
    "nearest-neighbors": ("nearest-neighbors", {}),
    "ocsvm": ("ocsvm", {}),
    "lof": ("lof", {}),
    "isolation-forest": ("isolation-forest", {}),
    "ecod": ("ecod", {}),
    "spectral-residual": ("spectral-residual", {}),
    "matrix-profile": ("matrix-profile", {}),
    "adapter (Gaussian mixture)": ("adapter", {}),
    "adapter (PyOD HBOS)": ("adapter", {"estimator": "pyod:HBOS"}),
}


def statistic(detector: Any, name: str, series: Any) -> Any:
    """What an alarm rule makes of a detector's points."""

    def scored(points: Any) -> Scored:
        return detector.score_points(points)

    rule = make_rule(name).fit(scored(detector.normal_))
    return rule.accumulate(rule.evidence(scored(detector.points(series))), threshold=1e300).statistic


def measure(
    name: str,
    params: dict[str, object],
    plants: int,
    *,
    columns: list[tuple[str, int]] = COLUMNS,
    n_train: int = 6000,
    n_channels: int = 8,
) -> list[dict[str, object]]:
    """One row a kind of fault; with a ``rule`` among the parameters, of that rule's statistic instead of the score."""
    rule = params.get("rule")
    params = {key: value for key, value in params.items() if key != "rule"}
    scores: dict[tuple[str, int], list] = {column: [] for column in columns}
    truth: dict[tuple[str, int], list] = {column: [] for column in columns}
    for seed in range(plants):
        detector = None
        for kind, size in columns:
            plant = make_plant(kinds=(kind,), size=size, n_train=n_train, n_channels=n_channels, random_state=seed)
            if detector is None:  # the training rows of one seed are the same whatever the faults
                detector = make(name, **params).fit(plant.train)
            scores[kind, size].append(
                statistic(detector, str(rule), plant.test)
                if rule
                else detector.decision_function(plant.test) / detector.normal_level()
            )
            truth[kind, size].append(plant.test.labels)
    rows = []
    for kind, size in columns:
        spd = spd_score(truth[kind, size], scores[kind, size], delta_max=DELTA_MAX).pooled
        baseline_score = baselines(truth[kind, size], DELTA_MAX).best
        rows.append({
            "kind": kind, "size": str(size), "events": 7 * plants, "spd": f"{spd:.3f}", "baseline_score": f"{baseline_score:.3f}",
            "corrected": f"{chance_corrected(spd, baseline_score):.3f}",
        })  # fmt: skip
    return rows


def table(rows: dict[tuple[str, str, str], dict[str, str]]) -> str:
    """The rows as Markdown; what a trivial baseline does about as well (less than .05 above the baseline score) is a blind spot, in brackets."""
    names = [kind + (f" ({size})" if kind in SIZED else "") for kind, size in COLUMNS]
    lines = ["| detector | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for name in (name for name in DETECTORS if (name, "spike", "6") in rows):
        cells = []
        for kind, size in COLUMNS:
            value = float(rows[name, kind, str(size)]["corrected"])
            cells.append(f"({value:.2f})" if value < 0.05 else f"**{value:.2f}**" if value >= 0.5 else f"{value:.2f}")
        events = int(rows[name, "spike", "6"]["events"])
        label = name if events == 21 else f"{name}, {events} events"
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def long_table(plants: int) -> None:
    """Four weeks of training and faults out of range, printed as Markdown and kept beside the other table."""
    print(
        "| detector | channels | "
        + " | ".join(f"{kind} ({size})" if kind in SIZED else kind for kind, size in LONG_COLUMNS)
        + " |"
    )
    print("|---|---|" + "---|" * len(LONG_COLUMNS))
    kept = []
    for channels in (8, 1):
        for case in LONG_DETECTORS + (("matrix-profile",) if channels == 1 else ()):
            rows = measure(*DETECTORS[case], plants, columns=LONG_COLUMNS, n_train=40_000, n_channels=channels)
            kept += [{"detector": case, "channels": channels, **row} for row in rows]
            cells = " | ".join(f"{float(row['corrected']):.2f}" for row in rows)
            print(f"| {case} | {channels} | {cells} |", flush=True)
    with OUT.with_stem("detector_kinds_long").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["detector", "channels", *FIELDS[1:]])
        writer.writeheader()
        writer.writerows(kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only")
    parser.add_argument("--plants", type=int, default=3)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    if options.long:
        long_table(options.plants)
        return
    rows: dict[tuple[str, str, str], dict[str, object]] = {}
    if OUT.exists():
        with OUT.open() as file:
            rows = {(row["detector"], row["kind"], row["size"]): row for row in csv.DictReader(file)}
    if options.table:
        print(table(rows))
        return
    wanted = (
        options.only.split(",") if options.only else [name for name in DETECTORS if (name, "spike", "6") not in rows]
    )
    for case in wanted:
        for row in measure(*DETECTORS[case], options.plants):
            rows[case, row["kind"], row["size"]] = {"detector": case, **row}
        print(
            case,
            *(f"{kind} {rows[case, kind, str(size)]['corrected']}" for kind, size in COLUMNS),
            sep="  ",
            flush=True,
        )
        with OUT.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            keys = [(name, kind, str(size)) for name in DETECTORS for kind, size in COLUMNS]
            writer.writerows(rows[key] for key in keys if key in rows)


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()
