"""A function of your own as a detector: here, the distance from the same minute of the day before."""

import warnings

import numpy as np

from tisat import Watch
from tisat.datasets.synthetic import make_pump
from tisat.detectors.function import from_function


def surprise(values):
    """Scores (T,) of values (T, C): how far each row is from the same minute of the day before."""
    scores = np.full(len(values), np.nan)
    scores[1440:] = np.abs(values[1440:] - values[:-1440]).max(axis=1)
    return scores


warnings.simplefilter("ignore")
pump = make_pump(n_test=2 * 1440)
detector = from_function(surprise, context=1441)
alarms = Watch(detector, budget="1/day").fit(pump.train).alarms(pump.test)
print(alarms)
