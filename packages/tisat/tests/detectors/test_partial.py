"""A channel that is missing counts as usual, and the others say what they would have said."""

import numpy as np
import pytest

from tisat.datasets.synthetic import make_plant
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
    whole = make(name, **options).fit(TRAIN)
    with_hole = whole.points(holed())
    np.testing.assert_allclose(with_hole[:, [0, 2]], whole.points(TEST)[:, [0, 2]], rtol=1e-9)
    assert np.isnan(with_hole[80:120, 1]).all()
    assert not np.isnan(with_hole[140:]).any()  # and it comes back
    found = whole.decision_function(holed())[80:118]
    usual = np.mean(whole.normal_[:, 1] ** 2)
    expected = (np.sum(whole.points(TEST)[:, [0, 2]] ** 2, axis=1) + usual) / 3
    np.testing.assert_allclose(found, expected[80:118], rtol=1e-9)


def test_mahalanobis_measures_what_is_there_under_its_own_covariance():
    detector = make("mahalanobis", window=1).fit(TRAIN)
    standard = (TRAIN - detector.center_) / detector.scale_
    covariance = np.cov(standard.T, bias=True)
    covariance[np.diag_indices(3)] += detector.ridge * np.trace(covariance) / 3
    part = covariance[np.ix_([0, 2], [0, 2])]
    rows = ((TEST - detector.center_) / detector.scale_ - detector.mean_)[80:118, [0, 2]]
    expected = (
        np.einsum("ti,ij,tj->t", rows, np.linalg.inv(part), rows) + 1.0
    ) / 3  # what is missing adds 1 on average
    np.testing.assert_allclose(detector.decision_function(holed())[80:118], expected, rtol=1e-8)


@pytest.mark.parametrize("name", ["last-value", "ewma", "linear-last", "mahalanobis"])
def test_row_by_row_is_the_batch_with_a_hole_too(name):
    options = {"window": 8} if name in ("linear-last", "mahalanobis") else {}
    detector = make(name, **options).fit(TRAIN)
    rows = holed()
    rows[150:152, :2] = np.nan
    batch = detector._points(rows)
    stream = detector._stream()
    np.testing.assert_allclose(np.stack([stream.step(row) for row in rows]), batch, rtol=1e-7, atol=1e-9)
    assert not np.isnan(detector.aggregate(batch)[20:]).any()


def test_what_a_mahalanobis_distance_is_without_a_value_is_its_mean_over_that_value():
    detector = make("mahalanobis", window=1, ridge=1e-9).fit(TRAIN)
    standard = (TEST[100] - detector.center_) / detector.scale_
    covariance = np.linalg.inv(detector.whitening_ @ detector.whitening_.T)
    weights = np.linalg.solve(covariance[np.ix_([0, 2], [0, 2])], covariance[[0, 2], 1])
    centre = detector.mean_[1] + (standard - detector.mean_)[[0, 2]] @ weights
    spread = np.sqrt(covariance[1, 1] - covariance[1, [0, 2]] @ weights)
    values = np.repeat(standard[None], 20_001, axis=0)
    quantiles = np.linspace(-8, 8, len(values))
    values[:, 1] = centre + spread * quantiles
    density = np.exp(-(quantiles**2) / 2)
    mean = np.average(detector._score_windows(values)[:, 0], weights=density)
    assert detector.decision_function(holed())[100] == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize("name", ["prism", "mahalanobis", "last-value", "ewma", "linear-last"])
def test_without_a_channel_normal_rows_are_not_louder(name):
    """The level that normal rows reach once in 200 is not higher with a channel missing, whichever it is, nor with two."""
    plant = make_plant(n_train=6000, n_test=6000, n_channels=4, n_faults=0, random_state=77)
    detector = make(name).fit(plant.train)
    whole = detector.score_points(detector.points(plant.test)).views
    for gone in ([0], [1], [2], [3], [0, 2]):
        rows = np.array(plant.test.values)
        rows[:, gone] = np.nan
        views = detector.score_points(detector.points(rows)).views
        for v in range(views.shape[1]):
            usual, level, there = (
                np.nanquantile(x, q) for x, q in ((whole[:, v], 0.5), (whole[:, v], 0.995), (views[:, v], 0.995))
            )
            assert there <= usual + 1.15 * (level - usual), (v, gone)
            assert there > usual
