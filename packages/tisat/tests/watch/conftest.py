import numpy as np
import pytest

import tisat
from tisat.detectors import Detector, make
from waves import wave


@pytest.fixture(scope="module", params=["random-guess", "linear-mean", "ewma"])
def detector(request: pytest.FixtureRequest) -> Detector:
    params = {"linear-mean": {"window": 12}}.get(request.param, {})
    series = tisat.Series(wave(3000, seed=1), timestamps=60.0 * np.arange(3000), channels=("cpu", "disk", "net"))
    return make(request.param, **params).fit(series)
