"""What the compact presets of DAGMM and BeatGAN were chosen by: generated plants, chance-corrected SPD, delta_max 100.

    python experiments/deep_choices.py [--only dagmm] [--seeds 0,2]

Every case prints one line: the value for each plant. The plants are not those of the tests (seeds 10 to 12) and no real data set
was looked at. DAGMM was chosen on plants 0 and 2, BeatGAN on 0, 1 and 2.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from tisat.datasets.synthetic import make_plant
from tisat.detectors import make
from tisat.metrics import baselines, chance_corrected, spd_score

DELTA_MAX = 100
DAGMM = {"window": 5, "latent": 4, "epochs": 30, "learning_rate": 5e-3, "batch_size": 128}
BEATGAN = {"window": 64, "filters": (16, 32, 64)}
CASES: dict[str, tuple[str, dict[str, object]]] = {
    "dagmm, untrained": ("dagmm", {**DAGMM, "epochs": 0}),
    "dagmm, no mixture in the loss": ("dagmm", {**DAGMM, "energy_weight": 0.0, "covariance_weight": 0.0}),
    "dagmm, weights 0.1 and 0.005 (paper)": (
        "dagmm", {**DAGMM, "energy_weight": 0.1, "covariance_weight": 0.005, "patience": 30},
    ),
    "dagmm, weights 0.1 and 1e-8": ("dagmm", {**DAGMM, "energy_weight": 0.1, "covariance_weight": 1e-8}),
    "dagmm, weights 0.01 and 1e-8": ("dagmm", {**DAGMM, "energy_weight": 0.01, "covariance_weight": 1e-8}),
    "dagmm, weights 0.001 and 1e-8": ("dagmm", {**DAGMM, "energy_weight": 1e-3, "covariance_weight": 1e-8}),
    "dagmm, compact": ("dagmm", {}),
    "beatgan, window 64": ("beatgan", BEATGAN),
    "beatgan, window 64, last 8 rows": ("beatgan", {**BEATGAN, "scored": 8}),
    "beatgan, window 64, last row": ("beatgan", {**BEATGAN, "scored": 1}),
    "beatgan, compact": ("beatgan", {}),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="first letters of the cases")
    parser.add_argument("--seeds", default="0,1,2")
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    plants = {seed: make_plant(random_state=seed) for seed in seeds}
    baseline_score = {seed: baselines(plant.test.labels, DELTA_MAX).best for seed, plant in plants.items()}
    for case, (name, params) in CASES.items():
        if not case.startswith(options.only):
            continue
        found = []
        for seed, plant in plants.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                detector = make(name, **params, random_state=seed).fit(plant.train)
            spd = float(spd_score(plant.test.labels, detector.decision_function(plant.test), delta_max=DELTA_MAX))
            found.append(chance_corrected(spd, baseline_score[seed]))
        print(
            f"{case:40}", " ".join(f"{value:7.3f}" for value in found), f"  median {np.median(found):.3f}", flush=True
        )


if __name__ == "__main__":
    main()
