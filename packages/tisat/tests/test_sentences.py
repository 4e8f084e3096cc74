"""Reasons by kind: from the rows that carry the evidence, the same offline and online."""

import warnings

import numpy as np
import pytest

from tisat.alarms.explanation import Explanation
from tisat.alarms.sentences import Habits, Stillness, still_at, worded
from tisat.datasets.synthetic import make_pump
from tisat.watch.watch import Watch

NAMES = ("temperature", "flow", "load")


def why(kind, **other):
    shares, seen, expected = np.array([0.8, 0.2, 0.0]), np.array([61.2, 2.0, 3.0]), np.array([58.9, 2.0, 3.0])
    return Explanation(kind, shares, seen, expected, np.array([0.4, 0.1, 0.1]), "contribution", **other)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("stuck", "temperature has not moved for 41 min; usually moves every 2 min"),
        ("unusually noisy", "temperature is unusually noisy"),
        ("rhythm", "temperature follows another rhythm than in training"),
        ("broken correlation", "temperature 61.20 while flow and load say 58.90 ± 0.40"),
        ("pattern", "temperature 61.20: no such shape in training"),
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
    assert str(said[0]) == "temperature moves less than usual"


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
