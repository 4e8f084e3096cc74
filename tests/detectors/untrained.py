"""A detector beside its own untrained self, on generated plants whose seeds were not looked at when defaults were chosen."""

import numpy as np

from tisat.datasets.synthetic import make_plant
from tisat.metrics import chance_corrected, floors, spd_score

SEEDS = (10, 11, 12)
DELTA_MAX = 100


def chance_corrected_spd(detector, plant):
    fitted = detector.fit(plant.train)
    labels = plant.test.labels
    spd = float(spd_score(labels, fitted.decision_function(plant.test), delta_max=DELTA_MAX))
    return chance_corrected(spd, floors(labels, DELTA_MAX).best)


def trained_and_untrained(cls, **params):
    """Chance-corrected SPD over the seeds, of the detector as it is and with no epoch of training."""
    found = {"trained": [], "untrained": []}
    for seed in SEEDS:
        plant = make_plant(random_state=seed)
        found["trained"].append(chance_corrected_spd(cls(**params, random_state=seed), plant))
        found["untrained"].append(chance_corrected_spd(cls(**{**params, "epochs": 0}, random_state=seed), plant))
    for name, values in found.items():
        print(f"{cls.__name__} {name}: {np.round(values, 3).tolist()}, median {np.median(values):.3f}")
    return np.median(found["trained"]), np.median(found["untrained"])
