"""Which ridge penalty of the linear forecasters holds up on training data alone.

    TISAT_DATA=... python experiments/ridge_on_training_tails.py

Fit on the first 60 % of each training split, look at the rest of it: the share of held-out normal rows above the fitted
q99 (1 % would be kept exactly), and the mean of the logarithm of their score. No test row and no label is read. Prints one
row a data set and penalty; the table is in ``docs/detectors/linear.md``.
"""

from __future__ import annotations

import numpy as np

from tisat.detectors import make
from tisat_bench import datasets

SMD = ("machine-1-2", "machine-2-1", "machine-3-2")
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


def main() -> None:
    for which, entities in (("msl", None), ("smap", None), ("smd", SMD)):
        trains = [entity.train.values for entity in datasets.load(which, entities=entities).entities]
        trains = [train for train in trains if len(train) > 400 and np.ptp(train[: int(0.6 * len(train))]) > 0]
        for ridge in RIDGES:
            above, log_score = [], []
            for train in trains:
                cut = int(0.6 * len(train))
                detector = make("linear-mean", ridge=ridge).fit(train[:cut], holdout=0)
                scores = detector.decision_function(train[cut:])
                scores = scores[~np.isnan(scores)]
                above.append(np.mean(scores > detector.normal_level()))
                log_score.append(np.mean(np.log(scores + 1e-6)))
            print(
                f"{which:5} ridge {ridge:<7g} share above q99 {np.mean(above):.4f}  mean log score {np.mean(log_score):+.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
