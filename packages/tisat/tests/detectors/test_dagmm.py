"""What makes DAGMM itself: its features, its mixture and its energy, against reference implementations; numerics where covariances fail."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import naive_dagmm  # noqa: E402
from tisat.detectors import DAGMM  # noqa: E402
from tisat.detectors.networks.dagmm import cholesky, energy, fit_mixture, least_energy, reconstruction_features  # noqa: E402
from tisat.errors import ParameterError  # noqa: E402

QUICK = {"window": 4, "hidden": (12,), "latent": 2, "epochs": 6, "batch_size": 64, "components": 3}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.sin(np.arange(500)[:, None] / np.array([5.0, 9.0, 14.0])) + 0.05 * rng.standard_normal((500, 3))


def random_mixture(seed, n=40, z=3, k=2):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, z)) @ rng.standard_normal((z, z)) + rng.standard_normal(z)
    gamma = rng.dirichlet(np.ones(k), size=n)
    return points, gamma


@pytest.mark.parametrize("seed", range(5))
def test_mixture_and_energy_equal_their_definitions(seed):
    points, gamma = random_mixture(seed)
    found = fit_mixture(torch.from_numpy(points), torch.from_numpy(gamma))
    shares, means, covariances = naive_dagmm.mixture(points, gamma)
    np.testing.assert_allclose(found.log_shares.exp(), shares, rtol=1e-9)
    np.testing.assert_allclose(found.means, means, rtol=1e-9)
    rebuilt = (found.factors @ found.factors.transpose(1, 2)).numpy()
    np.testing.assert_allclose(rebuilt, np.array(covariances) + 1e-6 * np.eye(3), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.variances, np.diagonal(rebuilt, axis1=1, axis2=2), rtol=1e-9)
    expected = naive_dagmm.energy(points, shares, means, covariances + 1e-6 * np.eye(3))
    np.testing.assert_allclose(energy(torch.from_numpy(points), found), expected, rtol=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_no_energy_is_below_the_least(seed):
    points, gamma = random_mixture(seed)
    found = fit_mixture(torch.from_numpy(points), torch.from_numpy(gamma))
    centres = energy(found.means, found)
    assert float(centres.min()) >= float(least_energy(found)) - 1e-9
    one = fit_mixture(torch.from_numpy(points), torch.ones(len(points), 1, dtype=torch.float64))
    assert float(energy(one.means, one)) == pytest.approx(float(least_energy(one)))  # met by a single component


def test_energy_is_finite_where_every_density_underflows():
    points, gamma = random_mixture(0)
    found = fit_mixture(torch.from_numpy(points), torch.from_numpy(gamma))
    far = energy(torch.full((1, 3), 1e5, dtype=torch.float64), found)
    assert torch.isfinite(far).all()
    assert float(far) > 1e6


@settings(deadline=None)
@given(st.lists(st.floats(0.1, 1.0), min_size=3, max_size=6), st.lists(st.floats(0.1, 1.0), min_size=3, max_size=6))
def test_reconstruction_features_equal_their_definitions(window, rebuilt):
    size = min(len(window), len(rebuilt))
    window, rebuilt = window[:size], rebuilt[:size]
    found = reconstruction_features(
        torch.tensor([window], dtype=torch.float64), torch.tensor([rebuilt], dtype=torch.float64)
    )
    np.testing.assert_allclose(found[0], naive_dagmm.features(window, rebuilt), rtol=1e-5, atol=1e-4)


def test_features_and_their_gradients_are_finite_for_windows_of_zeros_and_for_exact_reconstructions():
    for window in (torch.zeros(2, 4), torch.ones(2, 4)):
        rebuilt = window.clone().requires_grad_()
        found = reconstruction_features(window, rebuilt)
        found.sum().backward()
        assert torch.isfinite(found).all()
        assert torch.isfinite(rebuilt.grad).all()


@pytest.mark.parametrize(
    "covariance",
    [np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, 0.0, 1e-12]), np.diag([1.0, 1.0, -1e-3]), 1e6 * np.ones((3, 3))],
    ids=["zero", "rank one", "flat", "not positive by rounding", "large and rank one"],
)
def test_singular_covariances_get_a_factor(covariance):
    factors = cholesky(torch.from_numpy(covariance)[None])
    assert torch.isfinite(factors).all()
    assert bool((torch.diagonal(factors, dim1=1, dim2=2) > 0).all())
    np.testing.assert_allclose((factors @ factors.transpose(1, 2))[0], covariance, rtol=1e-3, atol=2e-2)


def test_a_component_nobody_belongs_to_is_finite():
    points, _ = random_mixture(1)
    gamma = torch.zeros(len(points), 2, dtype=torch.float64)
    gamma[:, 0] = 1.0
    found = fit_mixture(torch.from_numpy(points), gamma)
    assert torch.isfinite(energy(torch.from_numpy(points), found)).all()


def test_the_mixture_that_scores_is_that_of_the_whole_training_set(rows):
    detector = DAGMM(**QUICK).fit(rows)
    network = detector.network_
    values = detector._scaled(rows[: detector.trained_on_["rows_used"]])
    train, _ = detector._split([len(values)])
    windows = torch.stack([values[start : start + 4].flatten() for start in train])
    with torch.no_grad():
        _, z, gamma = network(windows)
    shares, means, covariances = naive_dagmm.mixture(z.double().numpy(), gamma.double().numpy())
    np.testing.assert_allclose(network.log_shares.exp(), shares, rtol=1e-3)
    np.testing.assert_allclose(network.means, means, rtol=1e-3, atol=1e-5)
    held = detector._scaled(rows[400:404])[None]
    with torch.no_grad():
        _, z, _ = network(held.flatten(1))
    covariances = np.array(covariances) + 1e-6 * np.eye(4)
    expected = naive_dagmm.energy(z.double().numpy(), shares, means, covariances) - naive_dagmm.least(
        shares, covariances
    )
    assert detector.decision_function(rows)[403] == pytest.approx(float(np.squeeze(expected)), rel=1e-2, abs=1e-2)


def test_the_loss_is_eq_7(rows):
    detector = DAGMM(**{**QUICK, "dropout": 0.0}, energy_weight=0.3, covariance_weight=0.02).fit(rows)
    network = detector.network_.train()
    batch = detector._scaled(rows[:80]).reshape(20, 4, 3)
    with torch.no_grad():
        found = float(detector._loss(network, batch, None))
        rebuilt, z, gamma = network(batch.flatten(1))
    shares, means, covariances = naive_dagmm.mixture(z.double().numpy(), gamma.double().numpy())
    covariances = np.array(covariances) + 1e-6 * np.eye(4)
    reconstruction = float(((batch.flatten(1) - rebuilt) ** 2).sum(dim=1).mean())
    energies = naive_dagmm.energy(z.double().numpy(), shares, means, covariances)
    penalty = sum(1 / covariance[j, j] for covariance in covariances for j in range(4))
    assert found == pytest.approx(reconstruction + 0.3 * energies.mean() + 0.02 * penalty, rel=1e-4)


def test_training_lowers_its_loss(rows):
    history = DAGMM(**{**QUICK, "epochs": 10}, validation=0.0, learning_rate=5e-3).fit(rows).history_
    assert history[-1]["loss"] < 0.5 * history[0]["loss"]


def test_constant_and_duplicated_channels(rows):
    odd = np.column_stack([rows, rows[:, 0], np.full(len(rows), 7.0), np.zeros(len(rows))])
    for preset in ("compact", "paper"):
        detector = DAGMM(**QUICK, preset=preset).fit(odd)
        assert np.isfinite(detector.decision_function(odd + np.array([0, 0, 0, 0, 0.5, 0.5]))[3:]).all()


@pytest.mark.parametrize(
    ("params", "name"),
    [({"components": 0}, "components"), ({"dropout": 1.0}, "dropout"), ({"hidden": 5}, "hidden"), ({"latent": 0}, "latent"),
     ({"energy_weight": -1.0}, "energy_weight")],
)  # fmt: skip
def test_bad_parameters_are_refused_by_name(rows, params, name):
    with pytest.raises(ParameterError, match=f"'{name}' parameter of DAGMM"):
        DAGMM(**params).fit(rows)
