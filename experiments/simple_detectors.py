"""SPD of the simple and classical detectors on the real data: plain threshold, delta_max 100, pooled and per-entity mean.

    TISAT_DATA=... python experiments/simple_detectors.py [--only linear,ewma] [--sets smd,msl,smap] [--cache FOLDER]
    TISAT_DATA=... python experiments/simple_detectors.py --first 6 --only arima,lstm,last-value    the first entities alone

Protocol: one model an entity, fitted on its whole training split (holdout=0), scores in units of the entity's nominal
level (q99 of the training rows, at least 0.01); MSL and SMAP are the telemetry value alone; SMD covers the machines whose
values are there. Scores are kept in the cache folder, so a run that was stopped goes on where it was. The result is
``experiments/simple_detectors.csv``: one row a detector and data set; "smap first 6" is a set of its own, for what is too slow
for the whole.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import time
import warnings
from pathlib import Path

import numpy as np

from tisat import datasets
from tisat.detectors import make
from tisat.metrics import floors, spd_score

DELTA_MAX = 100
LEAST_LEVEL = 0.01  # 11 SMAP and 5 MSL channels never move in training: their q99 is 0; a hundredth, as for the spread
HERE = Path(__file__).parent
FIELDS = ["dataset", "entities", "detector", "spd_pooled", "spd_mean", "fit_seconds", "score_seconds"]

CASES: dict[str, tuple[str, dict[str, object]]] = {
    "last-value": ("last-value", {}),
    "ewma 0.1": ("ewma", {"smoothing": 0.1}),
    "ewma 0.01": ("ewma", {"smoothing": 0.01}),
    "linear": ("linear", {}),
    "linear-last": ("linear-last", {}),
    "linear-last 20": ("linear-last", {"window": 20}),
    "linear-mean": ("linear-mean", {}),
    "linear (ridge 0.001)": ("linear", {"ridge": 0.001}),
    "linear-last (ridge 0.001)": ("linear-last", {"ridge": 0.001}),
    "linear-last 20 (ridge 0.001)": ("linear-last", {"window": 20, "ridge": 0.001}),
    "linear-mean (ridge 0.001)": ("linear-mean", {"ridge": 0.001}),
    "vector-autoregression": ("vector-autoregression", {}),
    "pca 1": ("pca", {"window": 1}),
    "pca": ("pca", {}),
    "mahalanobis 1": ("mahalanobis", {"window": 1}),
    "mahalanobis": ("mahalanobis", {}),
    "nearest-neighbors": ("nearest-neighbors", {}),
    "ocsvm": ("ocsvm", {}),
    "rows ocsvm (scikit-learn)": (
        "adapter",
        {"estimator": "sklearn:OneClassSVM", "params": {"nu": 0.05}, "max_windows": 4000},
    ),
    "rows ocsvm": ("ocsvm", {"window": 1}),
    "rows lof": ("lof", {"window": 1}),
    "lof": ("lof", {}),
    "isolation-forest": ("isolation-forest", {}),
    "ecod": ("ecod", {}),
    "hbos (PyOD)": ("adapter", {"estimator": "pyod:HBOS"}),
    "gaussian mixture (scikit-learn)": ("adapter", {"params": {"n_components": 5}}),
    "spectral-residual": ("spectral-residual", {}),
    "matrix-profile": ("matrix-profile", {}),
    "arima": ("arima", {}),
    "lstm": ("lstm", {"stride": 4, "epochs": 5, "device": "cpu"}),
    "random-guess": ("random-guess", {}),
}


def scores_of(entity, name: str, params: dict[str, object], folder: Path) -> tuple[np.ndarray, float, float]:
    """Scores of the test split in units of the nominal level, from the cache or afresh."""
    every = sorted(make(name, **params).get_params(deep=False).items())
    key = hashlib.sha256(f"{entity.name} {name} {every}".encode()).hexdigest()[:16]
    file = folder / f"{key}.npz"
    if file.exists():
        kept = np.load(file)
        return kept["scores"], float(kept["fit"]), float(kept["score"])
    begun = time.perf_counter()
    detector = make(name, **params).fit(entity.train, holdout=0)
    fitted = time.perf_counter()
    scores = detector.decision_function(entity.test) / max(detector.nominal_level(), LEAST_LEVEL)
    done = time.perf_counter()
    np.savez(file, scores=scores, fit=fitted - begun, score=done - fitted)
    return scores, fitted - begun, done - fitted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="comma-separated prefixes of the cases to run")
    parser.add_argument("--sets", default="smd,msl,smap")
    parser.add_argument("--first", type=int, help="how many entities of each set; all unless given")
    parser.add_argument("--cache", type=Path, default=HERE / ".cache")
    parser.add_argument("--out", type=Path, default=HERE / "simple_detectors.csv")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    rows = {}
    if options.out.exists():
        with options.out.open() as file:
            rows = {(row["dataset"], row["detector"]): row for row in csv.DictReader(file)}
    wanted = [case for case in CASES if not options.only or case.startswith(tuple(options.only.split(",")))]
    for which in options.sets.split(","):
        dataset = datasets.load(which)
        entities = list(dataset.entities)[: options.first]
        which = f"{which} first {options.first}" if options.first else which
        truth = [entity.test.labels for entity in entities]
        best = floors(truth, DELTA_MAX)
        rows[which, "floor"] = {
            "dataset": which, "entities": len(entities), "detector": "floor",
            "spd_pooled": f"{best.best:.4f}", "spd_mean": f"{best.best_per_series_mean:.4f}",
            "fit_seconds": "", "score_seconds": "",
        }  # fmt: skip
        for case in wanted:
            name, params = CASES[case]
            found = [scores_of(entity, name, params, options.cache) for entity in entities]
            spd = spd_score(truth, [scores for scores, _, _ in found], delta_max=DELTA_MAX)
            row = {
                "dataset": which, "entities": len(entities), "detector": case,
                "spd_pooled": f"{spd.pooled:.4f}", "spd_mean": f"{spd.per_series_mean:.4f}",
                "fit_seconds": f"{sum(fit for _, fit, _ in found):.1f}",
                "score_seconds": f"{sum(score for _, _, score in found):.1f}",
            }  # fmt: skip
            rows[which, case] = row
            print(" ".join(f"{value!s:>12}" for value in row.values()), flush=True)
            with options.out.open("w", newline="") as file:
                writer = csv.DictWriter(file, FIELDS)
                writer.writeheader()
                writer.writerows(rows.values())


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()
