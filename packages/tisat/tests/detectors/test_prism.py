"""Prism and its views: each kind of fault in the view made for it, reference implementations of the kernels, reasons in units."""

import numpy as np
import pytest

from tisat.datasets.synthetic import make_plant, make_pump
from tisat.detectors import LinearLast, Prism, load, make
from tisat.detectors.prism import VIEWS, Scene, fusion, rhythm
from tisat.detectors.prism.blame import blamed, fault_patterns
from tisat.detectors.prism.line import fit_line, forecasts
from tisat.detectors.prism.relations import FILTERS, PAST, SMOOTH, Relations, relations_at_once
from tisat.detectors.prism.rhythm import LAGS, LARGEST, LEAST_ENERGY, ROWS, Rhythm
from tisat.errors import ArtefactError, ParameterError
from tisat.gap_filling import HUGE
from tisat.persistence.model_file import read_artefact, write_artefact

NAMES = list(VIEWS)


@pytest.fixture(scope="module")
def pump():
    return make_pump(n_train=5000, n_test=2000, faults=(), random_state=2)


@pytest.fixture(scope="module")
def detector(pump):
    return Prism().fit(pump.train, holdout=0.2)


def scene_of(rows, at):
    return Scene(rows, at, rows[at] - rows[at - 1])


def test_the_line_is_that_of_linear_last():
    rng = np.random.default_rng(0)
    rows = np.cumsum(rng.standard_normal((600, 2)), axis=0)
    twin = LinearLast(window=12, ridge=0.5)
    twin._fit_forecaster([rows[:300], rows[300:]])
    weights, intercepts, _ = fit_line([rows[:300], rows[300:]], lags=12, ridge=0.5)
    at = np.arange(12, 600)
    # The penalty of LinearLast also counts the input that is always 0; ours does not have it.
    line = fit_line([rows[:300], rows[300:]], lags=12, ridge=0.5 * 11 / 12)
    inside = np.setdiff1d(at, np.arange(300, 312))  # no window was seen across the two parts
    np.testing.assert_allclose(forecasts(rows, inside, *line), twin._forecast(rows)[inside], atol=1e-6)
    apart = [
        abs(rows[t - k] - rows[t]) for start in (0, 300) for t in range(start + 11, start + 300) for k in range(12)
    ]
    np.testing.assert_allclose(line[2], np.max(apart, axis=0))
    assert weights.shape == (11, 2)
    assert intercepts.shape == (2,)


def test_a_gross_fault_weighs_no_more_in_later_forecasts_than_the_largest_difference_of_training():
    rng = np.random.default_rng(3)
    rows = rng.random((300, 2))
    weights, intercepts, farthest = fit_line([rows], lags=20, ridge=0.5)
    assert ((farthest > 0.9) & (farthest < 1)).all()
    found = []
    for size in (2.0, 5.0):
        faulty = rows.copy()
        faulty[100:103] = size  # at least a training range above every other row
        found.append(forecasts(faulty, np.arange(104, 130), weights, intercepts, farthest))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
    at, last = 120, rows[119]
    naive = (
        last + intercepts + sum(weights[j] * np.clip(rows[at - 20 + j] - last, -farthest, farthest) for j in range(19))
    )
    np.testing.assert_allclose(forecasts(rows, np.array([at]), weights, intercepts, farthest)[0], naive, rtol=1e-12)


def test_the_rhythm_is_made_of_autocorrelations():
    rng = np.random.default_rng(1)
    rows = rng.random((200, 3))
    view, at = Rhythm(), np.arange(ROWS + LAGS, 200)
    view.fit([scene_of(rows, at)])
    found = view._autocorrelations(scene_of(rows, at[:3]))
    for i, t in enumerate(at[:3]):
        for c in range(3):
            steps = np.clip(np.diff(rows[: t + 1, c]), -LARGEST * view.step[c], LARGEST * view.step[c])
            recent = steps[-ROWS:]
            energy = recent @ recent + ROWS * LEAST_ENERGY * view.step[c] ** 2
            for lag in range(1, LAGS + 1):
                echo = recent @ steps[-ROWS - lag : -lag] / energy
                assert found[i, lag - 1, c] == pytest.approx(echo, abs=1e-12)


