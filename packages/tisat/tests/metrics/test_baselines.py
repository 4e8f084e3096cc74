"""The trivial baselines: closed forms against simulation, and every printed result shows them."""

import math

import numpy as np
import pytest

from tisat import metrics
from tisat.errors import ParameterError
from tisat.metrics.baselines import _expected_false_alarms, _random_closed_form, time_only
from tisat.metrics.windows import windows_of


@pytest.fixture(scope="module")
def labels():
    """Many short and long events, so that the ratio of expectations is close to the expectation of the ratio."""
    rng = np.random.default_rng(5)
    y = np.zeros(60_000, dtype=int)
    for start in np.arange(200, 59_000, 300):
        y[start : start + int(rng.integers(1, 120))] = 1
    return y


@pytest.mark.parametrize("counting", ["event", "instance"])
@pytest.mark.parametrize("delta_max", [1, 10, 100])
def test_the_closed_form_of_the_random_baseline_is_what_simulation_gives(labels, delta_max, counting):
    baselines = metrics.baselines(labels, delta_max, counting=counting, n_simulations=20, random_state=1)
    assert baselines.random == pytest.approx(float(baselines.random_simulated), rel=0.06)


def test_the_closed_form_agrees_between_time_steps_and_irregular_time(labels):
    y = labels[:3000]
    regular = _random_closed_form([windows_of(y, 20)], "event")
    ticks = np.arange(len(y), dtype=float)
    ticks[-1] += 0.5  # irregular in one step only
    irregular = _random_closed_form([windows_of(y, "20s", timestamps=ticks)], "event")
    assert float(irregular) == pytest.approx(float(regular), rel=1e-3)


def test_series_together_have_the_false_alarms_of_each_alone(labels):
    short, none = labels[:701], np.ones(50, dtype=int)
    ticks = np.cumsum(1.0 + np.arange(300) % 2)
    windows = [windows_of(one, 20) for one in (labels[:9000], short, none)]
    windows += [windows_of(short[:300], "20s", timestamps=ticks), windows_of(short, 1), windows_of(short, 50)]
    together = _expected_false_alarms(windows)
    for found, one in zip(together, windows, strict=True):
        np.testing.assert_allclose(found, _expected_false_alarms([one])[0], rtol=1e-12, atol=1e-12)
    assert not together[2].any()


def test_always_on_is_events_over_events_and_blocks():
    y = np.zeros(1000, dtype=int)
    y[105] = 1
    assert metrics.baselines(y, 10).always_on == pytest.approx(
        1 / (1 + 100 - 1)
    )  # raised at 110, inside the window, counts for nothing


def test_random_guess_closed_form_is_what_the_random_baseline_gives(labels):
    for p in (0.001, 0.01, 0.2, 1.0):
        closed, thrown = metrics.random_guess(labels, p), metrics.random_guess_simulated(labels, p, n_simulations=40)
        assert (closed.precision, closed.recall) == pytest.approx((thrown.precision, thrown.recall), abs=0.02)
    best = metrics.best_random_guess(labels)
    assert best[1].f1 >= metrics.random_guess(labels, 0.01).f1


def test_the_floor_is_the_best_baseline_and_correction_is_linear(labels):
    baselines = metrics.baselines(labels, 50, n_simulations=2)
    assert baselines.best == max(map(float, baselines.named.values())) == float(baselines.named[baselines.best_name])
    assert metrics.chance_corrected(baselines.best, baselines.best) == 0
    assert metrics.chance_corrected(1.0, baselines.best) == 1
    assert metrics.chance_corrected(0.0, 0.5) == -1


def test_no_events_no_floor():
    baselines = metrics.baselines([0, 0, 0], 2)
    assert all(math.isnan(score) for score in baselines.named.values())


def test_every_printed_result_shows_the_floors(labels):
    y, s = labels[:3000], np.random.default_rng(0).random(3000)
    for result in (
        metrics.spd_curve(y, s, delta_max=20),
        metrics.evaluate(y, s, delta_max=20, threshold=0.99, n_simulations=1),
    ):
        for name in ("random", "random, rolling maximum", "always on", "on/off"):
            assert name in str(result)
    text = str(metrics.evaluate([y, y], [s, s], delta_max=20, n_simulations=1))
    assert "pooled" in text
    assert "mean" in text


def test_a_random_baseline_is_called_a_random_baseline(labels):
    y, s = labels, np.random.default_rng(0).random(len(labels))
    found = metrics.audit(y, s, delta_max=20, n_simulations=2)
    assert found.verdict[0].startswith("PA-F1")
    assert "is what a trivial baseline gets" in found.verdict[0]
    assert found.evaluation["SPD"].corrected < 0.02
    perfect = (np.diff(y, prepend=0) == 1).astype(float)
    better = metrics.audit(y, perfect, delta_max=20, threshold=1.0, n_simulations=1)
    assert better.evaluation["SPD"].corrected == 1
    assert (better.missed, better.false_alarms, better.threshold_source) == ((), (), "given")


