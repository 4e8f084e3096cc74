"""Detectors of scikit-learn and PyOD, with a budget and alarms like any other."""

import warnings

from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from tisat import Watch
from tisat.datasets.synthetic import make_pump
from tisat.detectors import from_pyod, from_sklearn

warnings.simplefilter("ignore")
pump = make_pump(n_train=4000, n_test=900, faults=("vibration doubled",))
detectors = {
    "EllipticEnvelope": from_sklearn(EllipticEnvelope(random_state=0)),
    "LocalOutlierFactor": from_sklearn(LocalOutlierFactor(novelty=True)),
    # Of single rows a forest sees too little (docs/migrating.md says why): five rows at once.
    "IsolationForest": from_sklearn(IsolationForest(n_estimators=50, random_state=0), window=5),
}
try:
    from pyod.models.knn import KNN

    detectors["KNN"] = from_pyod(KNN())
except ImportError:
    print("PyOD is not installed")
for name, detector in detectors.items():
    alarms = Watch(detector, budget="1/day").fit(pump.train).alarms(pump.test)
    fault = pump.faults[0]
    print(f"{name}: {len(alarms)} alarms, fault found: {bool(alarms.active[fault.start : fault.stop].any())}")
