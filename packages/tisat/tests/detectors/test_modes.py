"""The mode views: taken where modes are, otherwise not; trees as scikit-learn has them; files that were changed are refused."""

import io
import warnings
from dataclasses import replace

import numpy as np
import pytest
from modes_generator import CHANNELS, DAY, WEEK, make_plant_with_modes
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_info

from tisat.datasets.synthetic import make_plant, make_pump
from tisat.detectors import Prism, load
from tisat.detectors.prism import modes
from tisat.detectors.prism.switches import any_tells_mode, calendar_of, days_of, switching
from tisat.detectors.prism.transitions import EDGES, units_of
from tisat.detectors.prism.trees import LEAVES, RATE, SMALLEST_LEAF, TREES, Forest, boost
from tisat.errors import ArtefactError, ParameterError, SeriesWarning
from tisat.persistence.model_file import read_artefact, write_artefact
from tisat.series import Series
from tisat.watch.text_stream import watch_lines
from tisat.watch.watch import Watch

QUICK = {"lags": 20}


@pytest.fixture(scope="module")
def plant():
    kinds = ("stuck sensor", "valve stuck")
    return make_plant_with_modes(n_train=WEEK, n_test=DAY, n_normal=0, n_faults=2, kinds=kinds, random_state=4)


@pytest.fixture(scope="module")
def watch(plant):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Watch(Prism(**QUICK), budget="1/day").fit(plant.train, holdout=0.2)


def test_trees_are_grown_with_one_thread(monkeypatch):
    """Two threads on busy cores wait for each other: a fit of 10 processor seconds took 250."""
    fit, seen = HistGradientBoostingRegressor.fit, []

    def spy(self, *args):
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp")
        return fit(self, *args)

    monkeypatch.setattr(HistGradientBoostingRegressor, "fit", spy)
    rows = np.random.default_rng(0).normal(size=(200, 2))
    boost(rows, rows[:, 0], np.arange(2))
    assert set(seen) == {1}


def test_trees_say_what_scikit_learn_says():
    rng = np.random.default_rng(0)
    inputs = rng.random((800, 5))
    targets = np.where(inputs[:, 1] > 0.5, 2.0, inputs[:, 3])
    features = np.array([1, 3, 4])
    model = HistGradientBoostingRegressor(
        max_iter=TREES, max_leaf_nodes=LEAVES, learning_rate=RATE, min_samples_leaf=SMALLEST_LEAF, early_stopping=False,
        random_state=0,
    ).fit(inputs[:, features], targets)  # fmt: skip
    forest = Forest.of([[], boost(inputs, targets, features)])
    assert forest.check(features=5, targets=2)
    found = forest.predict(inputs)
    np.testing.assert_allclose(found[:, 1], model.predict(inputs[:, features]), rtol=1e-9)
    assert not found[:, 0].any()
    np.testing.assert_array_equal(forest.predict(inputs[7:8]), found[7:8])


@pytest.mark.parametrize(("column", "value"), [(0, 5.0), (0, -1.0), (0, 0.5), (2, 0.0), (3, 1e6), (2, -7.0)])
def test_a_forest_that_points_nowhere_is_refused(column, value):
    rng = np.random.default_rng(1)
    forest = Forest.of([boost(rng.random((200, 5)), rng.random(200), np.arange(5))])
    inner = int(np.flatnonzero(forest.nodes[:, 2] >= 0)[0])
    nodes = forest.nodes.copy()
    nodes[inner, column] = value
    assert not replace(forest, nodes=nodes).check(features=5, targets=1)
    assert not replace(forest, roots=forest.roots + 1).check(features=5, targets=1)
    assert not replace(forest, first=forest.first[::-1].copy()).check(features=5, targets=1)


def test_channels_that_switch(plant):
    found = [CHANNELS[c] for c in switching([plant.train.values])]
    assert sorted(found) == ["drain_valve", "pump_running", "set_point"]
    events = (np.random.default_rng(0).random((5000, 1)) < 0.02).astype(float)  # single rows, no states
    assert not len(switching([events]))


def test_taken_with_modes_and_not_without(watch):
    assert list(watch.detector._views)[-2:] == ["mode", "mode activity"]
    assert watch.detector.score_points(watch.detector.normal_).views.shape[1] == 5
    for other in (make_plant(n_train=3000, n_test=4000, n_faults=0), make_pump(n_train=3000, n_test=100, faults=())):
        made = Prism(**QUICK).fit(other.train, holdout=0.2)
        assert made.score_points(made.normal_).views.shape[1] == 6