def test_the_audit_lists_what_went_wrong_with_times():
    y = np.zeros(50, dtype=int)
    y[10:14] = y[30:33] = 1
    s = np.zeros(50)
    s[[11, 45]] = 5.0
    hours = np.datetime64("2024-01-01") + np.arange(50) * np.timedelta64(1, "h")
    found = metrics.audit(y, s, delta_max="3h", threshold=1.0, timestamps=hours, names=["pump"], n_simulations=1)
    assert [(event.start, event.time) for event in found.missed] == [(30, "2024-01-02T06:00:00")]
    assert [(alarm.series, alarm.time_step, alarm.time) for alarm in found.false_alarms] == [
        ("pump", 45, "2024-01-02T21:00:00")
    ]
    assert [point.delta_max for point in found.sweep] == ["1080s", "5400s", "10800s", "54000s", "108000s"]


def test_the_curve_plots():
    pytest.importorskip("matplotlib").use("Agg")
    axes = metrics.spd_curve([0, 1, 1, 0, 0], [0, 1, 2, 1, 0], delta_max=2).plot()
    assert axes.get_xlim() == (1, 0)
    assert axes.lines[0].get_xdata()[[0, -1]].tolist() == [1, 0]  # from never to at once
    assert axes.get_ylim() == axes.child_axes[0].get_ylim() == (0, 1.02)  # precisions and areas, both from 0 to 1
    own, *baselines = (bar.get_facecolor() for bar in axes.child_axes[0].patches)
    assert {own}.isdisjoint(baselines)
    assert len(baselines) == 3
    assert len(set(baselines)) == 1
    assert "SPD" in axes.get_legend().get_texts()[0].get_text()


@pytest.mark.parametrize("random_baseline", [metrics.random_guess, metrics.random_guess_simulated])
@pytest.mark.parametrize("p", [0.0, 1.01])
def test_a_random_baseline_is_thrown_with_a_probability(random_baseline, p):
    with pytest.raises(ParameterError, match=r"'p' .* a number > 0 and <= 1\."):
        random_baseline([0, 1, 0], p)


def test_labels_without_an_event_are_told_as_what_nothing_can_be_said_of():
    curve = metrics.spd_curve([0, 0, 0, 0], [0.1, 0.2, 0.3, 0.4], delta_max=2)
    assert "chance-corrected" in str(curve)
    assert math.isnan(metrics.chance_corrected(0.5, float("nan")))
    with pytest.raises(ParameterError, match="'baseline_score' parameter of chance_corrected"):
        metrics.chance_corrected(0.5, "low")


def test_a_clock_finds_events_that_begin_in_the_same_rows_everywhere():
    labels = [np.zeros(600, dtype=int) for _ in range(4)]
    for y in labels:
        y[200:220] = y[450:470] = 1
    found = metrics.baselines(labels, 20)
    assert found.best_name == "time only"
    assert float(found.time_only) == pytest.approx(1.0)
    alone = metrics.baselines(labels[0], 20)
    assert "time only" not in alone.named
    assert math.isnan(alone.time_only)
    rows = metrics.evaluate(labels, [np.random.default_rng(i).random(600) for i in range(4)], delta_max=20).rows
    assert {row.name: row.baseline for row in rows}["AUC-PR"] == "time only"


def test_a_clock_knows_the_other_series_only_and_any_length():
    labels = [np.array([0, 1, 0, 0]), np.array([0, 1, 1, 0, 0, 1]), np.array([1, 0, 0, 0, 0])]
    scores = time_only([windows_of(y, 1) for y in labels])
    np.testing.assert_allclose(scores[0], [0.5, 0.5, 0.5, 0.0])
    np.testing.assert_allclose(scores[1], [0.5, 0.5, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(scores[2], [0.0, 1.0, 0.5, 0.0, 0.0])


def test_an_audit_has_one_chance_level_for_each_quantity():
    rng = np.random.default_rng(3)
    labels = (np.arange(3000) % 300 < 60).astype(int)
    found = metrics.audit(labels, labels + rng.random(3000), delta_max=50)
    spd = found.evaluation["SPD"]
    (swept,) = [point for point in found.sweep if point.delta_max == 50]
    assert (swept.pooled, swept.baseline_score, swept.baseline) == (spd.pooled, spd.baseline_score, spd.baseline)
    adjusted = found.evaluation["adjusted F1 (oracle)"]
    assert adjusted.baseline_score >= found.best_random_baseline.f1
    assert f"{adjusted.baseline_score:.2f} ({adjusted.baseline})" in found.verdict[0]
