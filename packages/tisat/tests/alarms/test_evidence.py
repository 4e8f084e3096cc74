"""Evidence: its three forms, in floating point at any dimension."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_sequential as naive
from tisat.alarms import KNNEvidence
from tisat.alarms.evidence import FORMS, fit_weibull
from tisat.errors import CalibrationWarning, InputError


def cloud(m, n=400, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m))


@pytest.mark.parametrize("k", [1, 3])
def test_the_power_form_is_the_paper_formula_in_units_of_d_alpha(k):
    evidence = KNNEvidence(form="power", k=k).fit(cloud(3))
    queries = cloud(3, n=20, seed=9)
    points = evidence._neighbours.points
    for query, found in zip(queries, evidence(queries), strict=True):
        d = naive.kth_distance(query, points, k)
        paper = d**3 - evidence.d_alpha_**3
        assert found * evidence.d_alpha_**3 == pytest.approx(paper, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("m", [1, 38, 55])
def test_evidence_is_finite_and_grows_with_distance_however_far_a_point_is(form, m):
    evidence = KNNEvidence(form=form).fit(cloud(m))
    far = np.outer([0.0, 10.0, 1e3, 1e30], np.ones(m))
    found = evidence(far)
    assert np.isfinite(found).all()
    assert (np.diff(found) >= 0).all()
    assert found[1] > found[0]


@pytest.mark.parametrize("form", ["power", "log"])
def test_a_share_alpha_of_normal_evidence_is_positive(form):
    points = cloud(2, n=6000)
    evidence = KNNEvidence(form=form, alpha=0.1).fit(points[:4000])
    share = (evidence(points[4000:]) > 0).mean()
    assert 0.07 < share < 0.14


@given(st.integers(1, 6), st.integers(0, 2**31), st.floats(0.1, 1e3), st.floats(-100, 100))
@settings(max_examples=25, deadline=None)
def test_moving_and_stretching_space_leaves_evidence_alone(m, seed, stretch, shift):
    points, queries = cloud(m, n=60, seed=seed), cloud(m, n=8, seed=seed + 1)
    for form in FORMS:
        plain = KNNEvidence(form=form).fit(points)(queries)
        moved = KNNEvidence(form=form).fit(points * stretch + shift)(queries * stretch + shift)
        np.testing.assert_allclose(moved, plain, rtol=1e-5, atol=1e-6)


@given(st.floats(0.5, 8.0), st.floats(0.01, 100.0))
@settings(max_examples=20, deadline=None)
def test_weibull_distances_become_unit_exponential(shape, scale):
    draws = scale * np.random.default_rng(0).weibull(shape, 20_000)
    found_shape, found_scale = fit_weibull(draws)
    assert found_shape == pytest.approx(shape, rel=0.05)
    unit = (draws / found_scale) ** found_shape
    assert unit.mean() == pytest.approx(1.0, abs=0.03)
    assert np.quantile(unit, 0.95) == pytest.approx(-math.log(0.05), rel=0.05)


def test_two_distances_are_enough_for_a_weibull_fit_and_one_is_not():
    shape, scale = fit_weibull(np.array([0.0, 1.0, 2.0]))
    unit = (np.array([1.0, 2.0]) / scale) ** shape
    assert unit.mean() == pytest.approx(1.0)
    for few in ([1.0], [2.0, 2.0], [0.0, 1.0]):
        with pytest.raises(InputError, match="at least two different positive distances"):
            fit_weibull(np.array(few))


def test_the_weibull_contract_is_that_of_all_positive_distances():
    evidence = KNNEvidence()
    evidence.m_ = 3
    evidence._learn(np.array([0.0, 1.0, 2.0]))
    assert (evidence.shape_, evidence.scale_) == fit_weibull(np.array([1.0, 2.0]))
    for same in ([0.0, 2.0], [2.0, 2.0]):
        evidence._learn(np.array(same))
        assert (evidence.shape_, evidence.scale_) == (3.0, evidence.d_alpha_)


def test_nearer_than_any_normal_point_is_to_its_neighbour_the_logarithm_says_no_less():
    evidence = KNNEvidence(form="log").fit(cloud(2))
    point = evidence._neighbours.points[:1]
    at, near = evidence(point)[0], evidence(point + 1e-12)[0]
    assert math.isfinite(at)
    assert at == near < 0


def test_one_point_and_many_agree_to_the_bit():
    for form in FORMS:
        evidence = KNNEvidence(form=form).fit(cloud(5))
        queries = cloud(5, n=50, seed=4)
        assert [evidence(q[None])[0] for q in queries] == evidence(queries).tolist()


def test_normal_points_that_repeat_are_warned_about():
    with pytest.warns(CalibrationWarning, match="repeat an earlier one exactly"):
        evidence = KNNEvidence().fit(np.zeros((50, 2)))
    assert evidence(np.zeros((1, 2)))[0] < 0 < evidence(np.full((1, 2), 5.0))[0]


def test_too_few_normal_points_are_refused():
    with pytest.raises(InputError, match="at least 8 with k = 3"):
        KNNEvidence(k=3).fit(np.zeros((5, 1)))
