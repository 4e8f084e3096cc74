"""What a metric does at its edges: no events, no scores, clocks that cannot be read, and the words results are told in."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

from tisat import metrics
from tisat.errors import InputError, ParameterError
from tisat.metrics.alarm_counts import raise_times
from tisat.metrics.baselines import rolling_maximum
from tisat.metrics.evaluation import baseline_scores
from tisat.metrics.spd import process_points
from tisat.metrics.windows import LONGEST, windows_of

Y = np.array([0, 0, 0, 1, 1, 0, 0, 0, 1, 0])
ACTIVE = np.array([0, 1, 0, 0, 1, 0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("stamps", "said"),
    [
        (np.arange(9.0), r"one entry for each of the 10 rows. Got shape \(9,\)"),
        (np.array(["2024-01-01", "NaT", *["2024-01-03"] * 8], dtype="datetime64[s]"), "known dates. Got NaT"),
        (np.array([0.0, np.nan, *range(8)]), "known times. Got NaN"),
        (["soon"] * 10, "must hold dates or seconds"),
        (np.zeros(10), "strictly increase"),
    ],
)
def test_a_clock_that_cannot_be_read_is_refused(stamps, said):
    with pytest.raises(InputError, match=said):
        metrics.count_alarms(Y, ACTIVE, delta_max="2s", timestamps=stamps)


def test_dates_as_text_are_dates():
    text = [f"2024-01-01T00:00:{t:02d}" for t in range(10)]
    told = metrics.count_alarms(Y, ACTIVE, delta_max="2s", timestamps=text)
    counted = metrics.count_alarms(Y, ACTIVE, delta_max=2)
    assert (told.true_alarms, told.n_false_alarms) == (counted.true_alarms, counted.n_false_alarms) == (1, 1)


def test_counts_in_words():
    counts = metrics.count_alarms(Y, ACTIVE, delta_max=2)
    assert counts.recall == 0.5
    assert "1 of 2 events detected" in str(counts)
    assert "those after 1 on average, 1 missed" in str(counts)
    assert "per 1000 rows" in str(counts)
    assert math.isnan(counts.false_alarms_per_day)
    days = metrics.count_alarms(Y, ACTIVE, delta_max="2 days", timestamps=86400.0 * np.arange(10))
    assert days.false_alarms_per_day == pytest.approx(1 / days.days_outside)
    assert "per day" in str(days)
    assert "2 missed" in str(metrics.count_alarms(Y, np.zeros(10), delta_max=2))
    assert math.isnan(metrics.count_alarms(np.zeros(10), ACTIVE, delta_max=2).recall)


def test_raise_times_of_as_many_series_as_labels():
    with pytest.raises(InputError, match=r"one list of rows for each of the 2 series. Got 1"):
        metrics.count_raises([Y, Y], [[3]], delta_max=2)


def test_precision_and_recall_in_words():
    one = metrics.best_instance_f1(Y, ACTIVE)
    assert str(one).startswith(f"precision {one.precision:.4f}, recall {one.recall:.4f}, F1 {one.f1:.4f}")
    two = metrics.best_instance_f1([Y, Y], [ACTIVE, 1 - ACTIVE])
    mean = two.per_series_mean
    assert f"(pooled; per-series mean {mean.precision:.4f} / {mean.recall:.4f} / {mean.f1:.4f})" in str(two)
    assert f" at threshold {two.threshold:.6g}" in str(two)


def test_the_curve_of_a_process_has_the_area_of_its_score():
    family = {1.0: ACTIVE, 2.0: np.zeros(10)}
    curve = metrics.spd_curve_of_active(Y, family, delta_max=2)
    assert float(curve.score) == float(metrics.spd_score_of_active(Y, family, delta_max=2))
    raised = {1.0: [1, 4], 2.0: []}
    assert float(metrics.spd_curve_of_raises(Y, raised, delta_max=2).score) == float(curve.score)


@pytest.mark.parametrize("metric", [metrics.pate, metrics.vus_pr, metrics.vus_roc])
def test_volumes_without_events_are_not_defined(metric):
    rng = np.random.default_rng(0)
    assert math.isnan(metric(np.zeros(10), rng.random(10), max_buffer=2))
    both = metric([Y, np.zeros(10, dtype=int)], [rng.random(10), rng.random(10)], max_buffer=2)
    assert math.isnan(both.per_series[1])


def test_volumes_where_everything_is_an_event_or_nothing_is_scored():
    assert math.isnan(metrics.vus_roc(np.ones(10, dtype=int), np.arange(10.0), max_buffer=0))
    scores = [np.arange(10.0), np.full(10, np.nan)]
    assert metrics.pate([Y, Y], scores, max_buffer=2).per_series[1] == 0.0


@pytest.mark.parametrize(
    "metric",
    [partial(m, max_buffer=1) for m in (metrics.vus_pr, metrics.vus_roc, metrics.pate)]
    + [partial(metrics.spd_score, delta_max=2), metrics.pa_k_auc, metrics.auc_pr, metrics.auc_roc],
)
def test_every_series_has_a_score_of_its_own(metric):
    score = metric([Y, 1 - Y], [ACTIVE, ACTIVE])
    assert score.per_series == (float(metric(Y, ACTIVE)), float(metric(1 - Y, ACTIVE)))


def test_in_irregular_time_an_alarm_is_not_raised_again_where_its_run_has_ended():
    windows = windows_of(np.zeros(4, dtype=int), "3s", timestamps=np.array([0.0, 1.0, 3.0, 10.0]))
    assert raise_times([1, 1, 0, 0], windows).tolist() == [0]  # three seconds later it is off
    assert raise_times([1, 1, 1, 0], windows).tolist() == [0, 2]


@pytest.mark.parametrize("delta_max", [1, 4, 7, 1000])
def test_in_time_a_score_is_held_for_half_of_delta_max(delta_max):
    stamps = np.array([0, 1, 2, 5, 6, 7, 11, 12, 13, 30.0])
    scores = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3.5])
    windows = windows_of(Y, f"{delta_max}s", timestamps=stamps)
    recent = [[s for s in range(t + 1) if s == t or stamps[t] - stamps[s] < delta_max / 2] for t in range(10)]
    assert rolling_maximum(scores, windows).tolist() == [scores[each].max() for each in recent]


def test_days_are_counted_from_two_time_steps_on():
    for n in (1, 2, 3):
        counts = metrics.count_alarms(np.zeros(n), np.ones(n), delta_max="1s", timestamps=86400.0 * np.arange(n))
        assert counts.days_outside == pytest.approx(math.nan if n == 1 else n, nan_ok=True)


def test_the_points_of_a_process_come_by_falling_threshold():
    family = {1.0: ACTIVE, 3.0: np.zeros(10), 2.0: ACTIVE}
    windows = [windows_of(Y, 2)]
    points = process_points(family, windows, raised=False, whose="test")
    assert points.thresholds.tolist() == [3.0, 2.0, 1.0]
    np.testing.assert_array_equal(points.precision, [np.nan, 0.5, 0.5])  # undefined where nobody raised an alarm
    assert points.true_alarms.tolist() == [0, 1, 1]
    assert points.false_alarms.tolist() == [0, 1, 1]


def test_the_sweep_of_an_audit_is_the_protocol_of_the_benchmark():
    labels = np.arange(3000) // 30 == 40
    scores = np.random.default_rng(0).random(3000)
    found = metrics.audit(labels, scores, delta_max=20, n_simulations=1)
    assert [point.delta_max for point in found.sweep] == [10, 20, 50, 100, 500, 1000]


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_area_of_pa_k_is_the_trapezoids_of_its_best_scores(steps):
    scores = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3.5])
    ends = [metrics.best_pa_k_f1(Y, scores, k=100 * i / steps).f1 for i in range(steps + 1)]
    by_hand = sum((low + high) / 2 / steps for low, high in itertools.pairwise(ends))
    assert metrics.pa_k_auc(Y, scores, n_steps=steps) == pytest.approx(by_hand)
    with pytest.raises(InputError, match=r"an integer >= 1\. Got 0"):
        metrics.pa_k_auc(Y, scores, n_steps=0)


def test_at_a_threshold_the_floor_of_event_f1_is_the_best_baselines_own_count():
    labels = np.arange(400) % 100 < 10
    on_off = np.arange(400) // 25 % 2 == 0
    row = metrics.evaluate(labels, labels * 1.0, delta_max=25, threshold=0.5)["event F1"]
    assert (row.baseline, row.pooled) == ("on/off", 1.0)
    assert row.baseline_score == metrics.count_alarms(labels, on_off, delta_max=25).event_f1 > 0.5


def test_with_a_delay_in_time_steps_the_clock_changes_no_score():
    rng = np.random.default_rng(1)
    labels, scores = np.arange(90) % 30 > 24, rng.random(90)
    stamps = np.cumsum(rng.integers(1, 100, 90)).astype(float)
    for metric in (metrics.spd_score, metrics.best_event_f1):
        assert metric(labels, scores, delta_max=3, timestamps=stamps) == metric(labels, scores, delta_max=3)
    told, plain = (metrics.count_alarms(labels, scores > 0.9, delta_max=3, timestamps=t) for t in (stamps, None))
    assert (told.true_alarms, told.n_false_alarms, told.average_delay) == (
        plain.true_alarms,
        plain.n_false_alarms,
        plain.average_delay,
    )
    assert float(metrics.baselines(labels, 3, timestamps=stamps).best) == float(metrics.baselines(labels, 3).best)


def test_the_mean_over_series_is_of_each_figure_by_itself():
    found = metrics.instance_precision_recall([Y, 1 - Y, Y], [ACTIVE, ACTIVE, 1 - ACTIVE], threshold=0.5)
    for figure in ("precision", "recall", "f1"):
        each = [getattr(one, figure) for one in found.per_series]
        assert len(set(each)) > 1
        assert getattr(found.per_series_mean, figure) == pytest.approx(sum(each) / 3)
    assert found.per_series_mean.precision != found.per_series_mean.recall


def test_a_curve_has_the_floors_of_its_labels():
    scores = np.random.default_rng(2).random(90)
    labels = np.arange(90) % 30 > 24
    assert metrics.spd_curve(labels, scores, delta_max=3).baselines.named == metrics.baselines(labels, 3).named


def test_at_a_threshold_every_row_is_its_own_metric_and_reaching_it_is_enough():
    scores = np.array([3, 1, 4, 1, 5, 9, 2, 6, 4, 3.5])
    found = metrics.evaluate(Y, scores, delta_max=2, threshold=4.0, n_simulations=1)
    counts = metrics.count_at_threshold(Y, scores, threshold=4.0, delta_max=2)
    assert str(found.counts) == str(counts)
    assert str(counts) in str(found)
    assert "None" not in str(metrics.evaluate(Y, scores, delta_max=2, n_simulations=1))
    alone = {
        "event F1": counts.event_f1,
        "instance F1": metrics.instance_precision_recall(Y, scores, threshold=4.0).f1,
        "range-based F1": metrics.range_precision_recall(Y, scores, threshold=4.0).f1,
        "affiliation F1": metrics.affiliation_precision_recall(Y, scores, threshold=4.0).f1,
        "adjusted F1": metrics.adjusted_precision_recall(Y, scores, threshold=4.0).f1,
    }
    assert {name: found[name].pooled for name in alone} == alone
    above = metrics.evaluate(Y, scores, delta_max=2, threshold=np.nextafter(4.0, 5.0), n_simulations=1)
    assert all(above[name].pooled != alone[name] for name in alone)


def test_a_series_without_events_does_not_count_in_the_mean_of_event_f1():
    found = metrics.evaluate([Y, 0 * Y], [ACTIVE, ACTIVE], delta_max=2, threshold=1.0, n_simulations=1)["event F1"]
    alone, both = (
        metrics.count_alarms(y, a, delta_max=2).event_f1 for y, a in ((Y, ACTIVE), ([Y, 0 * Y], [ACTIVE, ACTIVE]))
    )
    assert (found.pooled, found.per_series_mean) == (both, alone)
    assert alone != both


def test_affiliation_recall_between_two_alarms_is_that_of_the_nearer_one():
    labels = np.arange(12) // 4 == 1  # from 4 to 8, alarms on both sides: at y the nearer is min(y - 4, 8 - y) away
    found = metrics.affiliation_precision_recall(labels, np.isin(np.arange(12), [3, 8]) * 1.0, threshold=1.0)
    assert found.recall == pytest.approx(1 - 2 / 12)
    long = np.isin(np.arange(12), range(2, 10))  # from 2 to 10, and one alarm more from 5 to 6: triangles of 9/4 and 4
    found = metrics.affiliation_precision_recall(long, np.isin(np.arange(12), [1, 5, 10]) * 1.0, threshold=1.0)
    assert found.recall == pytest.approx(1 - 2 * (9 / 4 + 4) / 8 / 12)


@pytest.mark.parametrize("stamps", [None, np.arange(10.0), np.array([0, 1, 2, 5, 6, 7, 11, 12, 13, 14.0])])
@pytest.mark.parametrize("delta_max", [1, 3, 100])
@pytest.mark.parametrize("unit", ["time_steps", "seconds"])
def test_what_follows_is_the_first_time_step_at_least_so_much_later(stamps, delta_max, unit):
    if unit == "seconds" and stamps is None:
        return
    clock = np.arange(10) if unit == "time_steps" else stamps
    windows = windows_of(Y, delta_max if unit == "time_steps" else f"{delta_max}s", timestamps=stamps)
    later = [[s for s in range(10) if clock[s] >= clock[t] + delta_max] for t in range(10)]
    assert windows.following.tolist() == [min(each, default=10) for each in later]


def test_the_longest_delay_can_be_added_to_itself():
    assert 2 * LONGEST < 2**63
    assert windows_of(Y, LONGEST).stops.tolist() == [8, 10]
    with pytest.raises(ParameterError, match="'delta_max'"):
        windows_of(Y, LONGEST + 1)


def test_in_time_too_a_score_is_the_process_of_its_own_masks():
    scores = np.array([3, 1, 4, 1, 5, 9, 2, 6, 4, 3.5])
    given = {"delta_max": "3s", "timestamps": np.array([0, 1, 2, 5, 6, 7, 11, 12, 13, 30.0])}
    process = metrics.spd_score_of_active(Y, {h: scores >= h for h in scores}, **given)
    assert 0 < process == pytest.approx(metrics.spd_score(Y, scores, **given))


def test_the_floors_of_a_row_are_the_best_baselines_pooled_and_on_average():
    labels, scores = [Y, np.roll(Y, 3), np.arange(30) > 25], [Y * 1.0, ACTIVE, np.arange(30.0)]
    row = metrics.evaluate(labels, scores, delta_max=2, n_simulations=1, random_state=5)["AUC-PR"]
    baselines = baseline_scores([windows_of(y, 2) for y in labels], n_simulations=1, rng=np.random.default_rng(5))
    found = {name: metrics.auc_pr(labels, draws[0]) for name, draws in baselines.items()}
    assert row.baseline_score == max(found.values()) == found[row.baseline]
    assert row.baseline_per_series_mean == max(one.per_series_mean for one in found.values()) != row.baseline_score
