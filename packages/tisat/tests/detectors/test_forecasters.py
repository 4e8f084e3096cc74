"""Forecasters against their reference implementations, and what anchoring promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_detectors as naive
from tisat.detectors import make
from tisat.detectors._forecast import normal_spread, residual_spread
from tisat.detectors.arima import ARIMA, invertible
from tisat.errors import ParameterError, SeriesError


def coupled(length, channels=2, seed=0):
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((length, channels))
    values = np.zeros((length, channels))
    for t in range(1, length):
        values[t] = 0.7 * values[t - 1] + 0.2 * values[t - 1, ::-1] + noise[t]
    return 5.0 + values


TRAIN, TEST = coupled(300), coupled(80, seed=1)


def assert_points(detector, residuals_of):
    """Points are the twin's residuals over the twin's spread."""
    on_train = residuals_of(TRAIN)
    scale = naive.residual_spread(on_train[~np.isnan(on_train).any(axis=1)], TRAIN)
    np.testing.assert_allclose(detector.spread_, scale, rtol=1e-9)
    np.testing.assert_allclose(detector.points(TEST), residuals_of(TEST) / scale, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("name", "anchor"), [("linear", "train"), ("linear-last", "last"), ("linear-mean", "mean")])
@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_linear_equals_its_twin(name, anchor, ridge):
    detector = make(name, window=6, ridge=ridge).fit(TRAIN, holdout=0)
    assert_points(detector, lambda values: naive.linear_residuals(TRAIN, values, window=6, ridge=ridge, anchor=anchor))


@pytest.mark.parametrize("smoothing", [0.05, 0.3, 1.0])
def test_ewma_equals_its_twin(smoothing):
    detector = make("ewma", smoothing=smoothing).fit(TRAIN, holdout=0)
    assert_points(detector, lambda values: naive.ewma_residuals(values, smoothing))


def test_ewma_that_forgets_everything_is_the_last_value():
    first, second = make("ewma", smoothing=1.0).fit(TRAIN), make("last-value").fit(TRAIN)
    np.testing.assert_allclose(first.decision_function(TEST), second.decision_function(TEST))


def test_vector_autoregression_equals_least_squares_with_penalty_rows():
    detector = make("vector-autoregression", order=4, ridge=0.05).fit(TRAIN, holdout=0)
    center, scale = TRAIN.mean(axis=0), naive.spread(TRAIN, TRAIN)
    assert_points(
        detector,
        lambda values: values - naive.var_forecast(TRAIN, values, order=4, ridge=0.05, center=center, scale=scale),
    )


def test_vector_autoregression_uses_the_other_channels():
    leader = np.random.default_rng(3).standard_normal(600)
    pair = np.column_stack([leader[2:], leader[:-2]])  # channel 1 repeats channel 0 two rows later
    var = make("vector-autoregression", order=3).fit(pair)
    alone = make("linear", window=3).fit(pair)
    assert var.spread_[1] < 0.2 * alone.spread_[1]


@given(shift=st.floats(-1e4, 1e4), name=st.sampled_from(["linear-last", "linear-mean", "last-value", "ewma"]))
@settings(max_examples=30, deadline=None)
def test_anchored_forecasters_do_not_see_the_level(shift, name):
    detector = make(name, **({"window": 10} if "linear" in name else {})).fit(TRAIN)
    np.testing.assert_allclose(detector.points(TEST + shift), detector.points(TEST), rtol=1e-6, atol=1e-6)


def test_the_plain_linear_forecaster_does_see_the_level():
    detector = make("linear", window=10).fit(TRAIN)
    assert np.nanmedian(detector.decision_function(TEST + 50)) > 10 * np.nanmedian(detector.decision_function(TEST))


@given(scale=st.floats(1e-3, 1e3))
@settings(max_examples=20, deadline=None)
def test_units_of_measurement_do_not_matter(scale):
    for name in ("linear-mean", "vector-autoregression", "mahalanobis", "pca"):
        params = {"order": 3} if name == "vector-autoregression" else {"window": 4}
        first = make(name, **params).fit(TRAIN).decision_function(TEST)
        second = make(name, **params).fit(TRAIN * scale).decision_function(TEST * scale)
        np.testing.assert_allclose(second, first, rtol=1e-6, atol=1e-9)


def test_a_channel_constant_in_training_is_scaled_by_its_level():
    train = np.column_stack([TRAIN[:, 0], np.full(len(TRAIN), 40.0)])
    np.testing.assert_allclose(normal_spread(np.zeros_like(train), [train])[1], 0.4)
    np.testing.assert_allclose(normal_spread(np.zeros((3, 1)), [np.zeros((3, 1))]), 0.01)


def test_parts_shorter_than_the_window_are_refused_in_words():
    broken = TRAIN[:200].copy()
    broken[::20] = np.nan
    for start in range(0, 200, 40):
        broken[start : start + 25] = np.nan
    with pytest.raises(SeriesError, match="must have more than 50 rows without a gap"):
        make("linear", window=50).fit(broken)


@pytest.mark.parametrize(
    ("name", "bad"), [("ewma", {"smoothing": 0.0}), ("linear", {"window": 0}), ("linear", {"ridge": -1})]
)
def test_bad_parameters_are_refused(name, bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        make(name, **bad).fit(TRAIN)


# ------------------------------------------------------------------------------------------------------ ARIMA


def arima_of(models):
    """An ARIMA detector with given coefficients, as if it had been fitted."""
    detector = ARIMA()
    detector.center_, detector.scale_ = np.zeros(len(models)), np.ones(len(models))
    detector.spread_, detector.n_channels_ = np.ones(len(models)), len(models)
    detector._keep([((len(ar), d, len(ma)), np.array(ar), np.array(ma), mean) for ar, d, ma, mean in models])
    return detector


@pytest.mark.parametrize(
    ("ar", "d", "ma", "mean"),
    [([0.5], 0, [], 2.0), ([], 1, [0.4], 0.1), ([0.3, -0.2], 1, [0.5, 0.1], 0.0), ([], 2, [-0.6], 0.0)],
)
def test_arima_errors_equal_the_recursion(ar, d, ma, mean):
    values = np.cumsum(np.random.default_rng(0).standard_normal(60))
    found = arima_of([(ar, d, ma, mean)])._residuals(values[:, None])[:, 0]
    np.testing.assert_allclose(found, naive.arima_errors(values, ar=ar, d=d, ma=ma, mean=mean), atol=1e-10)


def test_arima_channels_of_different_order_share_one_warm_up():
    detector = arima_of([([0.5], 0, [], 0.0), ([0.3, 0.1], 1, [0.2], 0.0)])
    points = detector._points(TEST)
    assert np.isnan(points[:3]).all()
    assert np.isfinite(points[3:]).all()
    alone = naive.arima_errors(TEST[:, 0], ar=[0.5], d=0, ma=[], mean=0.0)
    np.testing.assert_allclose(points[3:, 0], alone[3:])


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_moving_averages_are_made_to_forget(coefficients):
    kept = invertible(np.array(coefficients))
    assert np.abs(np.roots(np.append(1.0, kept))).max(initial=0.0) <= 0.99 + 1e-6
    same = np.abs(np.roots(np.append(1.0, coefficients))).max(initial=0.0) < 0.98
    if same:
        np.testing.assert_allclose(kept, coefficients)


def test_arima_finds_the_coefficient_it_was_given():
    """Golden by construction: an AR(1) with coefficient 0.7 and noise of unit spread."""
    rng = np.random.default_rng(4)
    values = np.zeros(3000)
    for t in range(1, 3000):
        values[t] = 0.7 * values[t - 1] + rng.standard_normal()
    detector = ARIMA(max_order=2, max_rows=1000, n_jobs=1).fit(values, holdout=0)
    errors = (detector.points(values) * detector.spread_)[10:, 0]
    assert abs(errors.std() - 1.0) < 0.05
    assert abs(np.corrcoef(errors[1:], errors[:-1])[0, 1]) < 0.06


@pytest.mark.slow
def test_arima_in_parallel_equals_alone():
    first = ARIMA(max_order=1, n_jobs=2).fit(TRAIN).decision_function(TEST)
    np.testing.assert_array_equal(first, ARIMA(max_order=1, n_jobs=1).fit(TRAIN).decision_function(TEST))


def test_a_channel_that_rests_and_jumps_has_a_unit_in_which_its_jumps_are_ordinary():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=20_000)
    valve = (rng.random(20_000) < 0.004).astype(float)  # jumps four times in a thousand rows
    train = np.column_stack([noise, valve])
    wide = residual_spread(train - train.mean(axis=0), [train])
    assert wide[0] == pytest.approx(1.0, abs=0.05)  # normal errors: the standard deviation
    assert wide[1] == pytest.approx(1 / 3.29, rel=0.02)  # a jump is 3.29 spreads, not 16
