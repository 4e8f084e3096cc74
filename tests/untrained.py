"""Does training help? A detector against its own untrained network, on generated plants."""

from typing import Any

import numpy as np

from tisat import registry
from tisat.datasets.synthetic import make_plant
from tisat.metrics import chance_corrected, floors, spd_score

DELTA_MAX = 100
SEEDS = (7001, 7002, 7003, 7004, 7005)  # plants nothing was ever chosen on


def measured(name: str, *, seed: int, **params: Any) -> float:
    """Chance-corrected SPD of a detector on the plant of this seed."""
    plant = make_plant(n_train=4000, n_test=7000, random_state=seed)
    scores = registry.resolve(name)(random_state=seed, **params).fit(plant.train).decision_function(plant.test)
    floor = floors(plant.test.labels, delta_max=DELTA_MAX).best
    return chance_corrected(spd_score(plant.test.labels, scores, delta_max=DELTA_MAX), floor)


def assert_training_helps(name: str, **params: Any) -> None:
    """The median SPD over five plants is higher after training than before."""
    trained = [measured(name, seed=seed, **params) for seed in SEEDS]
    untrained = [measured(name, seed=seed, **params, epochs=0) for seed in SEEDS]
    print(
        f"{name}: SPD {np.median(untrained):.3f} -> {np.median(trained):.3f}, {np.round(np.subtract(trained, untrained), 3)}"
    )
    assert np.median(trained) > np.median(untrained)