def test_relations_are_regressions_on_means_of_the_others():
    rng = np.random.default_rng(2)
    rows = rng.random((150, 3))
    view, at = Relations(), np.arange(Relations.context, 150)
    inputs = view._inputs(scene_of(rows, at))
    t = at[5]
    for k, span in enumerate(PAST):
        means = [rows[s - span + 1 : s + 1].mean(axis=0) for s in range(t - SMOOTH + 1, t + 1)]
        np.testing.assert_allclose(inputs[5, 3 * k : 3 * k + 3], np.mean(means, axis=0), atol=1e-12)
    assert FILTERS.sum(axis=1) == pytest.approx(1.0)
    view.fit([scene_of(rows, at)])
    for c in range(3):
        assert not view.weights[c::3, c].any(), "a channel looks at itself"


def test_contributions_of_joint_and_neighbour_add_up_to_their_distances(detector, pump):
    rows = np.ascontiguousarray(detector._scaled(pump.test.values))
    scene = detector._scene(rows, np.arange(300, 330))
    joint = detector._views["joint"]
    centred = scene.errors - joint.mean
    np.testing.assert_allclose(
        joint.contributions(scene).sum(axis=1), np.einsum("ni,ij,nj->n", centred, joint.precision, centred), rtol=1e-9
    )
    near = detector._views["neighbour"]
    codes = near._codes(rows, scene.at)
    nearest = ((codes[:, None] - near.stored[None]) ** 2).sum(axis=2).min(axis=1)
    np.testing.assert_allclose(near.contributions(scene).sum(axis=1), nearest, rtol=1e-6)


def faulty(pump, kind):
    values = np.array(pump.test.values)
    rows, t = slice(1000, 1200), np.arange(200)
    if kind == "spike":
        values[1000:1002, 0] += 15.0
    elif kind == "stuck":
        values[rows, 3] = values[1000, 3]
    elif kind == "unusually noisy":
        values[rows, 3] += np.random.default_rng(0).normal(0, 0.5, 200)
    elif kind == "rhythm":
        values[rows, 3] += 0.25 * np.sin(t / 1.3)
    else:  # relations
        values[rows, 2] += 4.0 * t / 200
    return values


@pytest.mark.parametrize(
    ("kind", "view", "channel", "when"),
    [
        ("spike", "error", 0, 1000),
        ("stuck", "activity", 3, 1060),
        ("unusually noisy", "activity", 3, 1040),
        ("rhythm", "rhythm", 3, 1080),
        ("broken correlation", "relations", 2, 1190),
    ],
)
def test_each_kind_of_fault_is_seen_by_its_view_and_named(detector, pump, kind, view, channel, when):
    values = faulty(pump, kind)
    points = detector.points(values)
    column = NAMES.index(view)
    assert points[when, column] > np.nanmax(points[:1000, column])
    assert points[when, column] > 0.5
    why = detector.explain(values[when], points[when])
    assert why.ranking()[0] == channel
    if view != "error":  # the first rows of anything sudden belong to the error views
        loudest = np.argmax(points[when, : len(NAMES)])
        assert NAMES[loudest] != "error"
    if kind in ("stuck", "broken correlation"):
        assert why.kind == kind
    name = detector.channels_[channel]
    assert why.sentences(detector.channels_)[0].startswith(name)


def test_reasons_are_in_the_units_of_the_user(detector, pump):
    values = faulty(pump, "spike")
    why = detector.explain(values[1000], detector.points(values)[1000])
    assert why.seen[0] == values[1000, 0]
    assert abs(why.expected[0] - pump.test.values[1000, 0]) < 5 * why.spread[0]
    assert 0.3 < why.spread[0] < 2.0  # the noise of the flow is 0.6