def test_windows_are_answered_as_series_are_without_the_views_alone_and_together(watch, plant, monkeypatch):
    detector, length = watch.detector, watch.detector._context() + 1
    rows = np.concatenate([plant.test.values, plant.test.seconds[:, None]], axis=1)
    rows[:, CHANNELS.index("total_flow")] = 1.0  # a counter, whose growth the model looks at
    rows[300:350, 2] += 3.0
    ends = np.arange(length, 600, 7)
    windows = np.stack([rows[end - length + 1 : end + 1] for end in ends])
    expected = detector._points_at(rows, ends)
    undated = windows[:1].copy()
    undated[:, :, -1] = np.nan
    np.testing.assert_allclose(
        detector._answers(undated)[0], detector._points_at(undated[0], np.array([length - 1]))[0]
    )
    monkeypatch.setattr("tisat.detectors.prism.answers._by_views", None)
    found = detector._answers(windows)
    np.testing.assert_array_equal(found, np.concatenate([detector._answers(one[None]) for one in windows]))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def valve():
    """A plant with a valve that moves at random: a watch, and rows to score."""
    plant = make_plant(n_train=4000, n_test=2000, n_faults=0, random_state=3)
    moves = np.repeat(np.arange(80) % 2, np.random.default_rng(0).integers(60, 120, 80))[:6000, None]
    train, test = np.hstack([plant.train.values, moves[:4000]]), np.hstack([plant.test.values, moves[4000:]])
    return Watch(Prism(**QUICK), budget="1/200 rows").fit(train, holdout=0.2), test


def test_a_row_in_which_a_valve_switches_at_random_is_as_normal_as_others(valve):
    detector, test = valve[0].detector, valve[1]
    assert not detector.knows_modes
    assert [c for c, _ in detector.switches] == [8]
    scores = detector.decision_function(test)
    switches = np.append(False, np.diff(test[:, -1]) != 0)
    known = ~np.isnan(scores)
    assert np.median(scores[known & switches]) < np.quantile(scores[known & ~switches], 0.9)
    expected = detector.points(test)[known][:, len(detector._views) + detector.n_channels_ :][:, 8]
    assert (expected >= 0.0).all()
    assert (expected <= 1.0).all()


@pytest.mark.parametrize("first", [200, 1700])
def test_a_valve_that_switches_in_one_stretch_alone_can_be_trained_on(first):
    plant = make_plant(n_train=2000, n_test=4000, n_faults=0, random_state=3)
    moves = np.zeros((2000, 1))
    moves[first : first + 240, 0] = np.repeat(np.arange(24) % 2, 10)  # the other folds have none
    detector = Prism(**QUICK).fit(np.hstack([plant.train.values, moves]))
    assert [c for c, _ in detector.switches] == [8]
    assert np.isfinite(detector.normal_[:, : len(detector._views)]).any()


def test_transitions_are_the_same_row_by_row_and_from_a_file_and_forged_ones_are_refused(valve, tmp_path):
    watch, test = valve
    watch.save(tmp_path / "model.tisat")
    monitor = Watch.load(tmp_path / "model.tisat").monitor()
    found = [monitor.update(row).statistic for row in test[:700]]
    np.testing.assert_allclose(
        np.nan_to_num(found), np.nan_to_num(watch.alarms(test[:700]).statistic), rtol=1e-6, atol=1e-9
    )
    document, tensors = read_artefact(tmp_path / "model.tisat")
    for name, change in {"switches": lambda a: a + 1, "units": lambda a: a / 2.0}.items():
        key = f"transitions.{name}"
        write_artefact(tmp_path / "forged.tisat", document, {**tensors, key: change(tensors[key])})
        with pytest.raises(ArtefactError, match="must be channels and times"):
            load(tmp_path / "forged.tisat")


def test_a_slow_or_coarse_sensor_tells_no_mode():
    coarse = np.repeat(np.round(np.cumsum(np.random.default_rng(1).standard_normal(400)), 1), 30)[:, None]
    assert len(switching([coarse])) == 1
    assert not any_tells_mode([coarse], switching([coarse]))
    assert any_tells_mode([np.repeat(np.arange(400) % 2, 30)[:, None]], np.array([0]))


def test_units_are_finite_where_no_row_is_long_after_a_switch():
    contributions, cells = np.random.default_rng(2).random((500, 1, 2)), np.arange(500) % 3
    units = units_of(contributions, cells)
    assert units.max() < 2.0


