"""A channel that is missing: the others are judged as if it had never been there."""

import numpy as np
import pytest

from tisat.detectors import make

RNG = np.random.default_rng(0)
MIX = np.array([[1.0, 0.4, 0.2], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
TRAIN = RNG.normal(size=(600, 3)) @ MIX
TEST = RNG.normal(size=(200, 3)) @ MIX
GAP = slice(60, 120)  # longer than a value may be carried forward


def holed(channel=1):
    rows = TEST.copy()
    rows[GAP, channel] = np.nan
    return rows


@pytest.mark.parametrize("name", ["last-value", "ewma", "linear", "linear-last", "linear-mean"])
def test_a_forecaster_goes_on_with_the_channels_that_are_there(name):
    options = {"window": 12} if name.startswith("linear") else {}
    whole, rest = make(name, **options).fit(TRAIN), make(name, **options).fit(TRAIN[:, [0, 2]])
    with_hole = whole.points(holed())
    np.testing.assert_allclose(with_hole[:, [0, 2]], whole.points(TEST)[:, [0, 2]], rtol=1e-9)
    assert np.isnan(with_hole[80:120, 1]).all()
    assert not np.isnan(with_hole[140:]).any()  # and it comes back
    found = whole.decision_function(holed())[80:118]
    np.testing.assert_allclose(found, rest.decision_function(TEST[:, [0, 2]])[80:118], rtol=1e-9)


def test_mahalanobis_measures_what_is_there_under_its_own_covariance():
    detector = make("mahalanobis", window=1).fit(TRAIN)
    standard = (TRAIN - detector.center_) / detector.scale_
    covariance = np.cov(standard.T, bias=True)
    covariance[np.diag_indices(3)] += detector.ridge * np.trace(covariance) / 3
    part = covariance[np.ix_([0, 2], [0, 2])]
    rows = ((TEST - detector.center_) / detector.scale_ - detector.mean_)[80:118, [0, 2]]
    expected = np.einsum("ti,ij,tj->t", rows, np.linalg.inv(part), rows) / 2
    np.testing.assert_allclose(detector.decision_function(holed())[80:118], expected, rtol=1e-8)


@pytest.mark.parametrize("name", ["last-value", "ewma", "linear-last", "mahalanobis"])
def test_row_by_row_is_the_batch_with_a_hole_too(name):
    options = {"window": 8} if name in ("linear-last", "mahalanobis") else {}
    detector = make(name, **options).fit(TRAIN)
    rows = holed()
    rows[150:152, :2] = np.nan
    batch = detector._points(rows)
    stream = detector._stream()
    np.testing.assert_allclose(np.stack([stream.push(row) for row in rows]), batch, rtol=1e-7, atol=1e-9)
    assert not np.isnan(detector.aggregate(batch)[20:]).any()
