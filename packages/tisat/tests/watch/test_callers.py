"""Warnings and errors of a Watch speak to its caller."""

import numpy as np
import pytest

from tisat import Watch
from tisat.errors import CalibrationWarning, ParameterError

ROWS = np.random.default_rng(0).normal(size=(300, 1))


def test_a_calibration_warning_points_at_the_caller():
    with pytest.warns(CalibrationWarning) as caught:
        Watch("ewma", budget="1/100000 rows").fit(ROWS)
    assert {one.filename for one in caught} == {__file__}


def test_contaminated_is_a_parameter_of_the_watch():
    with pytest.raises(ParameterError, match=r"Watch\(contaminated=True\)"):
        Watch("ewma").fit(ROWS, contaminated=True)
