"""The pump: three gross faults, with and without an on/off valve, at budgets from a shift to a year."""

import itertools
import warnings

import numpy as np
import pytest

from tisat import registry
from tisat.datasets.synthetic import make_pump
from tisat.detectors import make
from tisat.errors import CalibrationWarning
from tisat.watch.watch import Watch

BUDGETS = ("1/8h", "1/day", "2/week", "1/week", "1/month", "1/year")
CHEAP = [name for name in registry.DETECTORS if registry.resolve(name).traits.crossfit > 1]
# What each finds at 1/day and at 1/month. A ramp of a sixteenth of a degree a minute is no surprise to a forecaster that is
# measured from the last rows; at 1/month, 13 times rarer than a week can support, its threshold is above it.
ALL, NO_RAMP = (1, 1, 1), (1, 0, 1)
FOUND = {
    "linear-last": {"1/day": ALL, "1/month": NO_RAMP},
    "mahalanobis": {"1/day": ALL, "1/month": ALL},
    "nearest-neighbors": {"1/day": ALL, "1/month": ALL},
    "pca": {"1/day": ALL, "1/month": ALL},
    "prism": {"1/day": ALL, "1/week": ALL, "1/month": NO_RAMP},  # with a valve the ramp is found as it ends
}


def calibrated(detector, pump):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return Watch(detector.fit(pump.train), budget="1/day").calibrate()


def found(watch, pump, budget):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        alarms = watch.recalibrated(budget).alarms(pump.test)
    return tuple(int(alarms.active[fault.start : fault.stop].any()) for fault in pump.faults), alarms


@pytest.mark.parametrize("valve", [False, True])
@pytest.mark.parametrize("name", FOUND)
def test_the_faults_are_found(name, valve):
    pump = make_pump(valve=valve)
    watch = calibrated(make(name), pump)
    for budget, expected in FOUND[name].items():
        which, alarms = found(watch, pump, budget)
        assert all(got >= wanted for got, wanted in zip(which, expected, strict=True)), (budget, which)
        normal = np.ones(len(alarms.active), dtype=bool)
        for fault in pump.faults:
            normal[fault.start : fault.stop + 110] = False  # a forecaster's window remembers the fault
        false = sum(bool(normal[alarm.raised]) for alarm in alarms)
        assert false <= (6 if budget == "1/day" else 1)


@pytest.mark.parametrize(
    ("name", "valve"),
    [
        *(
            pytest.param(name, True, marks=pytest.mark.slow if name in ("combine", "spectral-residual") else ())
            for name in CHEAP
        ),
        *((name, False) for name in FOUND),
    ],
)
def test_thresholds_of_a_clean_week_are_strictly_monotone_and_in_sight(name, valve):
    watch = calibrated(make(name), make_pump(n_test=2, faults=(), valve=valve))
    found = [watch.calibration.recalibrated(budget) for budget in BUDGETS]
    thresholds = [one.threshold for one in found]
    assert all(low < high for low, high in itertools.pairwise(thresholds))
    # on the logarithmic scale of the statistic, to which each view adds; 0.1 had 1e20 before the logarithm
    assert thresholds[-1] < 20.0 + 4.0 * (watch.detector.score_points(watch.detector.normal_).views.shape[1] - 1)
    assert [one.extrapolated > 1.0 for one in found] == [False, False, True, True, True, True]


@pytest.mark.slow
@pytest.mark.parametrize("valve", [False, True])
def test_tisat_finds_them_too(valve):
    pump = make_pump(valve=valve)
    watch = calibrated(make("tisat"), pump)
    for budget in ("1/day", "1/month"):
        which, _ = found(watch, pump, budget)
        assert all(got >= wanted for got, wanted in zip(which, NO_RAMP, strict=True)), (budget, which)