def test_a_missing_channel_is_left_out_and_the_rest_goes_on(detector, pump):
    values = faulty(pump, "stuck")
    whole = detector.decision_function(values)
    values[800:, 1] = np.nan
    scores = detector.decision_function(values)
    assert np.isfinite(scores[100:]).all()
    assert scores[1060:1150].min() > np.nanquantile(scores[:1000], 0.99)
    np.testing.assert_array_equal(scores[:800], whole[:800])
    points = detector.points(values)
    why = detector.explain(values[1060], points[1060])
    assert why.channels[1] == 0.0
    assert "missing" not in why.sentences(detector.channels_)[0]


def test_normal_rows_are_near_the_level_of_the_rows_it_was_fitted_on(detector, pump):
    views = detector.score_points(detector.points(pump.test)).views[200:]
    assert ((views > 0).mean(axis=0) < 0.05).all()
    assert (np.median(views, axis=0) < -0.5).all()


def test_huge_values_leave_finite_scores(detector, pump):
    values = np.array(pump.test.values[:300])
    values[200:] = 1.7e308
    values[250:, 1] = -1.7e308
    assert np.isfinite(detector.decision_function(values)[101:]).all()
    wild = np.array(pump.train.values[:400])
    wild[200] = HUGE  # fit refuses what is beyond it
    wild[300] = -HUGE
    assert np.isfinite(Prism(lags=20).fit(wild, holdout=0.0).decision_function(values)[101:]).all()


def test_a_file_whose_parts_do_not_fit_is_refused(detector, tmp_path):
    file = tmp_path / "prism.tisat"
    detector.save(file)
    document, tensors = read_artefact(file)
    for name, array in {
        "activity.usual": np.zeros(3),
        "rhythm.whitening": np.full((8, 8, 5), np.nan),
        "levels_": np.zeros((2, 2)),
        "neighbour.stored": np.zeros((4, 7)),
    }.items():
        write_artefact(file, document, {**tensors, name: array})
        with pytest.raises(ArtefactError):
            load(file)


@pytest.mark.slow
def test_a_plant_with_seven_kinds_of_fault_is_understood():
    from tisat import Watch

    found = []
    for seed in (70, 71, 72):
        plant = make_plant(random_state=seed)
        alarms = Watch("prism", budget="1/day").fit(plant.train).alarms(plant.test)
        found += [bool(alarms.active[fault.start : fault.stop + 20].any()) for fault in plant.faults]
    assert sum(found) >= 17, f"{sum(found)} of {len(found)}"


def test_a_slow_view_that_is_restless_on_unseen_rows_must_shout():
    rng = np.random.default_rng(0)
    quiet, restless = -np.abs(rng.normal(size=(2, 4000)))
    restless[::50] = 5.0  # above its level in one row of 50
    normal = np.stack([restless] * 4 + [quiet, restless], axis=1)
    kept = fusion.exponents(normal)
    assert [VIEWS[name].slow for name in VIEWS] == [False] * 4 + [True] * 2
    assert (kept[:5] == 1.0).all()
    assert 0.1 < kept[5] < 0.3
    scores = np.array([-0.5, 0.0, 0.001, 5.0, 1e6])[:, None] * np.ones(6)
    heard = fusion.compressed(scores, kept)
    assert np.array_equal(heard[:, :5], scores[:, :5])
    assert np.array_equal(heard[:2, 5], scores[:2, 5])  # the level is where it was
    assert (np.diff(heard[:, 5]) > 0).all()  # and the order too
    assert np.isclose(np.log1p(heard[3, 5] / fusion.SMALLEST), 1.0)  # what it says on unseen rows is a whisper


