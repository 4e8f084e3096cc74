"""What makes Deep-SVDD itself: no bias, a fixed centre away from 0, both objectives, the radius that solves eq. (3)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from tisat.detectors import DeepSVDD  # noqa: E402
from tisat.detectors.networks.deep_svdd import Decoder, Encoder, away_from_zero, best_radius_squared, soft_boundary  # noqa: E402
from tisat.errors import ParameterError  # noqa: E402

QUICK = {"window": 16, "filters": (8, 8), "representation": 6, "epochs": 4, "pretrain_epochs": 1, "batch_size": 32}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.sin(np.arange(500)[:, None] / np.array([5.0, 9.0, 14.0])) + 0.05 * rng.standard_normal((500, 3))


def training_windows(detector, rows):
    values = detector._scaled(rows[: detector.trained_on_["rows_used"]])
    train, _ = detector._split([len(values)])
    return torch.stack([values[start : start + detector.window] for start in train])


@pytest.mark.parametrize("preset", ["compact", "paper"])
def test_no_bias_and_no_bounded_activation_anywhere(preset):
    network = DeepSVDD(preset=preset)._network(5)
    assert all(name.endswith("weight") for name, _ in network.named_parameters())
    assert all(part.bias is None for part in network.modules() if hasattr(part, "bias"))
    bounded = (torch.nn.Sigmoid, torch.nn.Tanh, torch.nn.Softmax, torch.nn.Hardtanh)
    assert not any(isinstance(part, bounded) for part in network.modules())
    network.eval()
    windows = torch.rand(4, network.lengths[0], 5)
    small, large = network(windows).detach(), network(1e4 * windows).detach()
    assert float((large / small).abs().median()) > 1e3  # grows without bound


def test_zero_weights_do_not_reach_the_centre(rows):
    detector = DeepSVDD(**QUICK).fit(rows)
    network = detector.network_
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        assert float(network.distances(torch.rand(3, 16, 3)).min()) >= 0.1**2 * 6 - 1e-9


def test_the_centre_is_the_mean_of_the_initial_pass_and_training_does_not_move_it(rows):
    untrained = DeepSVDD(**{**QUICK, "epochs": 0, "pretrain_epochs": 0}).fit(rows)
    with torch.no_grad():
        represented = untrained.network_(training_windows(untrained, rows))
    expected = [
        value if abs(value) >= 0.1 else (0.1 if value >= 0 else -0.1) for value in represented.mean(dim=0).tolist()
    ]
    np.testing.assert_allclose(untrained.network_.centre.numpy(), expected, rtol=1e-4)
    trained = DeepSVDD(**{**QUICK, "pretrain_epochs": 0}).fit(rows)
    np.testing.assert_array_equal(trained.network_.centre.numpy(), untrained.network_.centre.numpy())


@given(st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=8))
def test_away_from_zero_moves_only_what_is_near_and_keeps_signs(values):
    moved = away_from_zero(torch.tensor(values), 0.1).tolist()
    for before, after in zip(torch.tensor(values).tolist(), moved, strict=True):
        assert abs(after) >= 0.1 - 1e-7
        assert after == before or (abs(before) < 0.1 and abs(after) == pytest.approx(0.1))
        assert before == 0 or np.sign(after) == np.sign(before)


def eq3(distances, radius_squared, nu):
    """Eq. (3) without weight decay, from the definition."""
    return radius_squared + sum(max(0.0, d - radius_squared) for d in distances) / (nu * len(distances))


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=30),
    st.floats(0.02, 1.0),
    st.floats(0, 10),
)
def test_soft_boundary_is_eq_3_and_no_radius_beats_the_one_solved_for(distances, nu, other):
    tensor = torch.tensor(distances, dtype=torch.float64)
    radius = best_radius_squared(tensor, nu)
    found = float(soft_boundary(tensor, radius, nu))
    assert found == pytest.approx(eq3(distances, float(radius), nu), rel=1e-9, abs=1e-9)
    assert found <= eq3(distances, other, nu) + 1e-9
    assert found <= eq3(distances, 0.0, nu) + 1e-9


def test_soft_boundary_leaves_at_most_nu_outside(rows):
    detector = DeepSVDD(**QUICK, objective="soft-boundary", nu=0.2, radius_every=1, validation=0.0).fit(rows)
    with torch.no_grad():
        points = detector._window_points(detector.network_, training_windows(detector, rows), None)
    outside = float((points > 1e-6).double().mean())
    assert 0.1 < outside <= 0.2  # the nu-property, an upper bound that is nearly met


@pytest.mark.parametrize("objective", ["one-class", "soft-boundary"])
def test_training_lowers_its_loss(rows, objective):
    history = DeepSVDD(**{**QUICK, "epochs": 8}, objective=objective, validation=0.0).fit(rows).history_
    assert history[-1]["loss"] < 0.5 * history[0]["loss"]


def test_scores_are_eq_5_from_the_window_that_ends_there(rows):
    detector = DeepSVDD(**QUICK).fit(rows)
    scores = detector.decision_function(rows)
    for t in (15, 200, 499):
        window = detector._scaled(rows[t - 15 : t + 1])[None]
        with torch.no_grad():
            representation = detector.network_(window)[0]
        expected = sum(
            (float(a) - float(b)) ** 2 for a, b in zip(representation, detector.network_.centre, strict=True)
        )
        assert scores[t] == pytest.approx(expected, rel=1e-3)


def test_the_decoder_mirrors_the_encoder_at_odd_lengths():
    encoder = Encoder(3, 27, (4, 5), 6)
    assert Decoder(encoder)(encoder(torch.rand(7, 27, 3))).shape == (7, 27, 3)


def test_pretraining_teaches_the_autoencoder(rows, monkeypatch):
    losses = []
    original = DeepSVDD._finite

    def finite(self, value, where):
        if "pre-training" in where:
            losses.append(value)
        return original(self, value, where)

    monkeypatch.setattr(DeepSVDD, "_finite", finite)
    DeepSVDD(**{**QUICK, "epochs": 0, "pretrain_epochs": 6}, learning_rate=3e-3, stride=1).fit(rows)
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:5])


def test_a_run_that_goes_on_skips_pretraining_and_ends_with_the_same_weights(rows, tmp_path):
    params = {**QUICK, "fine_tune": 0, "patience": 20}
    path = tmp_path / "run.checkpoint"
    DeepSVDD(**{**params, "epochs": 2}).fit(rows, checkpoint=path)
    resumed = DeepSVDD(**{**params, "epochs": 4}).fit(rows, checkpoint=path, resume=True)
    whole = DeepSVDD(**{**params, "epochs": 4}).fit(rows)
    np.testing.assert_array_equal(resumed.decision_function(rows), whole.decision_function(rows))


def test_the_last_epochs_run_at_a_tenth_of_the_learning_rate(rows, monkeypatch):
    rates = []
    original = DeepSVDD._descend

    def descend(self, optimizer, loss):
        rates.append(optimizer.param_groups[0]["lr"])
        original(self, optimizer, loss)

    monkeypatch.setattr(DeepSVDD, "_descend", descend)
    DeepSVDD(**{**QUICK, "pretrain_epochs": 0}, fine_tune=1, learning_rate=1e-3, validation=0.0).fit(rows)
    each = len(rates) // 4
    assert set(rates[: 3 * each]) == {1e-3}
    assert np.allclose(rates[3 * each :], 1e-4)


def test_a_constant_map_is_said(rows):
    detector = DeepSVDD(**QUICK).fit(rows)
    with torch.no_grad():
        detector.network_.dense.weight.zero_()
        with pytest.warns(UserWarning, match="DeepSVDD collapsed"):
            detector._after_training(detector.network_, lambda: iter(()))


def test_constant_and_duplicated_channels(rows):
    odd = np.column_stack([rows, rows[:, 0], np.full(len(rows), 7.0), np.zeros(len(rows))])
    scores = DeepSVDD(**QUICK).fit(odd).decision_function(odd + np.array([0, 0, 0, 0, 0.5, 0.5]))
    assert np.isfinite(scores[15:]).all()


@pytest.mark.parametrize(
    ("params", "name"),
    [({"objective": "hard"}, "objective"), ({"nu": 0.0}, "nu"), ({"filters": ()}, "filters"), ({"preset": "tiny"}, "preset"),
     ({"window": 3}, "window"), ({"radius_every": 0}, "radius_every"), ({"pretrain_epochs": -1}, "pretrain_epochs")],
)  # fmt: skip
def test_bad_parameters_are_refused_by_name(rows, params, name):
    with pytest.raises(ParameterError, match=f"'{name}' parameter of DeepSVDD"):
        DeepSVDD(**params).fit(rows)


def test_a_run_killed_in_pre_training_goes_on_to_the_same_weights(rows, tmp_path, monkeypatch):
    """Stages are one loop: the decoder that is thrown away later is in the checkpoint while it is needed."""
    params = {**QUICK, "pretrain_epochs": 3, "epochs": 2}
    whole = DeepSVDD(**params).fit(rows)
    descend, count = DeepSVDD._descend, []

    def dying(self, optimizer, loss):
        count.append(1)
        if len(count) > 2 * (len(whole.pretraining_) and steps) + 1:
            raise KeyboardInterrupt
        descend(self, optimizer, loss)

    steps = -(-len(whole._split([whole.trained_on_["rows_used"]])[0]) // whole.batch_size)
    monkeypatch.setattr(DeepSVDD, "_descend", dying)
    with pytest.raises(KeyboardInterrupt):
        DeepSVDD(**params).fit(rows, checkpoint=tmp_path / "run")
    monkeypatch.setattr(DeepSVDD, "_descend", descend)
    resumed = DeepSVDD(**params).fit(rows, checkpoint=tmp_path / "run", resume=True)
    assert [row["reconstruction"] for row in resumed.pretraining_] == [
        row["reconstruction"] for row in whole.pretraining_
    ]
    np.testing.assert_array_equal(resumed.decision_function(rows), whole.decision_function(rows))


def test_the_last_epochs_of_pre_training_run_at_a_tenth_of_the_learning_rate(rows, monkeypatch):
    rates = []
    descend = DeepSVDD._descend

    def seen(self, optimizer, loss):
        rates.append(optimizer.param_groups[0]["lr"])
        descend(self, optimizer, loss)

    monkeypatch.setattr(DeepSVDD, "_descend", seen)
    DeepSVDD(**{**QUICK, "pretrain_epochs": 3, "epochs": 0}, pretrain_fine_tune=1, learning_rate=1e-3).fit(rows)
    third = len(rates) // 3
    assert rates == pytest.approx([1e-3] * (2 * third) + [1e-4] * third)
