"""InterFusion: two views in the right order, two stages, a density that is one, an imputation that keeps its hands off."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tisat.detectors import InterFusion  # noqa: E402
from tisat.detectors.networks.interfusion import (  # noqa: E402
    InterFusionNetwork,
    Noise,
    TimeDecoder,
    TimeEncoder,
    impute,
    squeezed_lengths,
)
from tisat.errors import ParameterError  # noqa: E402

QUICK = {
    "window": 12, "hidden": 8, "dense": 8, "latent": 2, "n_flows": 2, "n_steps": 3, "n_samples": 2, "stride": 2,
    "pretrain_epochs": 4,
}  # fmt: skip


@pytest.fixture
def network():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = InterFusionNetwork(3, window=9, hidden=4, dense=5, latent=2, n_flows=2, coupling=5).double()
        for parameter in made.parameters():
            parameter.data.add_(0.2 * torch.randn(parameter.shape))
        return made


def draws(network, *leading, window=9, seed=1):
    noise = network.noise(leading, window, generator=torch.Generator().manual_seed(seed))
    return Noise(*(one.double() for one in noise))


@pytest.mark.parametrize("window", [8, 9, 15, 30, 40, 100])
def test_the_short_view_unfolds_to_the_window_it_came_from(window):
    squeezed, _ = TimeEncoder(2)(torch.rand(3, window, 2))
    assert squeezed.shape == (3, squeezed_lengths(window)[-1], 2)
    assert TimeDecoder(2, window=window)(squeezed).shape == (3, window, 2)


def test_the_posterior_density_is_that_of_its_noise_carried_through(network):
    window, noise = torch.rand(1, 9, 3).double(), draws(network, 1)
    sizes = [one.numel() for one in noise]

    def carry(flat):
        z2, z1 = flat.split(sizes)
        latent = network.encode(window, Noise(z2.view_as(noise.z2), z1.view_as(noise.z1)))
        return torch.cat([latent.z2.flatten(), latent.z1.flatten()])

    flat = torch.cat([one.flatten() for one in noise])
    stretched = torch.linalg.slogdet(torch.autograd.functional.jacobian(carry, flat)).logabsdet
    carried = torch.distributions.Normal(0, 1).log_prob(flat).sum() - stretched
    assert float(network.encode(window, noise).log_q.detach()) == pytest.approx(float(carried), abs=1e-7)


def test_the_prior_of_the_narrow_view_is_told_its_predecessor_row_by_row(network):
    latent = network.encode(torch.rand(1, 9, 3).double(), draws(network, 1))
    with torch.no_grad():
        total = torch.distributions.Normal(0, 1).log_prob(latent.z2).sum()
        before = torch.zeros(2).double()
        for t in range(9):
            mean, deviation = network.prior(torch.cat([latent.filtered[0, t], before]))
            total = total + torch.distributions.Normal(mean, deviation).log_prob(latent.z1[0, t]).sum()
            before = latent.z1[0, t]
        assert float(network.log_prior(latent)) == pytest.approx(float(total))


def test_the_narrow_view_sees_the_window_only_through_the_short_one(network, monkeypatch):
    constant = (torch.zeros(1, *network.shape).double(), torch.ones(1, *network.shape).double())
    monkeypatch.setattr(network.time_encoder, "forward", lambda windows: constant)
    noise = draws(network, 1)
    first, second = (network.encode(torch.rand(1, 9, 3).double(), noise) for _ in range(2))
    assert torch.equal(first.z1, second.z1), "prefiltering: z1 is inferred from d, not from x"


def test_samples_are_the_same_for_every_window_and_differ_from_each_other(network):
    windows = torch.rand(4, 9, 3).double()
    noise = draws(network, 5, 1)
    with torch.no_grad():
        together = network.decode(network.encode(windows, noise))[0]
        alone = network.decode(network.encode(windows[2:3], noise))[0]
    assert together.shape == (5, 4, 9, 3)
    torch.testing.assert_close(together[:, 2], alone[:, 0])
    assert not torch.allclose(together[0], together[1])


def test_the_last_row_alone_is_the_last_row_of_all(network):
    windows, noise = torch.rand(4, 9, 3).double(), draws(network, 5, 1)
    with torch.no_grad():
        for alone, rows in zip(
            network.last_row(windows, noise), network.decode(network.encode(windows, noise)), strict=True
        ):
            torch.testing.assert_close(alone, rows[:, :, -1])


@pytest.mark.parametrize("window", [8, 9, 15, 30, 41])
def test_the_way_back_in_time_is_a_transposed_convolution(window):
    decoder = TimeDecoder(2, window=window).double()
    squeezed = torch.rand(3, squeezed_lengths(window)[-1], 2).double()
    with torch.no_grad():
        rows = squeezed.transpose(1, 2)
        for layer in decoder.layers:
            rows = torch.nn.functional.leaky_relu(torch.nn.ConvTranspose1d.forward(layer, rows), 0.2)
        torch.testing.assert_close(decoder(squeezed), rows.transpose(1, 2))


@given(st.integers(0, 200), st.integers(0, 5))
def test_imputation_never_touches_what_was_observed(seed, n_steps):
    rng = np.random.default_rng(seed)
    windows = torch.from_numpy(rng.standard_normal((2, 5, 3)))
    doubtful = torch.from_numpy(rng.random((2, 5, 3)) < 0.4)
    calls = []

    def draw(given_windows):
        assert torch.equal(given_windows[~doubtful], windows[~doubtful])
        calls.append(given_windows)
        return torch.from_numpy(rng.standard_normal((2, 5, 3)))

    found = impute(windows, doubtful, draw, n_steps=n_steps)
    assert torch.equal(found[~doubtful], windows[~doubtful])
    assert len(calls) == n_steps
    assert n_steps == 0 or not (found == windows)[doubtful].any()


def test_the_chain_draws_from_the_conditional_distribution():
    """A model whose reconstruction of a pair is a Gibbs step: the chain must end in its conditional, far from its start."""
    generator = torch.Generator().manual_seed(0)
    correlation = 0.8
    windows = torch.tensor([[1.0, 50.0]]).repeat(20_000, 1)
    latent = lambda x: correlation * x.mean(dim=1, keepdim=True)  # noqa: E731
    step = lambda x: latent(x) + 0.1 * torch.randn(x.shape, generator=generator)  # noqa: E731
    found = impute(windows, torch.tensor([False, True]), step, n_steps=60)[:, 1]
    # x2 = 0.4 (1 + x2') + 0.1 e is stationary at mean 0.4 / 0.6 and variance 0.01 / (1 - 0.16)
    assert float(found.mean()) == pytest.approx(0.4 / 0.6, abs=0.01)
    assert float(found.var()) == pytest.approx(0.01 / 0.84, rel=0.1)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.sin(np.arange(500)[:, None] / np.array([5.0, 9.0])) + 0.05 * rng.standard_normal((500, 2))


@pytest.fixture(scope="module")
def fitted(rows):
    return InterFusion(epochs=5, learning_rate=1e-2, **QUICK).fit(rows)


def test_the_losses_of_both_stages_fall(fitted):
    first_stage = fitted.pretraining_
    assert len(first_stage) == 4
    assert first_stage[-1]["loss"] < first_stage[0]["loss"]
    assert fitted.history_[-1]["loss"] < fitted.history_[0]["loss"]
    assert all(row["divergence"] > 0 for row in fitted.history_)


def test_the_first_stage_moves_nothing_of_the_second(rows, monkeypatch):
    seen = {}

    def stop(self, network, batch, optimizers, generator):
        seen.update({name: tensor.detach().clone() for name, tensor in network.state_dict().items()})
        raise KeyboardInterrupt

    monkeypatch.setattr(InterFusion, "_training_step", stop)
    with pytest.raises(KeyboardInterrupt):
        InterFusion(epochs=1, **QUICK).fit(rows)
    fresh = InterFusion(epochs=0, **QUICK).fit(rows).network_.state_dict()
    moved = {name.split(".")[0] for name in fresh if not torch.equal(fresh[name], seen[name])}
    assert moved == {"time_encoder", "time_decoder", "first_stage"}


def test_scoring_imputes_the_last_row_alone_and_attributions_the_channel(rows, fitted):
    windows = fitted._scaled(np.stack([rows[:12], rows[30:42]]))
    with torch.no_grad():
        imputed = fitted._imputed(fitted.network_, windows, torch.Generator().manual_seed(0))
    assert torch.equal(imputed[:, :-1], windows[:, :-1])
    assert not torch.isclose(imputed[:, -1], windows[:, -1]).any()
    faulty = rows.copy()
    faulty[400:404, 1] += 4.0
    contributing = fitted.points(faulty)[400:404]
    assert (contributing[:, 1] > contributing[:, 0]).all()


def test_the_learning_rate_is_halved_and_a_resumed_run_knows_it(rows, tmp_path):
    params = {**QUICK, "halve_every": 1, "validation": 0.0}
    whole = InterFusion(epochs=3, **params).fit(rows)
    InterFusion(epochs=2, **params).fit(rows, checkpoint=tmp_path / "run")
    resumed = InterFusion(epochs=3, **params).fit(rows, checkpoint=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(whole.decision_function(rows), resumed.decision_function(rows))


def test_still_and_doubled_channels_leave_finite_scores(rows):
    awkward = np.column_stack([rows, rows[:, 0], np.full(len(rows), 3.0)])
    detector = InterFusion(epochs=2, **QUICK).fit(awkward)
    assert np.isfinite(detector.decision_function(awkward)[QUICK["window"] - 1 :]).all()
    assert all(row["divergence"] > 0 for row in detector.history_)


def test_bad_parameters_are_refused(rows):
    with pytest.raises(ParameterError, match="'window' parameter of InterFusion must be an integer >= 8"):
        InterFusion(window=7).fit(rows)
    with pytest.raises(ParameterError, match="'latent' parameter of InterFusion must be an integer >= 2"):
        InterFusion(latent=1).fit(rows)
