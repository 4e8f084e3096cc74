"""The pictures of the pages of deep detectors: a generated plant, its faults, and what the detector makes of it.

    python docs/pictures/deep_scores.py omni-anomaly interfusion thoc anomaly-transformer

Each detector is fitted with its compact preset on 4000 nominal minutes of the plant with seed 0 and scores the 7000 that
follow; scores are in units of the nominal level, its 99 % quantile over the held-out tail of the training rows. Writes
``docs/detectors/<name>.png``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from tisat.datasets.synthetic import make_plant
from tisat.detectors import make

BLUE, GREY, YELLOW, RED = "#1f6fb2", "#8a8f98", "#f2c14e", "#c8413b"
plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})


def draw(name: str, folder: Path) -> Path:
    """Fit, score and draw one detector; the file it was drawn to."""
    plant = make_plant(n_train=4000, n_test=7000, random_state=0)
    detector = make(name).fit(plant.train)
    scores = detector.decision_function(plant.test) / detector.nominal_level()
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 3.6), sharex=True, height_ratios=(3, 2))
    spread = np.ptp(plant.train.values, axis=0)
    for c, values in enumerate(plant.test.values.T):
        top.plot((values - plant.train.values[:, c].min()) / spread[c] + 1.1 * c, color=BLUE, linewidth=0.4)
    bottom.plot(scores, color=RED, linewidth=0.5)
    bottom.axhline(1.0, color=GREY, linewidth=0.8, linestyle="--")
    bottom.set_yscale("log")
    for number, fault in enumerate(plant.faults):
        for axis in (top, bottom):
            axis.axvspan(fault.start, fault.stop, color=YELLOW, alpha=0.5, linewidth=0)
        top.text(fault.start, 1.1 * plant.test.n_channels + 0.5 * (number % 2), fault.kind, fontsize=6)
    top.set_yticks([])
    top.set_ylabel("channels")
    bottom.set_ylabel("score / nominal level")
    bottom.set_xlabel("minutes; shaded: faults")
    file = folder / f"{name}.png"
    figure.savefig(file, dpi=90, bbox_inches="tight", metadata={"Software": "tisat"})
    plt.close(figure)
    return file


if __name__ == "__main__":
    pages = Path(__file__).parent.parent / "detectors"
    pages.mkdir(exist_ok=True)
    for wanted in sys.argv[1:]:
        print(draw(wanted, pages))
