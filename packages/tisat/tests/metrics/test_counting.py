"""Windows, raises and counts on cases small enough to check by hand, and the sentences for bad input."""

import math
from datetime import timedelta

import numpy as np
import pytest

from tisat import metrics
from tisat.errors import InputError, ParameterError, SeriesWarning
from tisat.metrics.windows import parse_duration, windows_of


def test_a_window_is_cut_by_the_next_onset_and_by_the_end():
    windows = windows_of([1, 0, 0, 1, 1, 0, 0, 1], 4)
    assert windows.events[:, 0].tolist() == [0, 3, 7]
    assert windows.stops.tolist() == [3, 7, 8]
    assert not windows.outside.any()


def test_an_time_step_of_an_event_after_its_window_is_not_outside():
    windows = windows_of([0, 1, 1, 1, 1, 1, 0, 0], 1)
    assert windows.stops.tolist() == [3]
    assert windows.outside.tolist() == [True, False, False, False, False, False, True, True]
    late = metrics.count_alarms([0, 1, 1, 1, 1, 1, 0, 0], [0, 0, 0, 1, 0, 1, 0, 0], delta_max=1)
    assert (late.true_alarms, late.n_false_alarms, late.average_delay) == (0, 0, 1.0)
    assert math.isnan(late.precision)


def test_an_alarm_that_is_always_on_is_charged_once_every_delta_max():
    counts = metrics.count_alarms([0] * 100, [1] * 100, delta_max=10)
    assert counts.false_alarms[0].tolist() == list(range(0, 100, 10))
    assert counts.false_alarms_per_1000 == 100
    assert math.isnan(counts.average_delay)
    assert math.isnan(counts.event_f1)


def test_a_run_that_crosses_a_window_is_judged_where_it_is_raised():
    y_true = [0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    early = metrics.count_alarms(y_true, [0, 0, 1, 1, 0, 0, 0, 0, 0, 0], delta_max=3)  # raised before the onset
    assert (early.true_alarms, early.n_false_alarms, early.delays.tolist()) == (1, 1, [0.0])
    late = metrics.count_alarms(
        y_true, [0, 0, 0, 0, 0, 0, 1, 1, 1, 0], delta_max=3
    )  # raised in the window, lasts beyond it
    assert (late.true_alarms, late.n_false_alarms, late.delays.tolist()) == (1, 0, [3.0])


def test_pooled_counts_are_sums_and_series_without_events_add_false_alarms_only():
    counts = metrics.count_alarms([[0, 1, 0, 0], [0, 0, 0, 0]], [[0, 1, 0, 0], [1, 0, 1, 0]], delta_max=1)
    assert (counts.n_events, counts.true_alarms, counts.n_false_alarms) == (1, 1, 2)
    assert [one.n_false_alarms for one in counts.per_series] == [0, 2]
    score = metrics.spd_score([[0, 1, 0, 0], [0, 0, 0, 0]], [[0, 1, 0, 0], [1, 0, 1, 0]], delta_max=1)
    assert float(score) == pytest.approx(1 / 3)
    assert score.per_series_mean == 1.0
    assert math.isnan(score.per_series[1])
    assert "pooled" in str(score)


def test_false_alarms_per_day_need_a_clock():
    y_true, active = [0] * 48, [1] + [0] * 47
    hours = np.datetime64("2024-01-01") + np.arange(48) * np.timedelta64(1, "h")
    assert metrics.count_alarms(y_true, active, delta_max=5, timestamps=hours).false_alarms_per_day == pytest.approx(
        0.5
    )
    assert math.isnan(metrics.count_alarms(y_true, active, delta_max=5).false_alarms_per_day)


def test_delays_in_time_are_seconds():
    minutes = np.array([0, 1, 2, 10, 11], dtype=float) * 60
    delays = metrics.detection_delay(
        [0, 1, 1, 1, 1], [0, 0, 0, 9, 0], threshold=1, delta_max="10min", timestamps=minutes
    )
    assert delays.tolist() == [540.0]
    missed = metrics.detection_delay(
        [0, 1, 1, 1, 1], [0, 0, 0, 9, 0], threshold=1, delta_max="5min", timestamps=minutes
    )
    assert missed.tolist() == [300.0]


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("10min", 600),
        ("1.5 h", 5400),
        ("250ms", 0.25),
        ("2D", 172_800),
        (timedelta(hours=1), 3600),
        (np.timedelta64(90, "s"), 90),
    ],
)
def test_durations(duration, seconds):
    assert parse_duration(duration, name="delta_max", whose="spd_score") == seconds * 10**9


@pytest.mark.parametrize(
    "wrong", [0, -3, 2.5, True, None, "ten minutes", "10", "0s", timedelta(0), np.timedelta64("NaT")]
)
def test_a_wrong_delta_max_has_its_sentence(wrong):
    with pytest.raises(ParameterError, match="The 'delta_max' parameter of spd_score must be an integer >= 1"):
        metrics.spd_score([0, 1], [0, 1], delta_max=wrong, timestamps=[0.0, 1.0])


def test_a_duration_without_timestamps_has_its_sentence():
    with pytest.raises(ParameterError, match=r"where there are no timestamps\. Got '10min' instead"):
        metrics.spd_score([0, 1], [0, 1], delta_max="10min")


