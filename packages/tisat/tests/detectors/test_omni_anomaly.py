"""OmniAnomaly: its densities are densities, its prior and flows are what they are called, training helps."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scipy.stats import multivariate_normal  # noqa: E402

from naive_deep import kalman_log_density  # noqa: E402
from tisat.detectors import OmniAnomaly  # noqa: E402
from tisat.detectors._variational import check_divergence, deviance_residuals  # noqa: E402
from tisat.detectors.networks.flows import CouplingFlow, PlanarFlow  # noqa: E402
from tisat.detectors.networks.omni_anomaly import OmniAnomalyNetwork  # noqa: E402
from tisat.detectors.networks.state_space import LinearGaussianStateSpace  # noqa: E402
from tisat.errors import ParameterError, TrainingError  # noqa: E402

QUICK = {"window": 10, "hidden": 8, "dense": 8, "latent": 2, "n_flows": 2, "n_samples": 2, "stride": 2}


@pytest.fixture(autouse=True)
def _seed():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def shaken(module, size=0.5):
    """The module in float64 with random parameters: nothing is at a convenient initial value."""
    module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(size * torch.randn(parameter.shape, dtype=torch.float64))
    return module


@pytest.mark.parametrize("make", [lambda: PlanarFlow(3, n_layers=4), lambda: CouplingFlow(3, n_layers=4, hidden=5)])
def test_the_log_determinant_of_a_flow_is_that_of_its_jacobian(make):
    flow = shaken(make())
    for _ in range(20):
        z = 2 * torch.randn(3, dtype=torch.float64)
        jacobian = torch.autograd.functional.jacobian(lambda point: flow(point[None])[0][0], z)
        log_det = flow(z[None])[1].detach()
        assert float(log_det[0]) == pytest.approx(float(torch.linalg.slogdet(jacobian).logabsdet), abs=1e-8)


def test_a_planar_flow_never_folds_space_whatever_its_parameters():
    flow = shaken(PlanarFlow(2, n_layers=1))
    with torch.no_grad():
        flow.u.copy_(-30 * flow.w)  # without the constraint w u would be far below -1
    for _ in range(20):
        jacobian = torch.autograd.functional.jacobian(lambda point: flow(point[None])[0][0], torch.randn(2).double())
        assert torch.linalg.det(jacobian) > 0


def test_the_prior_is_the_density_of_the_kalman_filter():
    prior = shaken(LinearGaussianStateSpace(3), size=0.3)
    z = torch.randn(4, 12, 3, dtype=torch.float64)
    with torch.no_grad():
        found = prior.log_prob(z).numpy()
        parts = [part.numpy() for part in (prior.transition, prior.observation, *prior.noises())]
    np.testing.assert_allclose(found, [kalman_log_density(one, *parts) for one in z.numpy()], rtol=1e-9)


def test_the_untouched_prior_is_a_random_walk_seen_through_noise():
    length = 6
    walk = np.minimum.outer(np.arange(1, length + 1), np.arange(1, length + 1)) + np.eye(length)  # worked by hand
    z = np.random.default_rng(0).standard_normal(length)
    found = LinearGaussianStateSpace(1).double().log_prob(torch.tensor(z)[None, :, None]).detach()
    assert float(found) == pytest.approx(multivariate_normal(np.zeros(length), walk).logpdf(z))


def test_the_posterior_density_is_that_of_its_noise_carried_through_the_whole_recursion():
    network = shaken(OmniAnomalyNetwork(2, hidden=4, dense=5, latent=2, n_flows=3, floor=1e-2), size=0.3)
    window, noise = torch.rand(1, 5, 2).double(), torch.randn(1, 5, 2).double()
    jacobian = torch.autograd.functional.jacobian(
        lambda draw: network.encode(window, draw.view(1, 5, 2)).z.flatten(), noise.flatten()
    )
    carried = torch.distributions.Normal(0, 1).log_prob(noise).sum() - torch.linalg.slogdet(jacobian).logabsdet
    assert float(network.encode(window, noise).log_q.detach()) == pytest.approx(float(carried), abs=1e-8)
    blocks = jacobian.view(5, 2, 5, 2)
    assert blocks[3, :, 2].abs().max() > 1e-4, "a latent variable is told its predecessor"
    assert blocks[2, :, 3].abs().max() == 0, "and not its successor"


def test_points_rank_time_steps_as_the_log_likelihood_does_and_are_never_negative():
    density = torch.randn(50, 3).double() - 5
    points = deviance_residuals(density, floor=1e-2)
    np.testing.assert_array_equal(np.argsort((points**2).mean(dim=1).numpy()), np.argsort(-density.sum(dim=1).numpy()))
    best = torch.tensor([-math.log(1e-2) - 0.5 * math.log(2 * math.pi)])
    assert float(deviance_residuals(best, floor=1e-2)) == 0.0


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.sin(np.arange(500)[:, None] / np.array([5.0, 9.0])) + 0.05 * rng.standard_normal((500, 2))


def test_the_training_loss_falls_and_the_fault_is_contributing_on_its_channel(rows):
    detector = OmniAnomaly(epochs=6, learning_rate=1e-2, **QUICK).fit(rows)
    losses = [row["loss"] for row in detector.history_]
    assert losses[-1] < losses[0]
    faulty = rows.copy()
    faulty[400:404, 1] += 4.0
    contributing = detector.points(faulty)[400:404]
    assert (contributing[:, 1] > contributing[:, 0]).all()


def test_still_and_doubled_channels_leave_finite_scores_and_a_divergence_that_is_not_negative(rows):
    awkward = np.column_stack([rows, rows[:, 0], np.full(len(rows), 3.0)])
    detector = OmniAnomaly(epochs=3, learning_rate=1e-2, **QUICK).fit(awkward)
    assert np.isfinite(detector.decision_function(awkward)[QUICK["window"] - 1 :]).all()
    assert all(row["divergence"] > 0 for row in detector.history_)


def test_a_negative_divergence_is_said():
    check_divergence(torch.randn(100) + 0.05, whose="it")  # noise around 0 is no reason to stop
    with pytest.raises(TrainingError, match=r"KL divergence of it must be finite and not negative\. Got -2"):
        check_divergence(torch.full((50,), -2.0), whose="it")
    with pytest.raises(TrainingError, match="Got nan"):
        check_divergence(torch.full((50,), float("nan")), whose="it")


def test_the_paper_preset_has_the_papers_numbers():
    detector = OmniAnomaly(preset="paper")
    numbers = detector.window, detector.hidden, detector.dense, detector.latent, detector.n_flows, detector.floor
    assert numbers == (100, 500, 500, 3, 20, 1e-4)
    assert repr(detector) == "OmniAnomaly(preset='paper')"


def test_bad_parameters_are_refused(rows):
    with pytest.raises(ParameterError, match="'n_flows' parameter of OmniAnomaly must be an integer >= 1"):
        OmniAnomaly(n_flows=0).fit(rows)
    with pytest.raises(ParameterError, match="'floor'"):
        OmniAnomaly(floor=0.0).fit(rows)
