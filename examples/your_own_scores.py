"""Scores you computed yourself: alarms within a budget, and what they are worth beside a random baseline."""

import numpy as np

from tisat import raise_alarms
from tisat.metrics import audit, evaluate_alarms

rng = np.random.default_rng(0)
normal, scores = rng.exponential(size=20_000), rng.exponential(size=5000)
labels = np.zeros(5000, dtype=int)
for start in (1000, 3000, 4200):
    labels[start : start + 40] = 1
    scores[start : start + 40] += 12.0

alarms = raise_alarms(scores, normal=normal, false_alarms="1/5000 rows")
print(evaluate_alarms(labels, alarms, delta_max=40))
print(audit(labels, scores, delta_max=40))
