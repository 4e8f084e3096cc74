"""Other ways to make one number of what prism's views say: p-values, and the distance of the vector of views to normal ones.

    TISAT_DATA=... python experiments/kept.py --out kept --detectors prism
    python experiments/prism_vectors.py --kept kept [--sets ASD,msl]

A vector is ``log(1 + S / 0.2)`` of each view's summed evidence S; normal vectors are those of rows the model has not seen. p-values
are shares of normal values above, and beyond the largest of them an exponential tail of scale 1.3. Pooled / mean SPD (delta_max
100); in brackets the difference of the mean to the default with its 95 % interval, entities resampled.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from kept import SETS
from prism import DEFAULT, DELTA_MAX, FUSIONS, files, held, loaded

from tisat.alarms.rules import Scored, make_rule
from tisat.detectors.prism.detector import fusion
from tisat.metrics.windows import windows_of
from tisat_bench.rule_counts import counts_of_scores

TAIL, MOST, RIDGE = 1.3, 2000, 0.05


def vectors(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Normal vectors ``(N, V)`` and those of the test ``(T, V)``."""
    arrays = loaded(file)
    assert FUSIONS[DEFAULT][0] == fusion.STEADY
    exponents = fusion.exponents(arrays["raw_normal"])
    normal, test = (fusion.compressed(arrays[name], exponents) for name in ("raw_normal", "raw"))
    rule = make_rule("excess").fit(Scored.of(normal, views=normal))
    found = []
    for scores in (normal, test):
        evidence = np.asarray(rule.evidence(Scored.of(scores, views=scores)))
        known = np.concatenate([np.zeros((rule.length - 1, evidence.shape[1])), np.nan_to_num(evidence)])
        summed = np.lib.stride_tricks.sliding_window_view(known, rule.length, axis=0).sum(axis=-1)
        found.append(np.where(np.isnan(evidence), np.nan, np.log1p(summed / rule.unit)))
    return found[0], found[1]


def surprise(normal: np.ndarray, test: np.ndarray) -> np.ndarray:
    """-log p of each view ``(T, V)``; 0 where a view says nothing."""
    out = np.empty_like(test)
    for v in range(test.shape[1]):
        known = np.sort(normal[~np.isnan(normal[:, v]), v])
        above = len(known) - np.searchsorted(known, test[:, v], side="left")
        inside = -np.log((above + 1) / (len(known) + 1))
        beyond = np.log(len(known) + 1) + (test[:, v] - known[-1]) / TAIL
        out[:, v] = np.where(test[:, v] <= 0, 0.0, np.where(test[:, v] > known[-1], beyond, inside))
    return np.where(np.isnan(test), np.nan, out)


def nearest(normal: np.ndarray, test: np.ndarray) -> np.ndarray:
    known = normal[~np.isnan(normal).any(axis=1)]
    known = known[np.sort(np.random.default_rng(0).choice(len(known), min(MOST, len(known)), replace=False))]
    rows, out = np.nan_to_num(test), np.empty(len(test))
    for first in range(0, len(rows), 4000):
        some = rows[first : first + 4000]
        squares = (some**2).sum(axis=1)[:, None] + (known**2).sum(axis=1) - 2 * some @ known.T
        out[first : first + 4000] = np.sqrt(np.maximum(squares.min(axis=1), 0.0))
    return np.where(np.isnan(test).all(axis=1), np.nan, out)


def mahalanobis(normal: np.ndarray, test: np.ndarray) -> np.ndarray:
    known = normal[~np.isnan(normal).any(axis=1)]
    covariance = np.cov(known.T) + RIDGE * np.eye(known.shape[1])
    white = (np.nan_to_num(test) - known.mean(axis=0)) @ np.linalg.cholesky(np.linalg.inv(covariance))
    return np.where(np.isnan(test).all(axis=1), np.nan, np.sqrt((white**2).sum(axis=1)))


WAYS = {
    "sum (default)": lambda normal, test: test.sum(axis=1),
    "sum of -log p (Fisher)": lambda normal, test: surprise(normal, test).sum(axis=1),
    "largest -log p": lambda normal, test: surprise(normal, test).max(axis=1),
    "both sums": lambda normal, test: test.sum(axis=1) + surprise(normal, test).sum(axis=1),
    "distance to the nearest normal vector": nearest,
    "Mahalanobis distance of the vector": mahalanobis,
    "largest view": lambda normal, test: test.max(axis=1),
    "length of the vector": lambda normal, test: np.sqrt((test**2).sum(axis=1)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kept", type=Path, default=Path("kept"))
    parser.add_argument("--sets", default=",".join(SETS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = given.sets.split(",")
    made = {which: [(file, *vectors(file)) for file in files(given.kept, which)] for which in sets}
    hold = make_rule("excess").hold
    base: dict[str, np.ndarray] = {}
    print("| | " + " | ".join(sets) + " | mean |\n|---" + "|---" * (len(sets) + 1) + "|")
    for name, way in WAYS.items():
        cells, numbers = [], []
        for which, entities in made.items():
            labels = [windows_of(loaded(file)["labels"].astype(bool), DELTA_MAX) for file, *_ in entities]
            counts = counts_of_scores([held(way(*both), hold) for _, *both in entities], labels)
            pooled, each = float(counts.pooled()[0]), np.asarray(counts.per_entity())
            difference = each - base.setdefault(which, each)
            difference = difference[~np.isnan(difference)]
            drawn = np.random.default_rng(0).integers(0, len(difference), (2000, len(difference)))
            low, high = np.quantile(difference[drawn].mean(axis=1), [0.025, 0.975])
            cells.append(f"{pooled:.3f}/{np.nanmean(each):.3f} ({difference.mean():+.3f} [{low:+.3f}, {high:+.3f}])")
            numbers += [pooled, float(np.nanmean(each))]
        print(f"| {name} | " + " | ".join(cells) + f" | {np.mean(numbers):.4f} |", flush=True)


if __name__ == "__main__":
    main()
