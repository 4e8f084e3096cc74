"""A model that several machines share: for every detector, one machine's normal points are its own."""

import numpy as np
import pytest

import tisat
from tisat import registry
from tisat.detectors import adapt
from tisat.testing import contracts as checks

RANDOM_BASELINE = "random-guess"  # its scores look at nothing
NAMES = [
    name for name in registry.names() if name != RANDOM_BASELINE and not hasattr(registry.resolve(name), "fit_together")
]


@pytest.mark.parametrize("name", NAMES)
def test_an_adapted_model_scores_as_the_shared_one_and_knows_its_own_rows(name, tmp_path):
    cls = registry.resolve(name)
    first, second, test = (checks.example(rows, channels=3, seed=seed) for rows, seed in ((400, 1), (300, 2), (200, 3)))
    shared = cls(**cls._test_params()).fit([first, second], holdout=0.0)
    before = shared.normal_.copy()
    mine = adapt(shared, second)
    np.testing.assert_array_equal(shared.normal_, before)
    if name != "prism":  # it also learns from normal points how restless its slow views are
        np.testing.assert_array_equal(mine.decision_function(test), shared.decision_function(test))
    own = shared.points(second)
    np.testing.assert_array_equal(mine.normal_, own[~np.isnan(own).any(axis=1)])
    mine.save(tmp_path / "mine.tisat")
    again = tisat.load(tmp_path / "mine.tisat")
    assert again.normal_source_ == "own rows, shared model"
    np.testing.assert_array_equal(again.decision_function(test), mine.decision_function(test))