@pytest.mark.parametrize(
    ("y_true", "y_score", "sentence"),
    [
        (
            [0, 1, 0],
            [0, 1],
            "The 'y_true' and 'y_score' arguments of .* must have the same length. Got 3 and 2 instead.",
        ),
        ([0, 2, 0], [0, 1, 0], "The 'y_true' argument of .* must hold only 0 and 1. Got 2 at row 1 instead."),
        ([0, 1], [np.nan, np.nan], "The 'y_score' argument of .* must hold at least one number. Got only NaN instead."),
        ([0, 1], [0, np.inf], "The 'y_score' argument of .* must be finite or NaN. Got inf at row 1 instead."),
        (
            [[0, 1], [0, 1]],
            [[0, 1]],
            "The 'y_score' argument of .* must hold as many series as the labels, 2. Got 1 instead.",
        ),
        (np.zeros((2, 2)), [0, 1], "The 'y_true' argument of .* must be one-dimensional"),
    ],
)
@pytest.mark.parametrize(
    "metric",
    [
        lambda y, s: metrics.spd_score(y, s, delta_max=2),
        lambda y, s: metrics.spd_curve(y, s, delta_max=2),
        lambda y, s: metrics.best_event_f1(y, s, delta_max=2),
        lambda y, s: metrics.detection_delay(y, s, threshold=1, delta_max=2),
        metrics.best_instance_f1,
        metrics.best_adjusted_f1,
        metrics.pa_k_auc,
        lambda y, s: metrics.vus_pr(y, s, max_buffer=2),
        lambda y, s: metrics.affiliation_precision_recall(y, s, threshold=1),
        lambda y, s: metrics.range_precision_recall(y, s, threshold=1),
    ],
)
def test_bad_input_has_its_sentence(metric, y_true, y_score, sentence):
    with pytest.raises(InputError, match=sentence):
        metric(y_true, y_score)


def test_bad_alarm_processes_have_their_sentences():
    with pytest.raises(InputError, match="must be a mapping from thresholds to alarms"):
        metrics.spd_score_of_active([0, 1], {}, delta_max=1)
    with pytest.raises(InputError, match="must hold rows from 0 to 1"):
        metrics.spd_score_of_raises([0, 1], {1.0: [2]}, delta_max=1)
    with pytest.raises(InputError, match=r"'active' arguments of .* must have the same length"):
        metrics.count_alarms([0, 1], [1], delta_max=1)
    with pytest.raises(InputError, match="must strictly increase"):
        metrics.spd_score([0, 1], [0, 1], delta_max="1s", timestamps=[5.0, 5.0])


def test_a_point_that_does_not_lower_the_delay_adds_no_area():
    family = {3.0: [1], 2.0: [2], 1.0: [0, 1, 4]}  # the second is later than the first, the third no earlier
    alone = metrics.spd_score_of_raises([0, 1, 1, 1, 0], {3.0: [1]}, delta_max=2)
    assert metrics.spd_score_of_raises([0, 1, 1, 1, 0], family, delta_max=2) == alone == 1.0


def test_literal_counting_charges_every_time_step_outside_windows():
    y_true, scores = [0, 1, 1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 1, 0, 0, 0]
    assert metrics.spd_score(y_true, scores, delta_max=1, counting="event") == 1.0
    assert metrics.spd_score(y_true, scores, delta_max=1, counting="instance") == pytest.approx(2 / 4)


@pytest.mark.parametrize("delta_max", [1, 7, 100, 5000, 300_000])
@pytest.mark.parametrize("kind", ["independent", "walk", "tied", "heavy-tailed"])
def test_one_pass_over_a_long_series_equals_counting_at_single_thresholds(kind, delta_max):
    rng = np.random.default_rng(7)
    y = np.zeros(100_000, dtype=int)
    for start in rng.choice(99_000, 60, replace=False):
        y[start : start + int(rng.integers(1, 400))] = 1
    noise = rng.normal(size=len(y))
    s = {"independent": noise, "walk": np.cumsum(noise), "tied": np.round(noise), "heavy-tailed": np.exp(4 * noise)}[
        kind
    ]
    curve = metrics.spd_curve(y, s, delta_max=delta_max)
    for k in np.unique(np.linspace(0, len(curve.thresholds) - 1, 25).astype(int)):
        counts = metrics.count_at_threshold(y, s, threshold=curve.thresholds[k], delta_max=delta_max)
        assert (curve.true_alarms[k], curve.false_alarms[k]) == (counts.true_alarms, counts.n_false_alarms)
        assert curve.nadd[k] == pytest.approx(counts.normalised_delay)


def test_long_durations_and_many_events_do_not_overflow():
    y = np.tile([0, 1], 5000)
    days = np.datetime64("2000-01-01") + np.arange(10_000) * np.timedelta64(1, "D")
    scores = np.random.default_rng(0).random(10_000)
    long = metrics.spd_score(y, scores, delta_max="400D", timestamps=days)
    assert long == pytest.approx(metrics.spd_score(y, scores, delta_max=400))
    assert metrics.spd_score(y, y.astype(float), delta_max="400D", timestamps=days) == pytest.approx(1)


def test_an_empty_series_is_undefined():
    with pytest.warns(SeriesWarning, match="y_true has no event: SPD is not defined"):
        assert math.isnan(metrics.spd_score([], [], delta_max=3))
