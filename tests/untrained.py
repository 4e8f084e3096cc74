"""Does training help? A detector against its own untrained network, on generated plants."""

import numpy as np

from tisat import registry
from tisat.datasets.synthetic import make_plant
from tisat.metrics import best_instance_f1, chance_corrected, floors, spd_score

DELTA_MAX = 100


def measured(name, *, seed, **params):
    """Chance-corrected SPD and best F1 of a detector on the plant of this seed."""
    plant = make_plant(n_train=4000, n_test=7000, random_state=seed)
    scores = registry.resolve(name)(random_state=seed, **params).fit(plant.train).decision_function(plant.test)
    floor = floors(plant.test.labels, delta_max=DELTA_MAX).best
    spd = spd_score(plant.test.labels, scores, delta_max=DELTA_MAX)
    return chance_corrected(spd, floor), float(best_instance_f1(plant.test.labels, scores).f1)


def assert_training_helps(name, **params):
    """The median over 3 seeds is higher after training than before, in chance-corrected SPD or in best F1."""
    trained = np.median([measured(name, seed=seed, **params) for seed in range(3)], axis=0)
    untrained = np.median([measured(name, seed=seed, **params, epochs=0) for seed in range(3)], axis=0)
    print(f"{name}: SPD {untrained[0]:.3f} -> {trained[0]:.3f}, F1 {untrained[1]:.3f} -> {trained[1]:.3f}")
    assert (trained > untrained).any()
