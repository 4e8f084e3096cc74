"""Does the interval that ``fit`` prints hold the rate of false alarms that comes? Over generated plants without faults.

    python experiments/interval_coverage.py [--plants 200] [--budget "1/500 rows"] [--train 6000] [--test 60000] [--first 0]

Each plant (``make_plant``, 8 channels, a seed of its own) is fitted with a threshold that stays; the rows after training count its false
alarms. The interval holds where the rate of those rows lies inside; they are ten times as many as the rows of training, so that their own
noise is small beside it. Nothing was chosen by it.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from tisat import Watch
from tisat.datasets.synthetic import make_plant
from tisat.errors import CalibrationWarning


def main() -> None:
    """Count the plants whose rate lies in the interval."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plants", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--budget", default="1/500 rows")
    parser.add_argument("--train", type=int, default=6000)
    parser.add_argument("--test", type=int, default=60_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore", CalibrationWarning)
    inside, below, above, quotients = 0, 0, 0, []
    for seed in range(options.first, options.first + options.plants):
        plant = make_plant(n_train=options.train, n_test=options.test, n_faults=0, random_state=seed)
        watch = Watch(budget=options.budget, control=False).fit(plant.train)
        found, said = len(watch.alarms(plant.test)), watch.calibration
        most, least = options.test / said.low, 0.0 if said.high is None else options.test / said.high
        inside += least <= found <= most
        below += found < least
        above += found > most
        quotients.append(found * said.target / options.test)
        done = seed - options.first + 1
        if done % 20 == 0:
            print(
                f"{done} plants: the rate that came lies in the 95 % interval in {inside / done:.1%} "
                f"({below} below, {above} above); alarms / allowed: mean {np.mean(quotients):.2f}, median {np.median(quotients):.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
