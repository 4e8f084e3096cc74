"""The one training loop: seeds, resuming, refusing, stopping, several optimisers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tisat import registry  # noqa: E402
from tisat.detectors import adapt  # noqa: E402
from tisat.detectors._neural import NeuralDetector  # noqa: E402
from tisat.detectors._training import available_device  # noqa: E402
from tisat.detectors.loading import load  # noqa: E402
from tisat.errors import ArtefactError, ParameterError, SeriesError, TrainingError  # noqa: E402
from tisat.io.durations import spelt  # noqa: E402
from tisat.utils.parameters import integer  # noqa: E402


class Squeeze(torch.nn.Module):
    def __init__(self, n_values: int, hidden: int) -> None:
        super().__init__()
        self.down = torch.nn.Linear(n_values, hidden)
        self.drop = torch.nn.Dropout(0.2)
        self.norm = torch.nn.BatchNorm1d(hidden)  # a buffer without an axis: num_batches_tracked
        self.up = torch.nn.Linear(hidden, n_values)
        self.register_buffer("centre", torch.zeros(n_values))

    def forward(self, windows):
        flat = windows.flatten(1)
        return self.up(self.norm(self.drop(torch.tanh(self.down(flat))))).view_as(windows)


class ToyAutoencoder(NeuralDetector):
    hidden: int = integer(4, at_least=1, doc="Units of the hidden layer.")
    window: int = 8
    epochs: int = 3
    batch_size: int = 16
    learning_rate: float = 1e-2
    validation: float = 0.2

    def _network(self, n_channels):
        return Squeeze(self.window * n_channels, self.hidden)

    def _before_training(self, network, batches):
        network.centre.copy_(torch.cat([batch.flatten(1) for batch in batches()]).mean(dim=0))

    def _loss(self, network, batch, generator):
        return ((network(batch) - batch) ** 2).mean()

    def _window_points(self, network, batch, generator):
        return ((network(batch)[:, -1] - batch[:, -1]) ** 2).mean(dim=1, keepdim=True)


class ToyAdversary(ToyAutoencoder):
    """Two optimisers a step, two named losses."""

    def _optimizers(self, network):
        return {
            "down": torch.optim.Adam(network.down.parameters(), lr=1e-3),
            "up": torch.optim.SGD(network.up.parameters(), lr=1e-3, momentum=0.9),
        }

    def _training_step(self, network, batch, optimizers, generator):
        noise = torch.randn(batch.shape, generator=generator)
        up = ((network(batch + 0.1 * noise) - batch) ** 2).mean()
        self._descend(optimizers["up"], up)
        down = (network(batch) - batch).abs().mean()
        self._descend(optimizers["down"], down)
        return {"up": up, "down": down}


TOYS = [ToyAutoencoder, ToyAdversary]


@pytest.fixture(autouse=True, scope="module")
def _registered():
    """Only while this module runs: a name registered at import would reach the contract tests of modules collected later."""
    names = {"toy-autoencoder": ToyAutoencoder, "toy-adversary": ToyAdversary}
    for name, cls in names.items():
        registry.register(name, cls)
    yield
    for name in names:
        registry.DETECTORS.pop(name, None)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.sin(np.arange(300)[:, None] / np.array([5.0, 9.0])) + 0.1 * rng.standard_normal((300, 2))


def weights(detector):
    return {name: tensor.numpy().copy() for name, tensor in detector.network_.state_dict().items()}


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)


@pytest.mark.parametrize("cls", TOYS)
def test_same_seed_same_weights_and_the_global_generator_is_left_alone(cls, rows):
    torch.manual_seed(1)
    before = torch.random.get_rng_state().clone()
    first = cls(random_state=3).fit(rows)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(99)
    np.random.seed(7)  # noqa: NPY002 - the point is that it does not matter
    second = cls(random_state=3).fit(rows)
    assert_same(weights(first), weights(second))
    assert first.history_ == second.history_
    other = cls(random_state=4).fit(rows)
    assert not np.array_equal(weights(first)["up.weight"], weights(other)["up.weight"])


@pytest.mark.parametrize("cls", TOYS)
@pytest.mark.parametrize("killed_in_epoch", [1, 2, 3])
def test_resume_after_a_kill_gives_the_weights_of_an_uninterrupted_run(cls, rows, tmp_path, killed_in_epoch):
    whole = cls(epochs=4).fit(rows)

    class Killed(BaseException):
        pass

    interrupted = cls(epochs=4)
    steps = cls._training_step

    def step(network, batch, optimizers, generator):
        step.count += 1
        if step.count > killed_in_epoch * 10 + 5:  # in the middle of an epoch: 13 steps each
            raise Killed
        return steps(interrupted, network, batch, optimizers, generator)

    step.count = 0
    interrupted._training_step = step
    with pytest.raises(Killed):
        interrupted.fit(rows, checkpoint=tmp_path / "run.checkpoint")
    resumed = cls(epochs=4).fit(rows, checkpoint=tmp_path / "run.checkpoint", resume=True)
    assert_same(weights(whole), weights(resumed))
    assert whole.history_ == resumed.history_
    np.testing.assert_array_equal(whole.decision_function(rows), resumed.decision_function(rows))


def test_an_epoch_of_at_most_so_many_windows_draws_them_anew(rows, monkeypatch):
    epochs = []
    batches = ToyAutoencoder._batches

    def seen(self, values, starts):
        epochs.append(starts)
        return batches(self, values, starts)

    detector = ToyAutoencoder(epochs=2, validation=0.0, max_windows=40)
    monkeypatch.setattr(ToyAutoencoder, "_batches", seen)
    detector.fit(rows)
    drawn = [starts for starts in epochs if len(starts) == 40]
    assert len(drawn) == 2
    assert all(len(np.unique(starts)) == 40 for starts in drawn)
    assert len(np.intersect1d(*drawn)) < 40
    detector.max_windows = 0
    with pytest.raises(ParameterError, match="'max_windows' parameter"):
        detector.fit(rows)


def test_resume_without_a_file_starts_and_with_more_epochs_goes_on(rows, tmp_path):
    path = tmp_path / "run.checkpoint"
    ToyAutoencoder(epochs=2, patience=9).fit(rows, checkpoint=path, resume=True)
    longer = ToyAutoencoder(epochs=5, patience=9).fit(rows, checkpoint=path, resume=True)
    assert [row["epoch"] for row in longer.history_] == [1, 2, 3, 4, 5]
    assert_same(weights(ToyAutoencoder(epochs=5, patience=9).fit(rows)), weights(longer))


def test_a_checkpoint_of_another_run_is_refused(rows, tmp_path):
    path = tmp_path / "run.checkpoint"
    ToyAutoencoder().fit(rows, checkpoint=path)
    with pytest.raises(ArtefactError, match="same parameters and training rows"):
        ToyAutoencoder(learning_rate=1e-3).fit(rows, checkpoint=path, resume=True)
    with pytest.raises(ArtefactError, match="same parameters and training rows"):
        ToyAutoencoder().fit(rows + 1, checkpoint=path, resume=True)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ArtefactError, match=r"Not a tisat model|checksum"):
        ToyAutoencoder().fit(rows, checkpoint=path, resume=True)


def test_checkpoints_and_models_hold_no_pickle(rows, tmp_path):
    path = tmp_path / "run.checkpoint"
    ToyAutoencoder().fit(rows, checkpoint=path).save(tmp_path / "model.tisat")
    for file in (path, tmp_path / "model.tisat"):
        content = file.read_bytes()
        assert not content.startswith(b"\x80")
        assert b"PK\x03\x04" not in content[:4]
        assert content[8:9] == b"{"  # a safetensors header


@pytest.mark.parametrize("cls", TOYS)
def test_save_and_load_give_the_same_scores(cls, rows, tmp_path):
    detector = cls().fit(rows)
    detector.save(tmp_path / "model.tisat")
    again = load(tmp_path / "model.tisat")
    assert_same(weights(detector), weights(again))
    assert again.history_ == detector.history_
    np.testing.assert_array_equal(detector.decision_function(rows), again.decision_function(rows))


def test_a_file_whose_tensors_do_not_fit_is_refused(rows, tmp_path, monkeypatch):
    detector = ToyAutoencoder(hidden=4).fit(rows)
    detector.save(tmp_path / "model.tisat")
    monkeypatch.setattr(ToyAutoencoder, "_network", lambda self, c: Squeeze(self.window * c, 5))
    with pytest.raises(ArtefactError, match="shape"):
        load(tmp_path / "model.tisat")
    monkeypatch.setattr(ToyAutoencoder, "_network", lambda self, c: torch.nn.Linear(3, 3))
    with pytest.raises(ArtefactError, match="exactly the tensors"):
        load(tmp_path / "model.tisat")


def test_a_loss_that_is_not_finite_stops_with_a_sentence(rows):
    class Exploding(ToyAutoencoder):
        def _loss(self, network, batch, generator):
            return super()._loss(network, batch, generator) * float("inf")

    with pytest.raises(TrainingError, match=r"finite loss\. Got inf as loss in training 1/3, step 1.*learning_rate"):
        Exploding().fit(rows)


def test_early_stopping_keeps_the_best_epoch(rows):
    detector = ToyAutoencoder(epochs=200, patience=2, learning_rate=0.3).fit(rows)
    losses = [row["validation"] for row in detector.history_]
    assert len(losses) < 200
    assert int(np.argmin(losses)) == len(losses) - 1 - 2  # patience epochs without a better one
    values = detector._scaled(rows[: detector.trained_on_["rows_used"]])
    _, held = detector._split([len(values)])
    assert detector._validation_loss(values, held) == pytest.approx(min(losses), rel=1e-6)


def test_training_and_validation_windows_share_no_row():
    detector = ToyAutoencoder(window=8, stride=3, validation=0.2)
    train, held = detector._split([100, 12, 57])
    seen = {row for start in train for row in range(start, start + 8)}
    kept = {row for start in held for row in range(start, start + 8)}
    assert not seen & kept
    assert max(seen) < 169
    assert max(kept) < 169
    edges = [0, 100, 112, 169]
    for start in (*train, *held):  # no window reaches across two parts
        assert np.searchsorted(edges, start, side="right") == np.searchsorted(edges, start + 7, side="right")


def test_stride_thins_the_windows_and_a_last_batch_of_one_joins_its_neighbour(rows):
    detector = ToyAutoencoder(stride=5, validation=0.0).fit(rows, holdout=0.0)
    values = detector._scaled(rows)
    train, held = detector._split([300])
    assert len(train) == len(range(0, 293, 5))
    assert len(held) == 0
    sizes = [len(batch) for batch in detector._batches(values, train[:33])]
    assert sizes == [16, 17]


def test_scaling_is_by_training_rows_and_clipped_far_out(rows):
    detector = ToyAutoencoder(epochs=1).fit(rows, holdout=0.0)
    scaled = detector._scaled(np.array([rows.min(axis=0), rows.max(axis=0), rows.max(axis=0) + 1e9])).numpy()
    np.testing.assert_allclose(scaled, [[0, 0], [1, 1], [11, 11]], atol=1e-6)


def test_scores_do_not_depend_on_the_block_they_fall_in(rows):
    detector = ToyAutoencoder().fit(rows)
    whole = detector.decision_function(rows)
    detector.score_batch = 7
    np.testing.assert_allclose(detector.decision_function(rows), whole, rtol=1e-4, atol=1e-7)
    context = detector._context()
    windows = np.stack([rows[t - context : t + 1] for t in range(context, 40)])
    np.testing.assert_allclose(detector._points_of_windows(windows)[:, 0], whole[context:40], rtol=1e-4, atol=1e-7)


def test_bad_parameters_and_short_parts_are_refused_in_a_sentence(rows):
    with pytest.raises(ParameterError, match="'stride' parameter of ToyAutoencoder must be an integer >= 1"):
        ToyAutoencoder(stride=0).fit(rows)
    with pytest.raises(ParameterError, match="'device' parameter"):
        ToyAutoencoder(device="tpu").fit(rows)
    with pytest.raises(ParameterError, match="'resume' parameter"):
        ToyAutoencoder().fit(rows, resume="yes")
    broken = rows.copy()
    broken[::7] = np.nan
    broken = np.repeat(broken, 3, axis=0)
    broken[np.arange(0, len(broken), 21)[:, None] + np.arange(12)[None]] = np.nan
    with pytest.raises(SeriesError, match="unbroken rows"):
        ToyAutoencoder(window=60).fit(broken)


def test_a_model_of_a_device_this_machine_has_not_opens_here(rows, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("this machine has cuda")
    with pytest.raises(ParameterError, match="device of this machine"):
        ToyAutoencoder(device="cuda").fit(rows)
    detector = ToyAutoencoder().fit(rows)
    detector.device = "cuda"
    detector.save(tmp_path / "model.tisat")
    again = load(tmp_path / "model.tisat")
    assert again._device == available_device("auto")
    np.testing.assert_array_equal(detector.decision_function(rows), again.decision_function(rows))


def test_checkpoint_is_replaced_whole(rows, tmp_path):
    path = tmp_path / "run.checkpoint"
    ToyAutoencoder().fit(rows, checkpoint=path)
    assert [file.name for file in Path(tmp_path).iterdir()] == ["run.checkpoint"]


def test_steps_at_least_make_more_epochs_and_never_wake_an_untrained_network(rows):
    windows = len(ToyAutoencoder()._split([int(0.8 * len(rows))])[0])
    steps = -(-windows // 16)
    longer = ToyAutoencoder(epochs=1, min_steps=3 * steps, validation=0.0).fit(rows)
    assert len(longer.history_) == 3
    assert len(ToyAutoencoder(epochs=0, min_steps=100).fit(rows).history_) == 0


def test_an_anchored_window_has_no_level(rows):
    levels = {}
    for anchor in ("none", "mean"):
        detector = ToyAutoencoder(anchor=anchor, epochs=2).fit(rows)
        levels[anchor] = np.nanmedian(detector.decision_function(rows + 0.5) / detector.decision_function(rows))
    assert levels["mean"] == pytest.approx(1.0, abs=1e-3)
    assert levels["none"] > 1.5


def test_a_gradient_may_go_unclipped(rows):
    weights_of = [weights(ToyAutoencoder(gradient_clip=clip, epochs=1).fit(rows)) for clip in (None, 1e-4, 1e9)]
    assert_same(weights_of[0], weights_of[2])
    assert np.abs(weights_of[0]["up.weight"] - weights_of[1]["up.weight"]).max() > 1e-4


def test_the_learning_rate_decays_after_each_epoch(rows, monkeypatch):
    rates = []
    descend = ToyAutoencoder._descend

    def seen(self, optimizer, loss):
        rates.append(optimizer.param_groups[0]["lr"])
        descend(self, optimizer, loss)

    monkeypatch.setattr(ToyAutoencoder, "_descend", seen)
    ToyAutoencoder(epochs=3, decay=0.5, learning_rate=0.01, validation=0.0).fit(rows)
    assert sorted(set(rates), reverse=True) == pytest.approx([0.01, 0.005, 0.0025])


def test_one_network_for_several_entities_and_each_in_its_own_units(rows):
    """Entities that differ by unit and level alone get the same scores from one shared network."""
    other = 1000.0 * rows - 7.0
    shared = ToyAutoencoder(epochs=2).fit_together([rows, other])
    mine, theirs = adapt(shared, rows), adapt(shared, other)
    assert mine.network_ is theirs.network_
    np.testing.assert_allclose(mine.decision_function(rows), theirs.decision_function(other), rtol=1e-3)
    np.testing.assert_allclose(mine.normal_, theirs.normal_, rtol=1e-3)
    assert shared.steps_ == len(shared.history_) * -(-len(shared._split([300, 300])[0]) // shared.batch_size)


@pytest.mark.parametrize(("slow", "level"), [(1.0, "INFO"), (6.0, "WARNING")])
def test_a_long_training_says_how_long_and_does_not_count_the_first_step(slow, level, rows, monkeypatch, caplog):
    """Without handlers, logging prints warnings: a Python user sees it."""
    clock = SimpleNamespace(now=0.0, steps=0)

    class Slow(ToyAutoencoder):
        def _training_step(self, *args):
            clock.steps += 1
            clock.now += 1000.0 if clock.steps == 1 else slow
            return super()._training_step(*args)

    monkeypatch.setattr("tisat.detectors._training.time", SimpleNamespace(perf_counter=lambda: clock.now))
    with caplog.at_level("INFO", logger="tisat.training"):
        Slow(epochs=1, validation=0.0).fit(rows[:199], holdout=0.0)  # 12 whole batches
    said = [one for one in caplog.records if "steps an epoch" in one.getMessage()]
    steps = clock.steps
    assert [one.levelname for one in said] == [level]
    assert f"{steps} steps an epoch, about {spelt(steps * slow, digits=2)} each" in said[0].getMessage()
    (early,) = [one for one in caplog.records if "the first of" in one.getMessage()]
    bound = spelt(steps * 1000.0, digits=2)
    assert early.getMessage().endswith(
        f"the first of {steps} steps took {spelt(1000.0, digits=2)}; 1 epoch: {bound} at most"
    )
    assert caplog.records.index(early) < caplog.records.index(said[0])
