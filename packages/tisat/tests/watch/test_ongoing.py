"""An alarm whose channels are still different is ongoing, offline, online and after a restart, until it is undone or accepted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tisat.alarms.alarms import Alarm
from tisat.alarms.explanation import Reason
from tisat.alarms.ongoing import SETTLED, Ongoing, rearm_rows
from tisat.alarms.present_mode import MEAN
from tisat.errors import ArtefactError, ParameterError
from tisat.series import Series
from tisat.watch.monitor import Monitor
from tisat.watch.watch import Watch
from waves import assert_close

BEGIN, UNDONE, ROWS = 600, 1800, 2400


def plant(rows: int, seed: int, channels: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    load = np.sin(t / 90.0) + 0.3 * np.sin(t / 17.0)
    return np.outer(load, np.linspace(0.5, 2.0, channels)) + 0.1 * rng.standard_normal((rows, channels))


def stepped(*, until: int = ROWS, channel: int = 2, seed: int = 5) -> np.ndarray:
    rows = plant(ROWS, seed)
    rows[BEGIN:until, channel] += 1.5
    return rows


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch(budget="1/1000 rows", period="1 min", control=False).fit(plant(6000, 1))


def ends(results) -> dict[int, tuple]:
    last = {}
    for one in results:
        for alarm in [*([one.alarm] if one.alarm else []), *one.ended]:
            last[alarm.raised] = life(alarm)
    return last


def life(alarm: Alarm) -> tuple:
    return alarm.cleared, alarm.cleared_time, alarm.state, alarm.ongoing_since, alarm.back, alarm.back_time


def held(alarms) -> Alarm:
    return next(one for one in alarms if BEGIN <= one.raised < BEGIN + 60)


def test_a_step_that_stays_is_ongoing_to_the_end(watch):
    alarm = held(watch.alarms(stepped()))
    assert alarm.cleared is not None  # its statistic fell
    assert (alarm.state, alarm.ongoing_since, alarm.back) == ("ongoing", alarm.cleared, None)
    assert "ongoing since" in str(alarm)
    assert alarm.until.startswith("ongoing since")


def test_a_step_that_is_undone_is_back(watch):
    alarm = held(watch.alarms(stepped(until=UNDONE)))
    assert alarm.state == "back"
    assert alarm.back is not None
    assert UNDONE < alarm.back <= UNDONE + 3 * MEAN + SETTLED


def test_normal_rows_have_nothing_ongoing(watch):
    results = watch.monitor().extend(plant(6000, 9))
    assert Counter(one.state for one in results)["ongoing"] <= 0.0006 * 6000


@pytest.mark.parametrize("until", [ROWS, UNDONE], ids=["stays", "undone"])
@pytest.mark.parametrize("how", ["whole", "holes", "gap", "dead channel", "unusable"])
def test_offline_is_online_is_after_restarts(watch, until, how):
    rows, minutes = stepped(until=until), np.arange(ROWS) * 60.0
    rng = np.random.default_rng(3)
    if how == "holes":
        rows[rng.random(rows.shape) < 0.02] = np.nan
    if how == "gap":
        minutes[1200:] += 86_400.0
    if how == "dead channel":
        rows[1100:1500, 0] = np.nan
    if how == "unusable":
        rows[1100:1300] = np.nan
    offline = watch.alarms(Series(rows, timestamps=minutes))
    single, monitor, results = watch.monitor(), watch.monitor(), []
    straight = [single.update(row, float(minute)) for row, minute in zip(rows, minutes, strict=True)]
    for t in range(ROWS):
        results.append(monitor.update(rows[t], time=float(minutes[t])))
        if t % 97 == 0 or t in (BEGIN, BEGIN + 1, 1199, 1200, UNDONE + 60):
            monitor = Monitor.load(watch, monitor.to_bytes())
    assert [one.to_json() for one in results] == [one.to_json() for one in straight]
    assert_close(
        [one.to_json() for one in watch.monitor().extend(rows, minutes.tolist())], [one.to_json() for one in straight]
    )
    assert ends(results) == {alarm.raised: life(alarm) for alarm in offline}
    assert held(offline).state == ("ongoing" if until == ROWS else "back")
    assert results[1050].state == "ongoing"
    assert (monitor.ongoing != ()) == (until == ROWS)
    assert all(one.state != "calm" for one in results[BEGIN + 30 : until])


def test_a_second_fault_while_one_is_ongoing_raises_its_own_alarm(watch):
    rows = stepped()
    rows[1500:, 0] += 1.5
    alarms = watch.alarms(rows)
    second = next(one for one in alarms if 1500 <= one.raised < 1560)
    assert "0" in {reason.channel for reason in second.reasons}
    assert second.state in ("ongoing", "merged")
    assert held(alarms).state == "ongoing"


def test_accepting_ends_it_and_a_further_step_is_ongoing_again(watch):
    rows = stepped()
    rows[1800:, 2] += 1.5
    monitor = watch.monitor()
    monitor.extend(rows[:1500])
    assert monitor.condition == "ongoing"
    accepted = monitor.accept()
    assert [one.state for one in accepted] == ["new normal"]
    assert monitor.condition == "calm"
    monitor = Monitor.load(watch, monitor.to_bytes())
    results = monitor.extend(rows[1500:])
    assert {one.state for one in results[:290]} == {"calm"}
    assert [one.state for one in monitor.ongoing] == ["ongoing"]
    assert results[-1].state != "calm"


def test_only_the_alarm_that_was_on_at_a_row_is_accepted(watch):
    monitor = watch.monitor()
    monitor.extend(stepped())
    alarm = held(monitor.ongoing)
    assert monitor.accept(alarm.raised - 1) == ()
    assert monitor.accept(alarm.cleared) == ()
    assert [one.raised for one in monitor.accept(alarm.raised)] == [alarm.raised]


def test_the_label_new_normal_accepts(watch):
    monitor = watch.monitor()
    monitor.extend(stepped()[:1500])
    monitor.label(monitor.ongoing[0].raised, "new normal")
    assert monitor.condition == "calm"


def test_rearm_takes_it_for_the_new_normal_after_that_time(watch):
    policy = watch.recalibrated(rearm="6h")
    alarm = held(policy.alarms(stepped()))
    assert (alarm.state, alarm.back) == ("new normal", alarm.ongoing_since + 360)
    assert ends(policy.monitor().extend(stepped()))[alarm.raised] == life(alarm)
    never = held(watch.recalibrated(rearm=0).alarms(stepped()))
    assert (never.state, never.ongoing_since) == ("cleared", None)


def test_the_policy_is_kept_with_the_model(watch, tmp_path):
    watch.recalibrated(rearm="6h").save(tmp_path / "m.tisat")
    again = Watch.load(tmp_path / "m.tisat")
    assert again.rearm_rows == 360
    assert held(again.alarms(stepped())).state == "new normal"
    np.testing.assert_array_equal(again.detector.deviation_limits, watch.detector.deviation_limits)


def test_a_detector_without_deviations_clears_as_before():
    other = Watch("last-value", budget="1/1000 rows").fit(plant(4000, 1))
    rows = plant(1000, 2)
    rows[500:505] += 30.0
    alarm = next(one for one in other.alarms(rows) if 500 <= one.raised < 510)
    assert (alarm.state, alarm.ongoing_since, alarm.back) == ("cleared", None, None)
    assert {one.state for one in other.monitor().extend(rows)} == {"calm", "raised"}


def test_one_channel_is_ongoing_by_its_level():
    rng = np.random.default_rng(0)
    one = Watch(budget="1/1000 rows").fit(rng.normal(size=(5000, 1)))
    rows = rng.normal(size=(1500, 1))
    rows[500:] += 6.0
    alarm = next(one for one in one.alarms(rows) if 500 <= one.raised < 560)
    assert alarm.state == "ongoing"


def test_models_without_limits_know_no_state(watch, tmp_path):
    watch.save(tmp_path / "m.tisat")
    old = Watch.load(tmp_path / "m.tisat")
    old.detector._views["relations"].limits = np.zeros(4)  # as a file of version 0.2 gives
    assert held(old.alarms(stepped())).state == "cleared"


def test_tables_have_the_state_in_new_last_columns(watch):
    alarms = watch.alarms(stepped())
    header, *_ = alarms.to_csv().splitlines()
    assert header.endswith("further,state,ongoing_since,back,back_time,mode,known")
    assert alarms.to_rows()[0]["state"] in ("ongoing", "back")
    assert [Alarm.from_json(row) for row in alarms.to_rows()] == list(alarms)


def test_a_state_that_is_none_is_refused(watch):
    monitor = watch.monitor()
    monitor.extend(stepped()[:1500])
    state = monitor.state()
    state["ongoing"][0]["state"] = "happy"
    with pytest.raises(ArtefactError, match="state of an alarm must be"):
        watch.monitor().restore(state)


def test_rearm_must_be_a_duration():
    with pytest.raises(ParameterError, match="rearm"):
        rearm_rows("soon", 60.0)
    with pytest.raises(ParameterError, match="rows have no clock"):
        rearm_rows("6h", None)


def test_an_ongoing_alarm_covers_a_later_one_of_the_same_channel():
    track = Ongoing(np.ones(2), ["a", "b"])
    plain = Alarm(0, 0, None, 1.0, 1.0, "excess", "1/day", {"a": 1.0})
    alarm = replace(plain, reasons=(Reason("a", 1.0, 1.0, 0.0, 1.0),))
    for row in range(100):
        track.step(np.array([5.0, 0.0]), row=row)
        if row in (10, 70):
            began = track.begin(replace(alarm, raised=row))
        if row == 60:
            assert track.clear(replace(began, cleared=60)).state == "ongoing"
        if row == 90:
            assert track.clear(replace(began, cleared=90)).state == "merged"
    assert len(track.alarms) == 1


def broken_for_good(*, joined: bool) -> np.ndarray:
    rows = stepped()
    for begin in (1400, 1800):  # its level jumps again while it is still broken
        rows[begin : begin + 3, 2] += 4.0
    if joined:
        rows[1404:1500, 0] += 6.0
    return rows


@pytest.mark.parametrize("joined", [False, True])
def test_an_alarm_about_what_is_ongoing_is_merged_when_it_is_raised(watch, joined):
    rows = broken_for_good(joined=joined)
    monitor, results = watch.monitor(), []
    for row in rows:
        results.append(monitor.update(row))
        monitor = Monitor.load(watch, monitor.to_bytes()) if len(results) % 101 == 0 else monitor
    offline = watch.alarms(rows)
    assert ends(results) == {alarm.raised: life(alarm) for alarm in offline}
    assert held(offline).state == "ongoing"
    states = {one.row: one.alarm.state for one in results if one.raised}
    again = [state for row, state in states.items() if 1400 <= row < 1404 or row >= 1800]
    assert len(again) >= 2
    assert set(again) == {"merged"}
    first = next(one for one in offline if 1400 <= one.raised < 1404)
    called = [one.alarm.state for one in results if one.alarm is not None and one.alarm.raised == first.raised]
    assert called[0] == "merged"
    if joined:  # a channel that the ongoing alarm does not name: somebody is called
        assert first.further
        assert first.state == "ongoing"
        assert "raised" in called[1:]
    else:
        assert first.state == "merged"
        assert first.until.endswith("(merged)")
        merged = sum(one.state == "merged" for one in offline)
        assert str(offline).startswith(f"{len(offline) - merged} alarm")
        assert f", {merged} merged into one that is ongoing; " in str(offline)
    still_on = watch.alarms(rows[: first.raised + 2])
    assert still_on[-1].state == "merged"
    assert still_on[-1].until == "still on"


def test_an_alarm_accepted_while_it_is_on_ends_as_the_new_normal(watch):
    """The level taken was half-way to the new one, so it was ongoing for hours after somebody had accepted it."""
    monitor, states = watch.monitor(), {}
    for row in stepped()[: BEGIN + 400]:
        told = monitor.update(row)
        if told.raised and monitor.rows > BEGIN:
            monitor.accept()
            monitor = Monitor.load(watch, monitor.to_bytes())
        states |= {one.raised: one.state for one in (told.alarm, *told.ended) if one is not None}
    assert next(state for raised, state in states.items() if BEGIN <= raised < BEGIN + 60) == "new normal"
    assert not monitor.ongoing


def test_an_alarm_that_called_somebody_is_not_merged_when_it_ends():
    """A failed return pump under a fault of the current was counted as merged, because the current was still off."""
    track = Ongoing(np.ones(2), ["a", "b"])
    first, second = (Alarm(row, row, None, 1.0, 1.0, "excess", "1/day", {}, reasons=reasons) for row, reasons in (
        (10, (Reason("a", 1.0, 1.0, 0.0, 1.0),)), (110, (Reason("b", 0.6, 1.0, 0.0, 1.0), Reason("a", 0.4, 1.0, 0.0, 1.0))),
    ))  # fmt: skip
    for row in range(300):
        track.step(np.array([5.0, 5.0 * (110 <= row < 150)]), row=row)
        if row == 10:
            track.begin(first)
        if row == 60:
            assert track.clear(replace(first, cleared=60)).state == "ongoing"
        if row == 110:
            second = track.begin(second)
            assert second.state == "raised"
    assert track.clear(replace(second, cleared=300)).state == "back"


def test_an_alarm_is_back_when_its_last_rows_are_as_usual_and_not_when_its_longest_mean_is():
    """After a fault of an hour an alarm was ongoing for three more, about channels that were right again."""
    track = Ongoing(np.ones(1), ["a"])
    alarm = Alarm(10, 10, None, 1.0, 1.0, "excess", "1/day", {}, reasons=(Reason("a", 1.0, 1.0, 0.0, 1.0),))
    for row in range(225):
        track.step(np.array([5.0 * (row < 200)]), row=row)
        if row == 10:
            track.begin(alarm)
    assert track.clear(replace(alarm, cleared=225)).state == "back"