def test_row_by_row_after_a_restart_and_from_a_file_it_is_the_same(watch, plant, tmp_path):
    watch.save(tmp_path / "model.tisat")
    again = Watch.load(tmp_path / "model.tisat")
    values = plant.test.values.copy()
    values[300:304, 2] = np.nan
    values[700:730, 5] = np.nan  # longer than it is carried
    times = plant.test.timestamps.copy()
    times[900:] += np.timedelta64(3, "h")
    test = Series(values, timestamps=times, channels=CHANNELS)
    batch = again.alarms(test)
    monitor = again.monitor()
    statistics = []
    for row, time in zip(values, times, strict=True):
        if len(statistics) == 650:
            monitor = type(monitor).load(again, monitor.to_bytes())
        statistics.append(monitor.update(row, time=time).statistic)
    np.testing.assert_allclose(np.nan_to_num(statistics), np.nan_to_num(batch.statistic), rtol=1e-6, atol=1e-9)
    assert np.nanmax(batch.statistic) > 0


def test_a_changed_file_is_refused(watch, tmp_path):
    watch.detector.save(tmp_path / "model.tisat")
    document, tensors = read_artefact(tmp_path / "model.tisat")
    for name, change in {
        "mode.nodes": lambda a: np.where(np.arange(a.shape[1]) == 0, 1e9, a),
        "mode.switches": lambda a: a + 100,
        "mode activity.spread": lambda a: -a,
        "mode.first": lambda a: a[:-1],
        "mode.units": lambda a: a[:, :3],
    }.items():
        write_artefact(
            tmp_path / "forged.tisat", document, {**tensors, name: np.ascontiguousarray(change(tensors[name]))}
        )
        with pytest.raises(ArtefactError):
            load(tmp_path / "forged.tisat")


@pytest.mark.slow
def test_without_a_clock_the_calendar_is_not_used(plant, watch):
    bare = Series(plant.train.values, channels=CHANNELS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = Watch(Prism(**QUICK), budget="1/1000 rows").fit(bare, holdout=0.2)
    assert not other.detector._views["mode"].calendar[0]
    assert watch.detector._views["mode"].calendar[0]
    points = watch.detector.points(Series(plant.test.values, channels=CHANNELS))  # rows without a time: no such views
    assert np.isnan(points[200:, 6:8]).all()
    assert not np.isnan(points[200:, :6]).any()


def test_rows_without_a_date_are_said_where_the_model_knows_the_calendar(plant, watch):
    bare = Series(plant.test.values, channels=CHANNELS)
    with pytest.warns(SeriesWarning, match=r"rows have no date, .* scored without them"):
        watch.alarms(bare)
    monitor, dated = watch.monitor(), watch.monitor()
    for row, time in zip(plant.test.values[:3], plant.test.timestamps[:3], strict=True):
        monitor.update(row)
        dated.update(row, time=time)
    assert "rows have no date" in monitor.trouble
    assert dated.trouble is None
    said = []
    lines = [(",".join(map(repr, row.tolist())) + "\n").encode() for row in plant.test.values[:5]]
    watch_lines(watch.monitor(), lines, io.BytesIO(), report=said.append)
    assert sum(one.startswith("The rows have no date") for one in said) == 1


def test_the_calendar_is_local_and_a_holiday_is_a_sunday():
    summer = Series([1.0, 2.0], timestamps=["2026-07-01T00:30:00+02:00", "2026-07-01T00:31:00+02:00"])
    from tisat.io.local_time import local_seconds

    minute, weekday = calendar_of(local_seconds(summer), np.zeros(0))[0]
    assert (minute, weekday) == (30.0, 2.0)  # a Wednesday
    assert calendar_of(local_seconds(summer), days_of("2026-07-01"))[0, 1] == 6.0
    assert (calendar_of(np.array([np.nan]), np.zeros(0)) == -1.0).all()
    with pytest.raises(ParameterError, match="must be dates such as"):
        Prism(holidays=("Christmas",)).fit(np.zeros((300, 1)))


def test_a_stop_that_training_has_seen_is_louder_in_no_view_than_calm_rows_are(watch):
    assert (watch.detector._views["mode"].units >= 1.0).all()
    assert (watch.detector._views["mode"].units[0] > 2.0).any()
    assert (watch.detector._views["mode"].units[-1] == 1.0).all()
    assert EDGES[-1] <= modes.LONG


def test_the_activity_of_a_channel_that_switches_is_not_scored_by_mode(watch, plant):
    """It falls in the one row in which the switch leaves the window, which a sample of the rows does not tell."""
    detector = watch.detector
    view, rows = detector._views["mode activity"], detector._scaled(np.asarray(plant.test.values))
    scene = detector._scene(rows, np.arange(100, len(rows)), None)
    deviations = np.abs(view.deviations(scene))
    switches = view.switches.astype(int)
    assert len(switches)
    assert deviations[:, switches].max() < 1e-6
    assert np.delete(deviations, switches, axis=1).max() > 1.0
