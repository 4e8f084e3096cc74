"""The classical detectors against direct scikit-learn calls and reference implementations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import decomposition
from sklearn.ensemble import IsolationForest as DirectForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

import naive_detectors as naive
from tisat.detectors import make
from tisat.detectors.spectral_residual import _contrast
from tisat.utils.neighbors import FEW_ROWS, closest, heads_of, nearest

RNG = np.random.default_rng(0)
TRAIN = np.column_stack([np.sin(np.arange(400) / 7), np.cos(np.arange(400) / 7)]) + 0.2 * RNG.standard_normal((400, 2))
TEST = TRAIN[:120] + 0.3 * RNG.standard_normal((120, 2))


def standardised(values, window):
    center, scale = TRAIN.mean(axis=0), naive.spread(TRAIN, TRAIN)
    return naive.flat_windows((values - center) / scale, window)


@pytest.mark.parametrize("window", [1, 4])
def test_isolation_forest_is_scikit_learns_to_the_last_bit(window):
    detector = make("isolation-forest", window=window, n_estimators=30, random_state=7).fit(TRAIN, holdout=0)
    direct = DirectForest(n_estimators=30, max_samples=256, random_state=7)
    direct.fit(naive.flat_windows(TRAIN, window).astype(np.float32))
    expected = -direct.score_samples(naive.flat_windows(TEST, window).astype(np.float32))
    np.testing.assert_array_equal(detector.decision_function(TEST)[window - 1 :], expected)


@pytest.mark.parametrize("window", [1, 4])
def test_lof_equals_scikit_learn_in_novelty_mode(window):
    detector = make("lof", window=window, n_neighbors=15, max_windows=None).fit(TRAIN, holdout=0)
    direct = LocalOutlierFactor(n_neighbors=15, novelty=True).fit(standardised(TRAIN, window))
    expected = -direct.score_samples(standardised(TEST, window))
    np.testing.assert_allclose(detector.decision_function(TEST)[window - 1 :], expected, rtol=1e-9)


@pytest.mark.parametrize("window", [1, 4])
def test_ocsvm_is_the_decision_function_through_a_monotone_map(window):
    detector = make("ocsvm", window=window, nu=0.1, max_windows=None).fit(TRAIN, holdout=0)
    direct = OneClassSVM(nu=0.1, gamma="scale").fit(standardised(TRAIN, window))
    scores = detector.decision_function(TEST)[window - 1 :]
    assert (scores >= 0).all()
    np.testing.assert_allclose(
        detector.mass_ * np.exp(-scores) - detector.rho_,
        direct.decision_function(standardised(TEST, window)),
        atol=1e-9,
    )


def test_ocsvm_keeps_growing_where_the_kernel_has_vanished():
    detector = make("ocsvm", window=1).fit(TRAIN)
    scores = detector.decision_function([[1e2, 0.0], [1e3, 0.0], [1e4, 0.0]])
    assert (np.diff(scores) > 0).all()


@pytest.mark.parametrize("window", [1, 4])
def test_pca_equals_scikit_learns_reconstruction(window):
    detector = make("pca", window=window, variance=0.6).fit(TRAIN, holdout=0)
    direct = decomposition.PCA(n_components=detector.components_.shape[1]).fit(standardised(TRAIN, window))
    rows = standardised(TEST, window)
    errors = rows - direct.inverse_transform(direct.transform(rows))
    np.testing.assert_allclose(detector.decision_function(TEST)[window - 1 :], np.mean(errors**2, axis=1), rtol=1e-7)


def test_pca_leaves_a_direction_to_look_along():
    detector = make("pca", window=1, variance=0.999).fit(TRAIN)
    assert detector.components_.shape == (2, 1)


@pytest.mark.parametrize("window", [1, 4])
def test_mahalanobis_equals_the_solved_quadratic_form(window):
    detector = make("mahalanobis", window=window, ridge=0.01).fit(TRAIN, holdout=0)
    rows, test = standardised(TRAIN, window), standardised(TEST, window)
    covariance = np.cov(rows.T, bias=True).reshape(rows.shape[1], -1)
    covariance += 0.01 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    gaps = test - rows.mean(axis=0)
    expected = [gap @ np.linalg.solve(covariance, gap) / len(gap) for gap in gaps]
    np.testing.assert_allclose(detector.decision_function(TEST)[window - 1 :], expected, rtol=1e-8)


# ------------------------------------------------------------------------------------------------------ neighbours


@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 40),
    size=st.integers(1, 8),
    k=st.integers(1, 5),
    count=st.sampled_from([5, FEW_ROWS]),  # searched in double at once; in single precision first
    grid=st.sampled_from([(0.0, 1.0), (1e4, 1.0), (1e2, 1e-3)]),  # the last is below single precision
)
@settings(max_examples=80, deadline=None)
def test_nearest_equals_the_sorted_distances(seed, n, size, k, count, grid):
    rng = np.random.default_rng(seed)
    offset, unit = grid
    stored, rows = (unit * rng.integers(0, 4, (many, size)) + offset for many in (n, count))
    first, last = rng.integers(0, n, count), rng.integers(0, n + 1, count)
    distances, indices = nearest(rows, stored, k=k, skip=(first, last))
    for i in range(count):
        allowed = [not first[i] <= j < last[i] for j in range(n)]
        expected = naive.nearest_distances(rows[i], stored, allowed=allowed)[:k]
        np.testing.assert_allclose(distances[i, : len(expected)], expected, atol=1e-9 * unit)
        assert np.isinf(distances[i, len(expected) :]).all()
        assert (indices[i, len(expected) :] == -1).all()


def test_training_rows_do_not_find_themselves():
    """Without a held-out tail, each training window is compared with those it shares no row with."""
    window = 5
    detector = make("nearest-neighbors", window=window, n_neighbors=2, max_windows=None).fit(TRAIN[:90], holdout=0)
    assert detector.normal_source_ == "training rows"
    center, scale = TRAIN[:90].mean(axis=0), naive.spread(TRAIN[:90], TRAIN[:90])
    rows = naive.flat_windows((TRAIN[:90] - center) / scale, window)
    expected = [
        naive.nearest_distances(row, rows, allowed=[abs(i - j) >= window for j in range(len(rows))])[1]
        for i, row in enumerate(rows)
    ]
    np.testing.assert_allclose(detector.normal_[:, 0], expected, rtol=1e-9)


def test_training_rows_do_not_find_themselves_across_parts_or_when_thinned():
    train = TRAIN.copy()
    train[200:230] = np.nan
    detector = make("nearest-neighbors", window=5, max_windows=60).fit(train, holdout=0)
    assert len(detector.stored_) == 60
    assert detector.normal_.min() > 0.0
    assert len(detector.normal_) == 210 - 4 + 170 - 4  # ten rows of the gap are carried forward


@pytest.mark.parametrize("name", ["nearest-neighbors", "lof", "ocsvm"])
def test_a_bounded_memory_costs_little(name):
    """The large-data path ranks test windows as the exact method does."""
    exact = make(name, max_windows=None).fit(TRAIN, holdout=0.2).decision_function(TEST)
    bounded = make(name, max_windows=150).fit(TRAIN, holdout=0.2).decision_function(TEST)
    ranks = [np.argsort(np.argsort(scores[9:])) for scores in (exact, bounded)]
    assert np.corrcoef(*ranks)[0, 1] > 0.7


# ------------------------------------------------------------------------------------------------------ the others


def test_ecod_equals_its_twin():
    detector = make("ecod").fit(TRAIN, holdout=0)
    np.testing.assert_allclose(detector.decision_function(TEST[:40]), naive.ecod_scores(TRAIN, TEST[:40]), rtol=1e-12)


def test_spectral_contrast_equals_its_twin():
    series = TRAIN[:200, 0]
    windows = np.lib.stride_tricks.sliding_window_view(series, 60)[:, :, None]
    expected = [naive.spectral_contrast(window[:, 0]) for window in windows]
    np.testing.assert_allclose(_contrast(windows)[:, 0], expected, rtol=1e-8, atol=1e-10)


def test_matrix_profile_equals_its_twin():
    window = 12
    detector = make("matrix-profile", window=window).fit(TRAIN[:, 0], holdout=0)

    def normal(values):
        rows = naive.flat_windows(values[:, None], window)
        return (rows - rows.mean(axis=1, keepdims=True)) / rows.std(axis=1, keepdims=True)

    stored = normal(TRAIN[:, 0])
    expected = [naive.nearest_distances(row, stored, allowed=[True] * len(stored))[0] for row in normal(TEST[:40, 0])]
    np.testing.assert_allclose(detector.points(TEST[:40, 0])[window - 1 :, 0], expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_matrix_profile_equals_stumpy():
    stumpy = pytest.importorskip("stumpy")
    train, test = TRAIN[:, 0].copy(), TEST[:, 0].copy()
    test[40:70] = test[40]  # a flat stretch: zero against flat, sqrt(window) against the rest
    joined = stumpy.stump(test, 20, T_B=train, ignore_trivial=False)[:, 0].astype(float)
    found = make("matrix-profile", window=20).fit(train, holdout=0).points(test)[19:, 0]
    np.testing.assert_allclose(found, joined, atol=1e-6)


@pytest.mark.parametrize("count", [1, 200, 256, 700])
def test_one_row_finds_the_neighbour_that_many_find_also_among_equals(count):
    rng = np.random.default_rng(count)
    for stored in (rng.normal(size=(count, 12)), rng.integers(0, 2, size=(count, 12)).astype(float)):
        rows = rng.integers(0, 2, size=(40, 12)).astype(float)
        found = nearest(rows, stored, k=1)[1][:, 0].tolist()
        assert found == [closest(row, stored, heads_of(stored), np.empty(count)) for row in rows]
