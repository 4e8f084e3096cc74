"""Detectors of scikit-learn and PyOD, with a budget and alarms like any other."""

import warnings

from sklearn.ensemble import IsolationForest

from tisat import Watch
from tisat.datasets.synthetic import make_pump
from tisat.detectors.adapter import from_pyod, from_sklearn

warnings.simplefilter("ignore")
pump = make_pump(n_train=4000, n_test=900, faults=("vibration doubled",))
detectors = {"IsolationForest": from_sklearn(IsolationForest(n_estimators=50, random_state=0), window=1)}
try:
    from pyod.models.hbos import HBOS

    detectors["HBOS"] = from_pyod(HBOS(), window=1)
except ImportError:
    print("PyOD is not installed")
for name, detector in detectors.items():
    alarms = Watch(detector, budget="1/day").fit(pump.train).alarms(pump.test)
    fault = pump.faults[0]
    print(f"{name}: {len(alarms)} alarms, fault found: {bool(alarms.active[fault.start : fault.stop].any())}")
