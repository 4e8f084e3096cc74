"""The linear skip alone, on the tails of training splits: what to measure from, and how much to penalise.

For each entity the map is solved on the first 80 % of the training split and forecasts the rest; no test row, no label. The
figure is the geometric mean over entities of its squared error over the last-value forecast's.

    TISAT_DATA=... python experiments/tisat_linear_skip.py
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from tisat.datasets import load
from tisat.datasets.synthetic import make_plant
from tisat.nn.linear_skip import LinearSkip

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


def examples(values: np.ndarray, anchor: str) -> tuple[torch.Tensor, torch.Tensor]:
    windows = sliding_window_view(values[:-1], WINDOW, axis=0).transpose(0, 2, 1)  # (n, L, C)
    base = windows.mean(axis=1, keepdims=True) if anchor == "mean" else windows[:, -1:]
    return torch.from_numpy(windows - base).float(), torch.from_numpy(values[WINDOW:, None] - base).float()


def main() -> None:
    torch.set_num_threads(1)
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
            head = examples(scaled[:cut], anchor)
            inputs, targets = examples(tail, anchor)
            for ridge in RIDGES:
                layer = LinearSkip(scaled.shape[1], window=WINDOW, horizon=1, ridge=ridge)
                layer.solve([head])
                error = float(((layer(inputs) - targets) ** 2).mean())
                ratios.setdefault((anchor, ridge, name), []).append(error / naive)
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
