"""The random baseline: what the contract tests of every detector do not say."""

import numpy as np
import pytest

from tisat.detectors import make


@pytest.mark.parametrize("holdout", [0.0, 0.2])
def test_its_normal_draws_are_not_those_of_the_scored_series(holdout):
    rows = np.zeros((500, 2))
    random_baseline = make("random-guess").fit(rows, holdout=holdout)
    assert len(np.intersect1d(random_baseline.normal_, random_baseline.decision_function(rows))) == 0
    assert len(random_baseline.normal_) == 500 * (holdout or 1.0)
