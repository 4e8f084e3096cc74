"""The linear skip alone, on the tails of training splits: what to measure windows from, and how much to penalise.

For each entity the map is solved on the first 80 % of the training split and forecasts the rest; no test row, no label. The
figure is the geometric mean over entities of its squared error over the last-value forecast's.

    TISAT_DATA=... python experiments/tisat_linear_skip.py
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tisat.datasets.synthetic import make_plant
from tisat_bench.datasets import load

WINDOW = 100
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SETS = {"plant": range(6), "msl": None, "smap": None, "smd": ("machine-1-2", "machine-2-1", "machine-3-2")}


def training_values() -> list[tuple[str, np.ndarray]]:
    found = [("plant", np.asarray(make_plant(random_state=seed).train.values)) for seed in SETS["plant"]]
    for name in ("msl", "smap", "smd"):
        found += [
            (name, np.asarray(entity.train.values, dtype=np.float64)) for entity in load(name, entities=SETS[name])
        ]
    return found


def examples(values: np.ndarray, anchor: str) -> tuple[np.ndarray, np.ndarray]:
    """Windows ``(n, L)`` and targets ``(n,)`` of one channel, measured from the windows' anchors."""
    windows = sliding_window_view(values[:-1], WINDOW)
    base = windows.mean(axis=1) if anchor == "mean" else windows[:, -1]
    return windows - base[:, None], values[WINDOW:] - base


def ridge_maps(inputs: np.ndarray, targets: np.ndarray) -> list[np.ndarray]:
    """Weights ``(L + 1,)`` for each penalty, a share of the mean square of the inputs; the constant is free."""
    rows = np.column_stack([inputs, np.ones(len(inputs))])
    gram, cross = rows.T @ rows, rows.T @ targets
    power = max(np.diagonal(gram)[:-1].mean(), 1e-12 * len(rows))
    shrink = np.diag([*np.full(WINDOW, power), 1e-9])
    return [np.linalg.solve(gram + ridge * shrink, cross) for ridge in RIDGES]


def main() -> None:
    ratios: dict[tuple[str, float, str], list[float]] = {}
    for name, values in training_values():
        cut = int(0.8 * len(values))
        span = np.ptp(values[:cut], axis=0)
        moved = span > 0
        if not moved.any() or cut < 2 * WINDOW or len(values) - cut < 20:
            continue
        scaled = (values - values[:cut].min(axis=0))[:, moved] / span[moved]
        if name == "smd":
            scaled = scaled[-12_000:]  # the map has 100 weights a channel; this is plenty, and quicker
            cut = int(0.8 * len(scaled))
        tail = scaled[cut - WINDOW :]
        naive = np.mean(np.diff(scaled[cut - 1 :], axis=0) ** 2)
        if naive == 0:
            continue
        for anchor in ("mean", "last"):
            errors = np.zeros(len(RIDGES))
            for c in range(scaled.shape[1]):
                weights = ridge_maps(*examples(scaled[:cut, c], anchor))
                inputs, targets = examples(tail[:, c], anchor)
                errors += [np.mean((inputs @ w[:-1] + w[-1] - targets) ** 2) for w in weights]
            for ridge, error in zip(RIDGES, errors / scaled.shape[1], strict=True):
                ratios.setdefault((anchor, ridge, name), []).append(float(error / naive))
    print(
        "| anchor | ridge | " + " | ".join(f"{name} ({len(ratios['mean', RIDGES[0], name])})" for name in SETS) + " |"
    )
    print("|---" * (2 + len(SETS)) + "|")
    for anchor in ("mean", "last"):
        for ridge in RIDGES:
            cells = [f"{np.exp(np.mean(np.log(ratios[anchor, ridge, name]))):.3f}" for name in SETS]
            print(f"| {anchor} | {ridge:g} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
