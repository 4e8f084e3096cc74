"""What makes BeatGAN itself: the two players, pairwise feature matching, and the collapse that is said."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tisat.detectors import BeatGAN, beatgan  # noqa: E402
from tisat.detectors.networks.beatgan import Game, feature_matching  # noqa: E402
from tisat.errors import ParameterError  # noqa: E402

QUICK = {
    "window": 16,
    "filters": (8, 12),
    "latent": 4,
    "epochs": 4,
    "stride": 2,
    "batch_size": 32,
    "learning_rate": 5e-3,
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.sin(np.arange(500)[:, None] / np.array([5.0, 9.0, 14.0])) + 0.05 * rng.standard_normal((500, 3))


@pytest.fixture(scope="module")
def detector(rows):
    return BeatGAN(**QUICK).fit(rows)


def test_feature_matching_by_hand():
    real, fake = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[1.0, 5.0], [2.0, 1.0]])
    assert float(feature_matching(real, fake)) == (0 + 9 + 4 + 1) / 4
    swapped = fake.flip(0)  # window by window: not the distance of the means
    assert float(feature_matching(real, swapped)) == (1 + 1 + 1 + 25) / 4


@pytest.mark.parametrize("window", [16, 17, 27, 31])
def test_the_generator_gives_back_windows_of_any_length(window):
    game = Game(3, window, (4, 6, 8), 5)
    assert game.generator(torch.rand(2, 3, window)).shape == (2, 3, window)
    logits, features = game.discriminator(torch.rand(2, 3, window))
    assert logits.shape == (2,)
    assert features.shape == (2, 8, window // 8)


@pytest.mark.parametrize("frozen", ["generator", "discriminator"])
def test_each_player_moves_only_itself(detector, rows, frozen):
    torch.manual_seed(0)
    game = Game(3, 16, (8, 12), 4).train()
    optimizers = detector._optimizers(game)
    optimizers[frozen].param_groups[0]["lr"] = 0.0
    before = {name: parameter.detach().clone() for name, parameter in game.named_parameters()}
    batch = detector._scaled(rows[:128]).reshape(8, 16, 3)
    detector._training_step(game, batch, optimizers, torch.Generator())
    for name, parameter in game.named_parameters():
        assert torch.equal(parameter, before[name]) == name.startswith(frozen), name


def test_the_losses_of_a_step_by_hand(detector, rows):
    torch.manual_seed(0)
    game = Game(3, 16, (8, 12), 4).train()
    optimizers = detector._optimizers(game)
    for optimizer in optimizers.values():
        optimizer.param_groups[0]["lr"] = 0.0
    batch = detector._scaled(rows[:128]).reshape(8, 16, 3)
    losses = detector._training_step(game, batch, optimizers, torch.Generator())
    real = 2 * batch.transpose(1, 2) - 1
    with torch.no_grad():
        fake = game.generator(real)
        judged, invented = torch.sigmoid(game.discriminator(real)[0]), torch.sigmoid(game.discriminator(fake)[0])
        told_apart = -(torch.log(judged).mean() + torch.log(1 - invented).mean())
        matching = ((game.discriminator(real)[1] - game.discriminator(fake)[1]) ** 2).mean()
    assert float(losses["discriminator"].detach()) == pytest.approx(float(told_apart), rel=1e-4)
    assert float(losses["reconstruction"].detach()) == pytest.approx(float(((real - fake) ** 2).mean()), rel=1e-4)
    assert float(losses["matching"].detach()) == pytest.approx(float(matching), rel=1e-4)
    total = losses["reconstruction"] + losses["matching"]
    assert float(losses["loss"].detach()) == pytest.approx(float(total.detach()), rel=1e-6)


def test_training_lowers_its_loss(detector):
    assert detector.history_[-1]["reconstruction"] < 0.7 * detector.history_[0]["reconstruction"]
    assert detector.history_[-1]["loss"] < detector.history_[0]["loss"]


@pytest.mark.parametrize("scored", [None, 1, 5])
def test_points_are_root_mean_squared_errors_of_the_last_rows(detector, rows, scored):
    detector.scored = scored
    points = detector.points(rows)
    scores = detector.decision_function(rows)
    detector.scored = None
    last = 16 if scored is None else scored
    for t in (15, 300):
        window = 2 * detector._scaled(rows[t - 15 : t + 1]).T[None] - 1
        with torch.no_grad():
            errors = ((window - detector.network_.generator(window)) ** 2)[0, :, 16 - last :].numpy()
        np.testing.assert_allclose(points[t], np.sqrt(errors.mean(axis=1)), rtol=1e-3)
        assert scores[t] == pytest.approx(errors.mean(), rel=1e-3)


def test_scaling_by_the_window_makes_levels_and_sizes_invisible(rows):
    detector = BeatGAN(**QUICK, scaling="window").fit(rows)
    moved = 0.5 * rows + 1.0
    np.testing.assert_allclose(detector.decision_function(moved)[15:], detector.decision_function(rows)[15:], rtol=1e-2)


def test_a_generator_that_always_says_the_same_is_said(rows, detector):
    assert detector.variety_ > 0.1
    fresh = BeatGAN(**QUICK).fit(rows)
    with torch.no_grad():
        fresh.network_.generator.decoder[-2].weight.zero_()
        with pytest.warns(UserWarning, match="generator of BeatGAN collapsed"):
            fresh._after_training(fresh.network_, lambda: iter([fresh._scaled(rows[:320]).reshape(20, 16, 3)]))
    assert fresh.variety_ < 0.01


def test_a_discriminator_that_wins_is_restarted_and_said(rows, monkeypatch):
    monkeypatch.setattr(beatgan, "DEFEATED", np.inf)
    with pytest.warns(UserWarning, match="discriminator of BeatGAN won and was started again"):
        detector = BeatGAN(**{**QUICK, "epochs": 1}).fit(rows)
    assert int(detector.network_.restarts) > 0


def test_constant_and_duplicated_channels(rows):
    odd = np.column_stack([rows, rows[:, 0], np.full(len(rows), 7.0), np.zeros(len(rows))])
    for scaling in ("train", "window"):
        detector = BeatGAN(**QUICK, scaling=scaling).fit(odd)
        assert np.isfinite(detector.decision_function(odd + np.array([0, 0, 0, 0, 0.5, 0.5]))[15:]).all()


@pytest.mark.parametrize(
    ("params", "name"),
    [({"scaling": "test"}, "scaling"), ({"filters": ()}, "filters"), ({"scored": 99}, "scored"), ({"window": 3}, "window"),
     ({"matching_weight": -1.0}, "matching_weight")],
)  # fmt: skip
def test_bad_parameters_are_refused_by_name(rows, params, name):
    with pytest.raises(ParameterError, match=f"'{name}' parameter of BeatGAN"):
        BeatGAN(**params).fit(rows)
