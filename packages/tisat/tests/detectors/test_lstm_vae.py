"""What makes the LSTM-VAE of Park et al. itself: moving prior, likelihood, denoising, the state-based threshold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVR

torch = pytest.importorskip("torch")

from tisat.detectors import LSTMVAE, load  # noqa: E402
from tisat.detectors.networks.lstm_vae import divergence, negative_log_likelihood  # noqa: E402
from tisat.errors import ParameterError  # noqa: E402

QUICK = {"window": 10, "hidden": 10, "latent": 3, "epochs": 4, "stride": 2, "batch_size": 32, "learning_rate": 1e-2}
NUMBERS = st.floats(-3, 3)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.sin(np.arange(500)[:, None] / np.array([5.0, 9.0, 14.0])) + 0.05 * rng.standard_normal((500, 3))


@pytest.fixture(scope="module")
def detector(rows):
    return LSTMVAE(**QUICK).fit(rows)


@settings(deadline=None)
@given(st.lists(st.tuples(NUMBERS, st.floats(0.01, 5), NUMBERS), min_size=1, max_size=5))
def test_the_divergence_is_that_of_the_two_gaussians_and_never_negative(triples):
    mean, variance, centre = torch.tensor(triples, dtype=torch.float64).T
    expected = torch.distributions.kl_divergence(
        torch.distributions.Normal(mean, variance.sqrt()), torch.distributions.Normal(centre, torch.ones_like(centre))
    ).sum()
    found = float(divergence(mean, variance, centre))
    assert found == pytest.approx(float(expected), rel=1e-9, abs=1e-9)
    assert found >= -1e-12


@settings(deadline=None)
@given(NUMBERS, NUMBERS, st.floats(0.01, 5))
def test_the_likelihood_is_the_gaussian_one(row, mean, spread):
    row, mean, spread = (torch.tensor(value, dtype=torch.float64) for value in (row, mean, spread))
    expected = -torch.distributions.Normal(mean, spread).log_prob(row)
    assert float(negative_log_likelihood(row, mean, spread)) == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


def test_the_prior_moves_in_a_straight_line_and_is_learned(detector):
    network = detector.network_
    with torch.no_grad():
        centres = network.prior(5)
    steps = (centres[1:] - centres[:-1]).numpy()
    np.testing.assert_allclose(centres[0], network.first.detach())
    np.testing.assert_allclose(centres[-1], network.last.detach())
    np.testing.assert_allclose(steps, np.broadcast_to(steps[0], steps.shape), rtol=1e-4, atol=1e-6)
    assert not np.allclose(network.first.detach(), -0.5)
    assert np.abs(steps).max() > 0  # it varies over time


def test_the_score_is_the_negative_log_likelihood_of_the_newest_row(detector, rows):
    scores = detector.decision_function(rows)
    for t in (9, 250, 499):
        window = detector._scaled(rows[t - 9 : t + 1])[None]
        with torch.no_grad():
            mean, _ = detector.network_.encode(window)
            expected, spread = detector.network_.decode(mean)
            density = torch.distributions.Normal(expected[0, -1], spread[0, -1]).log_prob(window[0, -1])
        least = -3 * float(torch.distributions.Normal(0.0, 0.01).log_prob(torch.tensor(0.0)))
        assert scores[t] == pytest.approx(-float(density.sum()) - least, rel=1e-3, abs=1e-3)
    assert np.nanmin(detector.points(rows)) >= 0


def test_nothing_in_the_window_looks_ahead(detector, rows):
    window = detector._scaled(rows[:10])[None]
    changed = window.clone()
    changed[:, 6:] += 1.0
    with torch.no_grad():
        for first, second in zip(
            detector.network_.decode(detector.network_.encode(window)[0]),
            detector.network_.decode(detector.network_.encode(changed)[0]),
            strict=True,
        ):
            assert torch.equal(first[:, :6], second[:, :6])
            assert not torch.equal(first[:, 6:], second[:, 6:])


def test_noise_is_on_the_input_of_training_only(detector, rows):
    batch = detector._scaled(rows[:40]).reshape(4, 10, 3)

    def loss(noise, *, training):
        other = LSTMVAE(**QUICK, noise=noise)
        network = detector.network_.train(training)
        with torch.no_grad():
            return float(other._loss(network, batch, torch.Generator().manual_seed(1)))

    assert loss(0.0, training=False) == loss(2.0, training=False)
    assert loss(0.0, training=True) != loss(2.0, training=True)
    detector.network_.eval()


def test_the_state_based_threshold_is_a_support_vector_regression_of_the_score_on_the_state(rows, tmp_path):
    plain, state = LSTMVAE(**QUICK).fit(rows), LSTMVAE(**QUICK, threshold="state").fit(rows)
    values = plain._scaled(rows[: plain.trained_on_["rows_used"]])
    train, _ = plain._split([len(values)])
    windows = torch.stack([values[start : start + 10] for start in train])
    with torch.no_grad():
        likelihood, latent = plain._newest(plain.network_, windows)
        everywhere = plain._newest(
            plain.network_, torch.stack([plain._scaled(rows[t - 9 : t + 1]) for t in range(9, 500)])
        )
    regression = SVR(kernel="rbf").fit(latent.double().numpy(), likelihood.sum(dim=1).double().numpy())
    expected = everywhere[0].sum(dim=1).double().numpy() - regression.predict(everywhere[1].double().numpy())
    found = state.decision_function(rows)[9:]
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=0.02)
    state.save(tmp_path / "model.tisat")
    np.testing.assert_array_equal(load(tmp_path / "model.tisat").decision_function(rows)[9:], found)


def test_training_lowers_its_loss(detector):
    assert detector.history_[-1]["loss"] < detector.history_[0]["loss"] - 1.0


def test_a_faulty_channel_has_the_largest_point(rows):
    detector = LSTMVAE(**{**QUICK, "epochs": 10}).fit(rows)
    faulty = rows.copy()
    faulty[300:, 1] += 4.0
    assert int(np.argmax(detector.points(faulty)[300])) == 1


def test_constant_and_duplicated_channels(rows):
    odd = np.column_stack([rows, rows[:, 0], np.full(len(rows), 7.0), np.zeros(len(rows))])
    for threshold in ("constant", "state"):
        detector = LSTMVAE(**QUICK, threshold=threshold).fit(odd)
        assert np.isfinite(detector.decision_function(odd + np.array([0, 0, 0, 0, 0.5, 0.5]))[9:]).all()


@pytest.mark.parametrize(
    ("params", "name"),
    [({"threshold": "none"}, "threshold"), ({"noise": -0.1}, "noise"), ({"smallest_spread": 0.0}, "smallest_spread"),
     ({"latent": 0}, "latent")],
)  # fmt: skip
def test_bad_parameters_are_refused_by_name(rows, params, name):
    with pytest.raises(ParameterError, match=f"'{name}' parameter of LSTMVAE"):
        LSTMVAE(**params).fit(rows)