def test_echoes_are_autocorrelations_however_many_are_asked_for():
    rng = np.random.default_rng(1)
    rows = np.cumsum(rng.normal(size=(700, 3)), axis=0)
    largest, least = np.full(3, 2.0), np.full(3, 0.1)
    for at in (np.arange(80, 700), np.arange(80, 700, 3), np.array([90, 91, 650]), np.array([699])):
        out = rhythm.echoes(rows, at, largest, least)
        steps = np.clip(np.diff(rows, axis=0, prepend=rows[:1]), -2.0, 2.0)
        for i, t in enumerate(at):
            last = steps[t - rhythm.ROWS + 1 : t + 1]
            energy = (last**2).sum(axis=0) + rhythm.ROWS * least
            for lag in range(1, rhythm.LAGS + 1):
                earlier = steps[t - rhythm.ROWS + 1 - lag : t + 1 - lag]
                assert np.allclose(out[i, lag - 1], (last * earlier).sum(axis=0) / energy, atol=1e-12)
            alone = rhythm.echoes(rows, at[i : i + 1], largest, least)
            assert np.array_equal(alone[0], out[i])


@pytest.mark.parametrize("name", ["last-value", "linear-last", "vector-autoregression"])
def test_another_forecaster_takes_the_place_of_the_line(name, tmp_path):
    plant = make_plant(n_train=1500, n_test=400, n_channels=3, n_faults=0, random_state=0)
    detector = make("prism", forecaster=name).fit(plant.train)
    points = detector.points(plant.test)
    line = make("prism").fit(plant.train).points(plant.test)
    assert not np.allclose(points[200:, :2], line[200:, :2])  # the error views are others
    stream = detector._stream()
    one_by_one = np.array([stream.step(row) for row in plant.test.values])
    assert np.allclose(one_by_one, points, equal_nan=True)
    detector.save(tmp_path / "model.tisat")
    again = load(tmp_path / "model.tisat")
    assert np.array_equal(again.points(plant.test), points, equal_nan=True)
    row = np.array(plant.test.values[300])
    assert np.isfinite(detector.explain(row, points[300]).expected).all()


@pytest.mark.parametrize("name", ["ewma", "pca", 3])
def test_what_is_no_forecaster_of_the_next_row_is_refused(name):
    with pytest.raises(ParameterError, match="forecaster"):
        make("prism", forecaster=name).fit(np.random.default_rng(0).normal(size=(500, 2)))


def test_principal_directions_of_wide_windows_are_those_of_the_whole_matrix(monkeypatch):
    from tisat.detectors.prism import neighbour

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 60)) * np.linspace(3.0, 0.1, 60)
    rows -= rows.mean(axis=0)
    whole = neighbour.principal(rows, 5)
    monkeypatch.setattr(neighbour, "WIDE", 10)
    thin = neighbour.principal(rows, 5)
    np.testing.assert_allclose(
        np.abs((whole * thin).sum(axis=0)), 1.0, atol=1e-9
    )  # the same directions, up to their sign


def test_a_deviation_is_given_to_the_channel_whose_fault_explains_it_and_sums_stay():
    rng = np.random.default_rng(0)
    weights = 0.5 * rng.standard_normal((3 * 5, 5))
    for c in range(5):
        weights[c::5, c] = 0.0
    spread = rng.uniform(0.1, 2.0, 5)
    patterns = fault_patterns(weights, spread)
    for c in range(5):
        shift = np.zeros(5)
        shift[c] = 3.0
        deviations = (shift - weights.reshape(3, 5, 5).sum(axis=0).T @ shift) / spread  # of a level that stays
        found = blamed(deviations[None], patterns)
        assert int(np.argmax(found)) == c
        np.testing.assert_allclose(found.sum(), (deviations**2).sum())


