"""omega_0: golden values of the specification (section 5), and the equations the roots must solve."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import lambertw

from tisat.alarms.decay import empirical_decay, exact_decay, other_root, paper_decay

# Specification, section 5, method 2: w where q = -ln alpha.
EXACT = {0.05: 0.9402, 0.1: 0.8629, 0.2: 0.6470, 0.3: 0.3185}
# The same place: the closed form's other root for alpha = 0.1, v = 1, by phi.
CLOSED = {20.0: 0.9203, 5.0: 1.2513, 2.0: 2.3302}


@pytest.mark.parametrize(("alpha", "w"), EXACT.items())
def test_the_exact_root_at_the_values_of_the_specification(alpha, w):
    assert exact_decay(q=-math.log(alpha)) == pytest.approx(w, abs=5e-5)


@pytest.mark.parametrize(("phi", "omega"), CLOSED.items())
def test_the_closed_form_at_the_values_of_the_specification(phi, omega):
    volume = math.log(10.0)
    found, notes = paper_decay(log_ball=math.log(volume), largest=phi / volume)
    assert found / volume == pytest.approx(omega, abs=5e-5)
    assert omega > EXACT[0.1]
    theta = math.exp(-volume)
    assert bool(notes) == (phi * theta <= 1)
    if notes:
        assert "principal branch" in notes[0]


@given(st.floats(0.05, 30.0), st.floats(0.1, 50.0))
@settings(max_examples=100, deadline=None)
def test_the_closed_form_is_the_paper_formula_on_the_branch_that_is_not_trivial(volume, phi):
    v, theta = 1.0, math.exp(-volume)
    z = phi * theta
    if abs(z - 1) < 0.01 or z * math.exp(-z) < 1e-290:
        return
    branch = -1 if z < 1 else 0
    expected = v - theta - float(lambertw(-z * math.exp(-z), k=branch).real) / phi
    found, _ = paper_decay(log_ball=math.log(volume), largest=phi / volume)
    assert found / volume == pytest.approx(expected, rel=1e-7)
    trivial = v - theta - float(lambertw(-z * math.exp(-z), k=-1 - branch).real) / phi
    assert trivial == pytest.approx(v, rel=1e-7)


@given(st.floats(-500.0, 6.0))
@settings(max_examples=100, deadline=None)
def test_the_other_root_solves_its_equation_from_the_other_side_of_one(log_z):
    y = other_root(log_z)
    z = math.exp(log_z)
    assert y - math.log(y) == pytest.approx(z - log_z, rel=1e-9)
    assert (y - 1) * (z - 1) <= 1e-6


@given(st.floats(1.01, 60.0), st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_the_exact_root_solves_its_equation(q, k):
    w = exact_decay(q=q, k=k)
    if q <= k:
        assert math.isnan(w)
    else:
        assert 0 < w <= 1
        if w < 1:
            assert 1 - w == pytest.approx(math.exp(-w * q / k), rel=1e-6, abs=1e-12)


def test_where_evidence_hardly_drifts_downwards_there_is_no_root():
    assert math.isnan(exact_decay(q=1.0 + 1e-13))
    assert math.isnan(empirical_decay(np.full(3, np.nan)))


def test_the_k_th_neighbour_has_gamma_distances_and_the_root_for_them():
    draws = np.random.default_rng(0).gamma(3.0, size=1_000_000)
    q = float(np.quantile(draws, 0.95))
    w = exact_decay(q=q, k=3)
    assert np.mean(np.exp(w / 2 * draws - w / 2 * q)) == pytest.approx(
        (1 - w / 2) ** -3 * math.exp(-w / 2 * q), rel=0.02
    )


def test_a_power_beyond_floating_point_is_said_to_mean_nothing():
    decay, notes = paper_decay(log_ball=5000.0, largest=1.0)
    assert math.isinf(decay)
    assert "leaves floating point" in notes[0]


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=50))
@settings(max_examples=100, deadline=None)
def test_the_empirical_root_solves_its_equation(values):
    evidence = np.array(values)
    omega = empirical_decay(evidence)
    if evidence.mean() >= 0:
        assert math.isnan(omega)
    elif evidence.max() <= -1e-12 * evidence.min():
        assert math.isinf(omega)
    elif math.isfinite(omega) and omega * np.abs(evidence).max() < 600:
        assert np.mean(np.exp(omega * evidence)) == pytest.approx(1.0, abs=1e-6)
