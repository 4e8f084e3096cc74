"""TiSAT: what the contract tests of every detector do not say. What it learns is in test_tisat_learns.py."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tisat.detectors import TiSAT  # noqa: E402
from tisat.detectors._forecast import residual_spread  # noqa: E402
from tisat.detectors.loading import load  # noqa: E402
from tisat.errors import ArtefactError, ParameterError, SeriesError  # noqa: E402
from tisat.persistence.model_file import read_artefact, write_artefact  # noqa: E402
from tisat.watch import Watch  # noqa: E402
from waves import waves  # noqa: E402

TINY = TiSAT._test_params()


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def rows():
    return waves()


@pytest.fixture(scope="module")
def detector(rows):
    return TiSAT(**TINY).fit(rows)


def slow_forecast(detector, part, start):
    """What is forecast for the rows from ``start`` on, from the window before it."""
    window = part[start - detector.window : start]
    base = {"mean": window.mean(axis=0), "last": window[-1], "none": detector.low_}[detector.anchor]
    scaled = np.clip((window - base) / detector.span_, -10, 10)
    with torch.no_grad():
        forecast = detector.network_(torch.tensor(scaled[None], dtype=torch.float32))[0].double().numpy()
    return base + detector.span_ * forecast


def slow_points(detector, part):
    """Points from the definition, one row at a time."""
    points = np.full(part.shape, np.nan)
    if detector.lookahead > 1:
        for t in range(detector.window + detector.lookahead - 1, len(part)):
            near = (part[t] - slow_forecast(detector, part, t)[0]) / detector.spread_[0]
            far = (part[t] - slow_forecast(detector, part, t - detector.lookahead + 1)[1]) / detector.spread_[1]
            points[t] = np.maximum(abs(near), abs(far))
        return points
    for t in range(detector.window, len(part)):
        points[t] = (part[t] - slow_forecast(detector, part, t)[0]) / detector.spread_[0]
    return points


ONE_STEP = {name: given for name, given in TINY.items() if name != "lookahead"}


@pytest.mark.parametrize("leads", [{"lookahead": 1}, {"lookahead": 5}], ids=str)
@pytest.mark.parametrize("anchor", ["mean", "last", "none"])
def test_points_are_the_definition(rows, leads, anchor):
    detector = TiSAT(**{**ONE_STEP, "epochs": 1, **leads}, anchor=anchor).fit(rows)
    test = waves(60, seed=1)
    np.testing.assert_allclose(detector.points(test), slow_points(detector, test), rtol=1e-3, atol=1e-4)


def test_the_spread_is_that_of_training_residuals_with_its_floor(rows):
    detector = TiSAT(**{**TINY, "stride": 1}).fit(rows, holdout=0.0)
    residuals = detector._window_residuals(rows, every=1)[: -TINY["lookahead"] + 1]  # those whose both rows are there
    for lead in (0, 1):
        np.testing.assert_allclose(detector.spread_[lead], residual_spread(residuals[:, lead], [rows]), rtol=1e-6)
    still = rows.copy()
    still[:, 1] = 7.0
    floored = TiSAT(**TINY).fit(still)
    assert floored.spread_[0, 1] == pytest.approx(0.01 * 7.0)


def test_the_score_is_the_mean_of_squares(detector, rows):
    points = detector.points(rows)
    np.testing.assert_allclose(detector.decision_function(rows), (points**2).mean(axis=1))


@pytest.mark.parametrize("anchor", ["mean", "last"])
def test_an_anchored_model_does_not_mind_another_level(rows, anchor):
    detector = TiSAT(**TINY, anchor=anchor).fit(rows)
    elsewhere = detector.decision_function(rows + np.array([100.0, -3.0, 1e4]))
    np.testing.assert_allclose(elsewhere, detector.decision_function(rows), rtol=1e-2, atol=1e-3)
    plain = TiSAT(**TINY, anchor="none").fit(rows)
    assert np.nanmedian(plain.decision_function(rows + 100.0)) > 100 * np.nanmedian(plain.decision_function(rows))


def test_memory_does_not_grow_with_the_windows(detector, monkeypatch):
    largest = []
    forward = detector.network_.forward
    monkeypatch.setattr(detector.network_, "forward", lambda x: (largest.append(len(x)), forward(x))[1])
    detector.decision_function(waves(3000, seed=4))
    assert max(largest) == detector.score_batch


def test_presets_and_any_size():
    paper = TiSAT(preset="paper")
    assert (paper.d_model, paper.n_heads, paper.d_ff, paper.factor, paper.dropout) == (512, 8, 2048, 5, 0.05)
    assert (paper.encoder_layers, paper.decoder_layers, paper.learning_rate, paper.epochs) == (3, 2, 1e-4, 4)
    assert (paper.attention, paper.linear_skip, paper.window, paper.batch_size, paper.token) == (
        "informer",
        False,
        100,
        64,
        50,
    )
    assert (paper.anchor, paper.units, paper.gradient_clip, paper.max_windows, paper.lookahead) == (
        "none",
        "range",
        None,
        None,
        1,
    )
    assert TiSAT(max_windows=None).max_windows is None  # all of them, not the preset's
    mine = TiSAT(preset="paper", d_model=48, n_heads=6)
    assert (mine.d_model, mine.n_heads, mine.d_ff) == (48, 6, 2048)
    assert repr(mine) == "TiSAT(d_model=48, n_heads=6, preset='paper')"


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"d_model": 9, "n_heads": 2}, "'d_model' parameter of TiSAT must be a multiple of n_heads"),
        ({"anchor": "median"}, "'anchor' parameter of TiSAT must be one of"),
        ({"attention": "full"}, "'attention' parameter of TiSAT must be one of"),
        ({"preset": "huge"}, "'preset' parameter of TiSAT must be one of 'compact', 'paper', 'released'"),
        ({"dropout": 1.0}, "'dropout' parameter of TiSAT must be a number >= 0 and < 1"),
        ({"linear_skip": "yes"}, "'linear_skip' parameter of TiSAT must be True or False"),
    ],
)
def test_bad_parameters_are_refused(rows, params, sentence):
    with pytest.raises(ParameterError, match=sentence):
        TiSAT(**{**TINY, **params}).fit(rows)


def test_leads_follow_from_the_lookahead():
    assert TiSAT()._leads() == (1, TiSAT().lookahead)
    assert TiSAT(preset="paper")._leads() == (1,)


def test_a_change_that_stays_is_seen_for_longer_with_a_lookahead():
    quiet = 0.01 * np.random.default_rng(0).standard_normal((3000, 1))
    stepped = 0.01 * np.random.default_rng(1).standard_normal((400, 1))
    stepped[200:] += 1.0
    seen = {}
    for lookahead in (1, 8):
        detector = TiSAT(window=32, token=16, d_model=8, d_ff=8, epochs=0, lookahead=lookahead).fit(quiet)
        scores = detector.decision_function(stepped)[200:]
        seen[lookahead] = (scores > 10 * np.nanmax(detector.aggregate(detector.normal_))).sum()
    assert seen[8] >= seen[1] + 6


@pytest.mark.parametrize("leads", [{"lookahead": 1}, {"lookahead": 5}], ids=str)
@pytest.mark.filterwarnings("ignore::tisat.alarms.calibration.CalibrationWarning")
def test_a_fleet_says_what_single_monitors_say(rows, leads):
    detector = TiSAT(**{**ONE_STEP, "epochs": 1, **leads}).fit(rows)
    series = {name: waves(60, seed=seed) for seed, name in enumerate(("one", "two"), start=5)}
    fleet = Watch(detector, budget="1/50 rows").fleet(list(series))
    single = {name: detector.monitor(false_alarms="1/50 rows") for name in series}
    for t in range(60):
        together = fleet.update({name: values[t] for name, values in series.items() if t % 7 or name == "one"})
        for name, verdict in together.items():
            assert verdict.score == pytest.approx(single[name].update(series[name][t]).score, rel=1e-3, nan_ok=True)
    assert np.isfinite(verdict.score)


def test_too_short_to_train_is_refused():
    with pytest.raises(SeriesError, match="at least 43 usable rows, 50% of them held out"):
        TiSAT(**TINY).fit(waves(20), holdout=0.5)


def test_missing_values_are_carried_or_cut_never_zero(detector):
    test = waves(120, seed=5)
    holes = test.copy()
    holes[50, 1] = np.nan
    carried = test.copy()
    carried[50, 1] = carried[49, 1]
    np.testing.assert_allclose(detector.decision_function(holes), detector.decision_function(carried))
    holes[60:75, 0] = np.nan  # longer than can be carried: the part ends, and the window fills again
    scores = detector.decision_function(holes)
    warm = 16 + TINY["lookahead"] - 1
    assert np.isnan(scores[70 : 75 + warm]).all()
    assert np.isfinite(scores[75 + warm :]).all()


def test_files_that_do_not_fit_are_refused(detector, tmp_path):
    path = tmp_path / "model.tisat"
    detector.save(path)
    document, tensors = read_artefact(path)
    for change, sentence in (
        ({"params": {**document["params"], "d_model": 16}}, "shape"),
        ({"params": {**document["params"], "encoder_layers": 4}}, "exactly the tensors"),
        ({"params": {**document["params"], "anchor": "median"}}, "'anchor'"),
        ({"detector": "no-such-detector"}, "registered detector"),
    ):
        write_artefact(tmp_path / "wrong.tisat", {**document, **change}, tensors)
        with pytest.raises(ArtefactError, match=sentence):
            load(tmp_path / "wrong.tisat")
    fewer = {name: array for name, array in tensors.items() if name != "network.projection.bias"}
    write_artefact(tmp_path / "wrong.tisat", document, fewer)
    with pytest.raises(ArtefactError, match=r"lacks tensor 'projection\.bias'"):
        load(tmp_path / "wrong.tisat")


def test_a_monitoring_process_may_copy_the_detector(detector):
    stream = detector._stream()  # with its session, where there is one
    again = pickle.loads(pickle.dumps(detector))
    test = waves(40, seed=6)
    np.testing.assert_array_equal(again.points(test), detector.points(test))
    assert np.isnan(stream.step(test[0])).all()


def test_a_row_at_a_time_without_the_fast_extra_is_torch(rows, monkeypatch):
    monkeypatch.setattr("tisat.detectors.networks.onnx_session.session_available", lambda: False)
    detector = TiSAT(**{**TINY, "epochs": 1}).fit(rows)
    stream = detector._stream()
    assert detector._session is None
    test = waves(30, seed=7)
    np.testing.assert_allclose(
        np.stack([stream.step(row) for row in test]), detector.points(test), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("preset", ["paper", "released"])
def test_the_presets_of_others_are_fitted_and_are_what_their_papers_print(rows, preset):
    """Small, but the recipe to the letter: no anchor, plain squared error in the scaled unit, no line, no clipping."""
    detector = TiSAT(preset=preset, window=16, token=8, d_model=8, n_heads=2, d_ff=8, epochs=1).fit(rows)
    assert detector.network_.linear_skip is None
    assert (detector.network_.encoder.shallow is None) == (preset == "released")
    part = rows[:60]
    points = detector.points(part)
    unit = rows[: detector.trained_on_["rows_used"]]
    low, span = (
        (unit.mean(axis=0), unit.std(axis=0)) if preset == "released" else (unit.min(axis=0), np.ptp(unit, axis=0))
    )
    for t in (16, 40):
        window = torch.from_numpy(((part[t - 16 : t] - low) / span).astype(np.float32))[None]
        with torch.no_grad():
            forecast = detector.network_(window)[0, 0].numpy()
        np.testing.assert_allclose(points[t], (part[t] - low) / span - forecast, atol=1e-5)
    np.testing.assert_allclose(detector.decision_function(part), (points**2).mean(axis=1), rtol=1e-9)
    batch = detector._scaled(np.stack([part[0:17], part[5:22]]))
    loss = detector._loss(detector.network_, batch, torch.Generator())
    with torch.no_grad():
        expected = ((detector.network_(batch[:, :16]) - batch[:, 16:]) ** 2).mean()
    assert float(loss.detach()) == pytest.approx(float(expected), rel=1e-5)


def test_files_with_parameters_that_are_gone_are_read_at_their_defaults_alone(detector, rows, tmp_path):
    detector.save(tmp_path / "model.tisat")
    document, tensors = read_artefact(tmp_path / "model.tisat")
    document["params"] |= {"horizon": 1, "aggregation": "mean"}
    write_artefact(tmp_path / "old.tisat", document, tensors)
    np.testing.assert_array_equal(
        load(tmp_path / "old.tisat").decision_function(rows), detector.decision_function(rows)
    )
    document["params"]["horizon"] = 3
    write_artefact(tmp_path / "blocks.tisat", document, tensors)
    with pytest.raises(ArtefactError, match="must be given parameters it has"):
        load(tmp_path / "blocks.tisat")
