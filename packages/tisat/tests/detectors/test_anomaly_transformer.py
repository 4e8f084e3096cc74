"""Anomaly Transformer: the discrepancy is the two KLs, each phase teaches one side, the published score is kept apart."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from naive_deep import gaussian_prior, kl  # noqa: E402
from tisat.detectors import AnomalyTransformer  # noqa: E402
from tisat.detectors.networks.anomaly_transformer import (  # noqa: E402
    SMOOTHING,
    AnomalyAttention,
    AnomalyTransformerNetwork,
    Associations,
    discrepancy,
)
from tisat.errors import ParameterError  # noqa: E402

QUICK = {"window": 12, "width": 8, "n_heads": 2, "n_layers": 2, "feed_forward": 8, "stride": 2}


@pytest.fixture(autouse=True)
def _seed():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def distributions(*shape):
    return torch.softmax(2 * torch.randn(*shape, dtype=torch.float64), dim=-1)


def test_the_discrepancy_is_both_divergences_row_by_row():
    layers = [Associations(distributions(2, 3, 4, 4), distributions(2, 3, 4, 4)) for _ in range(2)]
    found = discrepancy(layers).numpy()
    for b in range(2):
        for row in range(4):
            terms = []
            for prior, series in layers:
                for head in range(3):
                    p, s = ((one[b, head, row].numpy() + SMOOTHING) / (1 + 4 * SMOOTHING) for one in (prior, series))
                    terms.append(kl(p, s) + kl(s, p))
            assert found[b, row] == pytest.approx(np.mean(terms))
    same = distributions(1, 1, 4, 4)
    assert float(discrepancy([Associations(same, same)]).abs().max()) == 0.0


def test_the_discrepancy_of_a_certain_association_is_finite():
    certain, other = torch.eye(4)[None, None], torch.eye(4).flip(0)[None, None]
    assert torch.isfinite(discrepancy([Associations(certain, other)])).all()


def test_the_prior_is_a_gaussian_of_the_distance_rescaled():
    attention = AnomalyAttention(6, n_heads=2, window=9).double()
    rows = torch.randn(1, 9, 6, dtype=torch.float64)
    with torch.no_grad():
        found = attention.prior(rows).numpy()
        sigma = (3 ** (torch.sigmoid(5 * attention.sigma(rows)) + 1e-5) - 1).numpy()
    for head in range(2):
        for row in range(9):
            np.testing.assert_allclose(found[0, head, row], gaussian_prior(sigma[0, row, head], 9, row), atol=1e-12)


def gradients(of):
    network = AnomalyTransformerNetwork(2, window=6, width=8, n_heads=2, n_layers=1, feed_forward=8, dropout=0.0)
    discrepancy(network(torch.randn(4, 6, 2)).associations, of=of).mean().backward()
    attention = network.layers[0].attention
    return {
        name: 0.0 if module.weight.grad is None else float(module.weight.grad.abs().max())
        for name, module in (("sigma", attention.sigma), ("queries", attention.queries), ("keys", attention.keys))
    }


def test_each_phase_of_the_game_teaches_one_side_only():
    minimise, maximise, both = gradients("prior"), gradients("series"), gradients("both")
    assert minimise["sigma"] > 0
    assert minimise["queries"] == minimise["keys"] == 0.0
    assert maximise["sigma"] == 0.0
    assert min(maximise["queries"], maximise["keys"]) > 0
    assert min(both.values()) > 0


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.sin(np.arange(500)[:, None] / np.array([5.0, 9.0])) + 0.05 * rng.standard_normal((500, 2))


@pytest.fixture(scope="module")
def fitted(rows):
    return AnomalyTransformer(epochs=6, learning_rate=5e-3, **QUICK).fit(rows)


def test_the_reconstruction_improves_while_the_game_goes_on(fitted):
    first, last = fitted.history_[0], fitted.history_[-1]
    assert last["reconstruction"] < first["reconstruction"]
    assert last["loss"] < first["loss"]
    assert last["discrepancy"] > 0


def test_a_training_step_is_the_sum_of_both_phases(rows, fitted):
    batch = fitted._scaled(np.stack([rows[:12], rows[50:62]]))
    network = fitted._network(2)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
    fitted.gradient_clip, clip = 1e9, fitted.gradient_clip
    fitted._training_step(network, batch, {"all": optimizer}, torch.Generator())
    fitted.gradient_clip = clip
    stepped = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()
    for side, sign in (("prior", 1.0), ("series", -1.0)):
        associations, errors = fitted._reconstruction_error(network, batch)
        ((errors**2).mean() + sign * 3.0 * discrepancy(associations, of=side).mean()).backward()
    for found, parameter in zip(stepped, network.parameters(), strict=True):
        torch.testing.assert_close(found, parameter.grad, atol=1e-5, rtol=1e-4)


def test_the_score_is_the_last_row_of_the_published_one_and_does_not_read_the_future(rows, fitted):
    one = rows[100:112]
    published = fitted.published_scores(one)
    assert published.shape == (12,)
    assert fitted.decision_function(one)[-1] == pytest.approx(published[-1], rel=1e-4)
    later = rows[100:130].copy()
    before = fitted.published_scores(later)
    later[11] += 3.0
    assert not np.allclose(fitted.published_scores(later)[:11], before[:11])  # why it is not the score
    np.testing.assert_allclose(fitted.decision_function(later)[:11], fitted.decision_function(rows[100:130])[:11])


def test_published_scores_cover_every_row_of_a_long_enough_stretch(rows, fitted):
    broken = rows[:100].copy()
    broken[40:60] = np.nan
    scores = fitted.published_scores(broken)
    assert np.isfinite(scores[:40]).all()
    assert np.isfinite(scores[60:]).all()
    assert np.isnan(scores[50:60]).all()
    assert np.isnan(fitted.published_scores(rows[:11])).all()


def test_still_and_doubled_channels_leave_finite_scores(rows):
    awkward = np.column_stack([rows, rows[:, 0], np.full(len(rows), 3.0)])
    detector = AnomalyTransformer(epochs=2, **QUICK).fit(awkward)
    assert np.isfinite(detector.decision_function(awkward)[QUICK["window"] - 1 :]).all()
    assert float(detector.network_.scale[3]) == 1.0


def test_bad_parameters_are_refused(rows):
    with pytest.raises(
        ParameterError, match="'width' parameter of AnomalyTransformer must be a multiple of its 3 heads"
    ):
        AnomalyTransformer(width=8, n_heads=3).fit(rows)
