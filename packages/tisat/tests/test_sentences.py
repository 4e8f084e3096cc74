"""Reasons by kind: from the rows that carry the evidence, the same offline and online."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from tisat.alarms.explanation import Explanation
from tisat.alarms.joined_channels import newly_named
from tisat.alarms.sentences import Habits, Stillness, still_at, stood, worded
from tisat.alarms.shares import explained
from tisat.datasets.synthetic import make_pump
from tisat.detectors import make
from tisat.watch.training_notes import habits_of
from tisat.watch.watch import Watch

NAMES = ("temperature", "flow", "load")


def why(kind, **other):
    shares, seen, expected = np.array([0.8, 0.2, 0.0]), np.array([61.2, 2.0, 3.0]), np.array([58.9, 2.0, 3.0])
    return Explanation(kind, shares, seen, expected, np.array([0.4, 0.1, 0.1]), "contribution", **other)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("stuck", "temperature 61.20, expected 58.90 ± 0.40, and has not moved for 41 min; usually moves every 2 min"),
        ("unusually noisy", "temperature 61.20, expected 58.90 ± 0.40, and moves more than usual"),
        ("rhythm", "temperature follows another rhythm than in training"),
        ("broken correlation", "temperature 61.20 while flow and load say 58.90 ± 0.40"),
        ("pattern", "temperature 61.20, expected 58.90 ± 0.40: no such shape in training"),
        ("spike", "temperature 61.20, expected 58.90 ± 0.40"),
    ],
)
def test_each_kind_has_its_sentence(kind, sentence):
    explanation = why(kind, partners=((1, 2), (0,), (0, 1)))
    still = np.array([41, 0, 0])
    found = worded(explanation.reasons(NAMES), explanation, NAMES, still, Habits((2.0, 1.0, 1.0), 60.0))
    assert str(found[0]) == sentence


def test_a_level_without_others_and_a_channel_that_stands_still_often():
    alone = why("broken correlation")
    assert str(worded(alone.reasons(NAMES), alone, NAMES, np.zeros(3, int), Habits((), None))[0]).endswith("2.30 above the expected 58.90 ± 0.40")  # fmt: skip
    lazy = why("stuck")
    said = worded(lazy.reasons(NAMES), lazy, NAMES, np.array([41, 0, 0]), Habits((30.0, 1.0, 1.0), 60.0))
    assert str(said[0]) == "temperature 61.20, expected 58.90 ± 0.40, and moves less than usual"


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("stuck", "temperature has not moved for 41 min; usually moves every 2 min"),
        ("unusually noisy", "temperature is unusually noisy"),
        ("pattern", "temperature 58.90: no such shape in training"),
    ],
)
def test_a_value_that_is_near_the_expected_one_is_not_the_news(kind, sentence):
    near = replace(why(kind), seen=np.array([58.9, 2.0, 3.0]))
    found = worded(near.reasons(NAMES), near, NAMES, np.array([41, 0, 0]), Habits((2.0, 1.0, 1.0), 60.0))
    assert str(found[0]) == sentence


def test_a_noisy_channel_is_spoken_of_by_how_much_more_it_moves_and_those_beside_it_by_their_values():
    near = replace(why("unusually noisy", times=3.94), seen=np.array([58.9, 2.0, 3.0]))
    assert [str(one) for one in worded(near.reasons(NAMES), near, NAMES, np.zeros(3, int), Habits((), None))] == [
        "temperature moves 3.9 times as much as usual"
    ]


def test_a_counter_of_a_strange_shape_is_spoken_of_by_its_growth_too():
    near = replace(why("pattern"), seen=np.array([58.9, 2.0, 3.0]))
    habits = Habits.of({"moves_every": [1.0, 1.0, 1.0], "counters": ["temperature"]})
    said = str(worded(near.reasons(NAMES), near, NAMES, np.zeros(3, int), habits)[0])
    assert said == "temperature grew by 58.90 per row, expected 58.90 ± 0.40: no such shape in training"


@pytest.mark.parametrize("kind", ["spike", "stuck", "unusually noisy", "broken correlation"])
def test_a_counter_is_spoken_of_by_its_growth(kind):
    explanation = why(kind, partners=((1, 2), (0,), (0, 1)))
    habits = Habits.of({"moves_every": [1.0, 1.0, 1.0], "counters": ["temperature"]})
    said = str(worded(explanation.reasons(NAMES), explanation, NAMES, np.zeros(3, int), habits)[0])
    assert said.startswith("temperature grew by 61.20 per row, expected 58.90 ± 0.40")


def test_a_counter_that_grows_evenly_does_not_stand_still():
    """Its growth stood at 0.5 per row; the reason said that the counter had not moved."""
    explanation = why("stuck")
    habits = Habits.of({"moves_every": [1.0, 1.0, 1.0], "counters": ["temperature"], "period_seconds": 60.0})
    said = str(worded(explanation.reasons(NAMES), explanation, NAMES, np.full(3, 50), habits)[0])
    assert "by the same amount at each row for" in said
    assert "has not moved" not in said


def test_a_channel_that_is_as_expected_joins_no_alarm_unless_it_stands_still():
    habits = Habits((2.0, 1.0, 1.0), 60.0)

    def joined(kind, seen, still):
        explanation = replace(why(kind), seen=np.array([seen, 2.0, 3.0]))
        return [
            str(one) for one in newly_named(explanation, NAMES, set(), np.array([still, 0, 0]), habits, climbed=True)
        ]

    assert joined("unusually noisy", 58.9, 0) == joined("spike", 58.9, 41) == joined("stuck", 58.9, 3) == []
    assert joined("stuck", 58.9, 41) == ["temperature has not moved for 41 min; usually moves every 2 min"]
    assert joined("spike", 61.2, 0) == ["temperature 61.20, expected 58.90 ± 0.40"]
    assert joined("unusually noisy", 61.2, 0) == ["temperature 61.20, expected 58.90 ± 0.40, and moves more than usual"]


@pytest.mark.parametrize("climbed", [True, False])
def test_a_broken_correlation_joins_an_alarm_unless_it_is_that_of_a_channel_named_already(climbed):
    def joined(share, *named):
        shares, seen = np.array([share, 1.0 - share, 0.0]), np.array([61.2, 2.0, 3.0])
        near = replace(why("broken correlation", partners=((1,), (0,), (0,))), channels=shares, seen=seen)
        found = newly_named(near, NAMES, set(named), np.zeros(3, int), Habits((), None), climbed=climbed)
        return [one.channel for one in found]

    other = replace(why("broken correlation"), partners=((1,), (0,), (1,)))
    assert [one.channel for one in newly_named(other, NAMES, {"load"}, None, Habits((), None), climbed=climbed)] == ["temperature"]  # fmt: skip
    assert joined(0.45, "flow") == []  # the partner has more: it has come back
    assert joined(0.9, "flow") == (["temperature"] if climbed else [])


def test_what_is_expected_stays_near_the_training_range_and_a_constant_stays_itself():
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.abs(2 + np.sin(np.arange(3000) / 50) + 0.2 * rng.normal(size=3000)), np.full(3000, 7.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = Watch("prism", budget="1/1000 rows").fit(rows[:2000])
    test = rows[2000:].copy()
    test[300:400, 0] -= 20.0
    test[600:700, 1] = 9.0
    expected, _ = watch.detector.expected(test)
    low, high = rows[:2000, 0].min(), rows[:2000, 0].max()
    assert np.nanmin(expected[:, 0]) >= low - 0.5 * (high - low) - 1e-9
    assert np.nanmax(expected[:, 0]) <= high + 0.5 * (high - low) + 1e-9
    assert np.nanmin(expected[:, 1]) == np.nanmax(expected[:, 1]) == 7.0
    moved = next(alarm for alarm in watch.alarms(test) if alarm.raised == 600)
    assert moved.why == f"{moved.reasons[0].channel} 9.000, expected 7.000 ± 0.070"  # another level, no noise
    assert moved.kind == "spike"


def test_standing_still_is_counted_the_same_in_both_ways():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (300, 3)).astype(float)
    rows[100:110, 1] = np.nan
    known = rng.random(300) > 0.02
    still = Stillness(3)
    for t in range(300):
        found = still.step(rows[t] if known[t] else None)
        if known[t]:
            np.testing.assert_array_equal(found, still_at(rows, known, t), err_msg=str(t))


def test_reasons_come_from_the_rows_that_carry_the_evidence_offline_and_online():
    pump = make_pump(n_train=4000, n_test=1500, faults=())
    values = np.array(pump.test.values)
    values[700, 4] += 40.0  # one row only: the row of the raise, or the one after it, is normal again
    values[1100:1300, 1] = values[1100, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = Watch("prism", budget="1/day").fit(pump.train)
    offline = list(watch.alarms(type(pump.test)(values, timestamps=pump.test.timestamps, channels=pump.test.channels)))
    monitor = watch.monitor()
    online = []
    for row, time in zip(values, pump.test.timestamps, strict=True):
        verdict = monitor.update(row, time=time)
        if verdict.raised:
            online.append(verdict.alarm)
    assert [alarm.why for alarm in online] == [alarm.why for alarm in offline]
    spike = next(alarm for alarm in offline if 700 <= alarm.raised < 720)
    assert spike.reasons[0].channel == "motor_current"
    assert spike.reasons[0].seen == pytest.approx(values[700, 4])
    stuck = next(alarm for alarm in offline if 1100 <= alarm.raised < 1300)
    assert stuck.reasons[0].channel == "pressure"
    assert "has not moved for" in stuck.why


def test_the_channel_of_a_univariate_array_is_called_value():
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = Watch("last-value", budget="1/200 rows").fit(rng.standard_normal(3000))
    test = rng.standard_normal(300)
    test[200] = 40.0
    assert watch.alarms(test)[0].reasons[0].channel == "value"


def test_the_end_of_a_fault_is_not_named_as_a_wrong_value():
    usual = np.array([[52.0], [1.0]])
    habits = Habits((), None, usual=usual)
    still = np.zeros(1, dtype=np.int64)
    for seen, expected, ends in ((52.3, 80.0, True), (80.0, 52.0, False), (58.0, 80.0, False), (52.3, 53.9, False)):
        why = Explanation("spike", np.ones(1), np.array([seen]), np.array([expected]), np.array([0.4]), "contribution")
        (reason,) = worded(why.reasons(("temp",)), why, ("temp",), still, habits)
        assert ("a fault before may have ended here" in str(reason)) == ends


def test_alarms_after_a_long_fault_say_that_the_value_is_usual():
    rng = np.random.default_rng(0)
    flow = 80 + 5 * np.sin(np.arange(6000) / 50) + rng.normal(0, 0.5, 6000)
    rows = np.column_stack([flow, 52 + 0.2 * (flow - 80) + rng.normal(0, 0.3, 6000)])
    watch = Watch(budget="1/300 rows").fit(rows[:4000])
    test = rows[4000:].copy()
    test[600:1300, 1] += 28
    after = [one for one in watch.alarms(test) if 1290 < one.raised < 1340]
    assert after
    assert all("may have ended here" in one.why for one in after if one.channels and next(iter(one.channels)) == "1")


def test_the_channel_with_the_largest_share_is_a_reason_also_where_its_value_is_as_expected():
    """Shares said 'errors 35 %; queue 16 %', and the reasons queue, rps and others but not errors."""
    near = Explanation(
        "spike", np.array([0.1, 0.9]), np.array([0.7, 5.9]), np.array([0.6, 2.0]), np.array([0.35, 1.1]), "contribution"
    )
    _, shares, reasons = explained(
        near, {"errors": 0.7, "queue": 0.3}, ("errors", "queue"), np.zeros(2, int), Habits((), None)
    )
    assert [one.channel for one in reasons] == list(shares) == ["errors", "queue"]
    assert str(reasons[0]) == "errors 0.70, expected 0.60 ± 0.35 at this row, and 70 % of the evidence since the onset"


def test_what_training_had_at_another_hour_is_no_end_of_a_fault():
    usual, extremes = np.array([[2.0], [8.0]]), np.array([[0.0], [60.0]])
    still = np.zeros(1, dtype=np.int64)
    for expected, ends in ((31.8, False), (75.0, True)):  # the rush hour; never in training
        why = Explanation("spike", np.ones(1), np.array([11.0]), np.array([expected]), np.array([3.6]), "contribution")
        (reason,) = worded(why.reasons(("rentals",)), why, ("rentals",), still, Habits((), None, (), usual, extremes))
        assert ("a fault before may have ended here" in str(reason)) == ends
    rows = np.random.default_rng(0).integers(0, 61, (500, 2)).astype(float)
    np.testing.assert_allclose(habits_of(make("last-value").fit(rows)).extremes, [[0, 0], [60, 60]], atol=1e-6)


def test_a_channel_that_stands_as_it_often_did_in_training_is_not_stuck():
    """A pump that was off each night had not moved for 20 minutes."""
    off = np.concatenate([np.zeros(300), np.arange(100.0)])
    assert stood([np.tile(off, 3)[:, None], np.arange(50.0)[:, None]]) == [300.0]
    why = Explanation(
        "stuck",
        np.array([0.5, 0.4, 0.1]),
        np.array([0.0, 5.0, 1.0]),
        np.array([0.0, 5.0, 3.0]),
        np.full(3, 0.1),
        "contribution",
    )
    habits = Habits((2.0, 2.0, 2.0), 60.0, stood=(300.0, 10.0, 300.0))
    pump, sensor = (
        worded(why.reasons(NAMES), why, NAMES, np.array(still), habits) for still in ([200, 41, 200], [301, 41, 0])
    )
    assert [str(one) for one in pump] == [
        f"{NAMES[1]} has not moved for 41 min; usually moves every 2 min",
        f"{NAMES[2]} 1.00, expected 3.00 ± 0.10",
    ]
    assert str(sensor[0]) == f"{NAMES[0]} has not moved for 5.02 h; usually moves every 2 min"