@pytest.mark.parametrize("switching", [False, True])
def test_windows_are_answered_as_series_are_and_alike_alone_and_together(switching):
    rng = np.random.default_rng(5)
    rows = np.sin(np.arange(1500)[:, None] / np.array([9.0, 15.0, 21.0, 33.0])) + 0.1 * rng.standard_normal((1500, 4))
    rows[:, 3] = 2.0  # never moves
    if switching:
        rows[:, 2] = (np.arange(1500) // 130) % 2
    detector = Prism(lags=20).fit(rows)
    assert (detector._units.transitions is not None) == switching
    assert not detector._modes
    rows[700:740, 1] += 3.0
    rows[900:, 3] = 2.5
    rows[1200, 0] = np.nan
    length = detector._context() + 1
    ends = np.arange(600, 1300)
    clock = np.full((len(rows), 1), np.nan)
    windows = np.stack([np.concatenate([rows, clock], axis=1)[end - length + 1 : end + 1] for end in ends])
    answers = detector._answers(windows)
    alone = np.concatenate([detector._answers(one[None]) for one in windows])
    whole = ~np.isnan(windows[:, :, :4]).any(axis=(1, 2))
    np.testing.assert_array_equal(answers[whole], alone[whole])
    np.testing.assert_allclose(answers, detector._points_at(rows, ends), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("channels", "forecaster"), [(1, "line"), (2, "linear-last")])
def test_windows_of_one_channel_or_another_forecaster_are_answered_without_the_views(channels, forecaster, monkeypatch):
    rng = np.random.default_rng(6)
    rows = np.sin(np.arange(900)[:, None] / np.array([9.0, 15.0])[:channels]) + 0.1 * rng.standard_normal(
        (900, channels)
    )
    detector = Prism(lags=20, forecaster=forecaster).fit(rows)
    rows[500:520] += 2.0
    length, ends = detector._context() + 1, np.arange(450, 600, 7)
    windows = np.stack([rows[end - length + 1 : end + 1] for end in ends])
    expected = detector._points_at(rows, ends)
    monkeypatch.setattr("tisat.detectors.prism.answers._by_views", None)
    found = detector._answers(windows)
    np.testing.assert_array_equal(found, np.concatenate([detector._answers(one[None]) for one in windows]))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_a_lively_channel_at_another_level_is_no_noisy_one():
    views, channels = len(VIEWS), 2
    levels, calm = np.tile([0.0, 1.0], (views, 1)), np.zeros((1, channels))

    def fused(level):
        parts, points = np.zeros((1, views, channels)), np.empty((1, views + 2 * channels + 1))
        parts[0, list(VIEWS).index("activity"), 0], parts[0, fusion.RELATIONS, 0] = 100.0, level
        aside, seen, lively = np.full((1, channels), 0.3), np.full((1, channels), 0.5), np.array([[1.2, -3.0]])
        fusion.fuse(
            parts, np.zeros((0, 0, 0), dtype=bool), np.zeros((views, channels)), levels, np.ones(views), seen, calm, aside, lively,
            fusion.OTHERS, fusion.RELATIONS, np.empty((3, views)), points,
        )  # fmt: skip
        return points[0, views + channels :].tolist()

    assert fused(1.0) == [0.5, 0.5, 1.2]
    assert fused(25.0) == [0.2, 0.2, 0.0]  # what the others say of it


def test_what_the_others_say_of_a_row_is_taken_where_a_step_is_not_yet_in_the_mean():
    learned = {"weights": np.zeros((6, 2)), "intercepts": np.array([0.1, 0.0]), "usual": np.zeros(2)}
    learned["weights"][[1, 3, 5], 0] = [0.2, 0.2, 0.1]  # half of the other channel, over three means
    row = np.array([0.9, 0.4])
    np.testing.assert_allclose(relations_at_once(learned, row, np.array([0.85, 0.4])), [0.3, 0.4])
    np.testing.assert_allclose(relations_at_once(learned, row, np.array([0.2, 0.4])), [0.2, 0.4])
    missing = np.array([0.9, np.nan])
    np.testing.assert_allclose(relations_at_once(learned, missing, np.array([0.85, 0.4])), [0.85, 0.4])
