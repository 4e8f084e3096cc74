"""The lengths of a rule where rows are minutes or hours apart, and where somebody has given others."""

import numpy as np
import pytest

from tisat import Series, Watch
from tisat.alarms.rules import ExcessRule

pytestmark = pytest.mark.filterwarnings("ignore::tisat.errors.CalibrationWarning")


def hourly(n, seed, step=3600):
    rng = np.random.default_rng(seed)
    times = np.datetime64("2026-01-05T00:00:00", "s") + np.arange(n) * np.timedelta64(step, "s")
    day = np.sin(2 * np.pi * np.arange(n) * step / 86400)
    return Series(
        np.column_stack([day, -day]) + 0.2 * rng.standard_normal((n, 2)), timestamps=times, channels=("a", "b")
    )


@pytest.mark.parametrize(
    ("step", "lengths"), [(3600, (4, 3)), (1800, (4, 3)), (900, (10, 6)), (300, (10, 6)), (60, (20, 30))]
)
def test_the_lengths_of_a_rule_are_those_of_its_pace(step, lengths):
    watch = Watch("mahalanobis", budget="1/100 rows").fit(hourly(600, 0, step))
    assert (watch.rule.length, watch.rule.hold) == lengths
    watch.fit(hourly(600, 0, 60))
    assert (watch.rule.length, watch.rule.hold) == (20, 30)  # of the rows it was fitted on last


def test_an_alarm_of_hourly_rows_lasts_hours_not_days(tmp_path):
    watch, later = Watch("mahalanobis", budget="1/100 rows").fit(hourly(2000, 0)), hourly(400, 1)
    rows = np.array(later.values)
    rows[200:203] += 6.0
    later = Series(rows, timestamps=later.timestamps, channels=later.channels)
    alarm = next(one for one in watch.alarms(later) if 200 <= one.raised <= 203)
    assert alarm.cleared - alarm.raised < 20
    watch.save(tmp_path / "m.tisat")
    for other in (Watch.load(tmp_path / "m.tisat"), watch.recalibrated("1/50 rows"), watch.refitted(hourly(2000, 2))):
        assert (other.rule.length, other.rule.hold) == (4, 3)
    monitor = watch.monitor()
    raised = [t for t, row in enumerate(later.values) if monitor.update(row, later.timestamps[t]).raised]
    assert raised == [one.raised for one in watch.alarms(later)]


@pytest.mark.parametrize("rule", [{"hold": 30}, ExcessRule(), {"name": "excess", "length": 20, "hold": 30}])
def test_lengths_that_were_given_stay(rule):
    watch = Watch("mahalanobis", budget="1/100 rows", rule=rule).fit(hourly(600, 0))
    assert watch.rule.hold == 30
    assert Watch("mahalanobis").fit(hourly(600, 0)).recalibrated(rule={"hold": 30}).rule.hold == 30
    assert Watch("mahalanobis").set_params(rule__hold=30).fit(hourly(600, 0)).rule.hold == 30


def test_a_copy_of_a_watch_takes_the_lengths_of_its_own_rows():
    base = pytest.importorskip("sklearn.base")
    watch = Watch("mahalanobis").fit(hourly(600, 0, 60))
    assert base.clone(watch).fit(hourly(600, 0)).rule.hold == 3
