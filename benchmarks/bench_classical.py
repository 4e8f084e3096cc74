"""Cost of the classical detectors on 25,000 x 38 training rows, and what their large-data paths lose.

    python benchmarks/bench_classical.py            cost: processor seconds to fit, rows scored a processor second
    python benchmarks/bench_classical.py --loss     bounded against exact: rank correlation and SPD on a generated plant

Cost is processor time, which a busy machine does not change; run with OPENBLAS_NUM_THREADS=1 it is that of one core. The
column "direct" is the same scoring through scikit-learn's own estimator on the same windows, side by side in this run.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDOneClassSVM
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.svm import OneClassSVM

from tisat.datasets.synthetic import make_plant
from tisat.detectors import make
from tisat.detectors._windows import training_windows
from tisat.metrics import spd_score

NAMES = (
    "last-value", "ewma", "linear-mean", "vector-autoregression", "pca", "mahalanobis", "nearest-neighbors", "ocsvm", "lof",
    "isolation-forest", "ecod", "spectral-residual",
)  # fmt: skip


def processor_seconds(function) -> tuple[float, object]:
    begun = time.process_time()
    result = function()
    return time.process_time() - begun, result


def direct_of(detector, name: str, train: np.ndarray):
    """scikit-learn's own estimator fitted on what the detector was fitted on."""
    windows = training_windows([train], window=detector.window, limit=getattr(detector, "max_windows", None))
    flat = windows.reshape(len(windows), -1)
    if name == "isolation-forest":
        return IsolationForest(n_estimators=100, max_samples=256, random_state=0).fit(flat.astype(np.float32))
    if name == "lof":
        return LocalOutlierFactor(n_neighbors=20, novelty=True).fit(flat)
    return OneClassSVM(nu=0.05, gamma="scale").fit(flat)


def cost(rows: int, names: list[str]) -> None:
    plant = make_plant(n_train=rows, n_test=20_000, n_channels=38, random_state=0)
    train, test = np.asarray(plant.train.values), np.asarray(plant.test.values)
    print(f"{rows} x 38 training rows, {len(test)} rows scored; processor seconds")
    print(f"{'detector':24}{'fit':>8}{'rows/s':>12}{'direct rows/s':>15}{'ratio':>8}")
    for name in names:
        make(name).fit(train[:2000]).decision_function(test[:300])  # compiled before the clock starts
        fit, detector = processor_seconds(lambda: make(name).fit(train))  # noqa: B023
        score, _ = processor_seconds(lambda: detector.decision_function(test))  # noqa: B023
        line = f"{name:24}{fit:8.2f}{len(test) / score:12,.0f}"
        if name in ("ocsvm", "lof", "isolation-forest"):
            direct = direct_of(detector, name, train)
            some = training_windows([test[:4000]], window=detector.window).reshape(-1, detector.window * 38)
            if name == "isolation-forest":
                some = some.astype(np.float32)
            slow, _ = processor_seconds(lambda: direct.score_samples(some))  # noqa: B023
            line += f"{len(some) / slow:15,.0f}{slow / len(some) * len(test) / score:8.1f}"
        print(line, flush=True)


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    known = ~np.isnan(first) & ~np.isnan(second)
    ranks = [np.argsort(np.argsort(scores[known])) for scores in (first, second)]
    return float(np.corrcoef(*ranks)[0, 1])


def loss(rows: int) -> None:
    plants = [make_plant(n_train=rows, n_channels=8, random_state=seed) for seed in (0, 1)]
    truth = [plant.test.labels for plant in plants]
    print(f"{rows} x 8 training rows, two plants; exact = all windows")
    print(f"{'detector':20}{'kept':>8}{'rank correlation':>18}{'SPD':>8}{'fit s':>8}{'score s':>9}")
    for name in ("lof", "ocsvm", "nearest-neighbors"):
        exact: list[np.ndarray] = []
        for kept in (None, 4000, 2000, 1000, 500):
            found, fit, score = [], 0.0, 0.0
            for plant in plants:
                used, detector = processor_seconds(lambda: make(name, max_windows=kept).fit(plant.train))  # noqa: B023
                took, scores = processor_seconds(lambda: detector.decision_function(plant.test))  # noqa: B023
                fit, score = fit + used, score + took
                found.append(scores / detector.normal_level())
            exact = exact or found
            agreement = np.mean([rank_correlation(a, b) for a, b in zip(exact, found, strict=True)])
            spd = spd_score(truth, found, delta_max=100).pooled
            print(f"{name:20}{kept or 'all':>8}{agreement:18.3f}{spd:8.3f}{fit:8.1f}{score:9.1f}", flush=True)
        if name == "ocsvm":
            nystroem(plants, truth, exact)


def nystroem(plants, truth, exact) -> None:
    """The alternative for the support vector machine: a feature map and stochastic gradient descent."""
    for components in (300, 1000):
        found, fit, score = [], 0.0, 0.0
        for plant in plants:
            reference = make("ocsvm").fit(plant.train)  # for its scaling alone
            flat = [
                training_windows([reference._standardise(np.asarray(series.values))], window=10).reshape(-1, 80)
                for series in (plant.train, plant.test)
            ]
            model = make_pipeline(
                Nystroem(gamma=reference.gamma_, n_components=components, random_state=0),
                SGDOneClassSVM(nu=0.05, random_state=0),
            )
            used, _ = processor_seconds(lambda: model.fit(flat[0]))  # noqa: B023
            took, scores = processor_seconds(lambda: -model.decision_function(flat[1]))  # noqa: B023
            fit, score = fit + used, score + took
            found.append(np.concatenate([np.full(9, np.nan), scores]))
        agreement = np.mean([rank_correlation(a, b) for a, b in zip(exact, found, strict=True)])
        spd = spd_score(truth, found, delta_max=100).pooled
        print(f"{'ocsvm by Nystroem':20}{components:>8}{agreement:18.3f}{spd:8.3f}{fit:8.1f}{score:9.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loss", action="store_true")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--only")
    options = parser.parse_args()
    if options.loss:
        loss(options.rows or 10_000)
    else:
        cost(options.rows or 25_000, options.only.split(",") if options.only else list(NAMES))


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()
