"""A machine that stays broken is not back because it stands still: what was different is compared in the mode in which it was."""

import numpy as np
import pytest

from tisat import Monitor, Watch
from tisat.alarms.alarms import Alarm
from tisat.alarms.explanation import Reason
from tisat.alarms.ongoing import ELSEWHERE, SETTLED, Ongoing
from tisat.alarms.present_mode import MEAN, STEADY, PresentMode
from tisat.errors import ArtefactError
from waves import assert_close

ON, OFF = 240, 160  # rows
BEGIN, UNDONE, ROWS = 1200, 4000, 5200


def plant(rows, seed):
    """A heater that is on and off, its power, its temperature and its steam."""
    rng = np.random.default_rng(seed)
    runs = (np.arange(rows) % (ON + OFF) < ON).astype(float)
    load = 1.0 + 0.3 * np.sin(np.arange(rows) / 70.0)
    values = np.column_stack([runs, 5.0 * runs * load, 20.0 + 8.0 * runs * load, 3.0 * runs * load])
    return values + 0.1 * rng.normal(size=values.shape) * [0.0, 1.0, 1.0, 1.0]


def too_hot(until):
    rows = plant(ROWS, 5)
    rows[BEGIN:until, 2] += 2.0 * rows[BEGIN:until, 0]  # only while it heats
    return rows


@pytest.fixture(scope="module")
def watch():
    return Watch(budget="1/2000 rows", period="1 min", control=False).fit(plant(9600, 1))


def broken(alarms):
    return next(one for one in alarms if BEGIN <= one.raised < BEGIN + ON)


def test_an_alarm_is_ongoing_while_the_machine_stands_still_and_back_when_it_is_right_again(watch):
    assert watch.detector.switches
    stays = broken(watch.alarms(too_hot(ROWS)))
    assert (stays.state, stays.back) == ("ongoing", None)
    ends = broken(watch.alarms(too_hot(UNDONE)))
    assert ends.state == "back"
    assert UNDONE < ends.back < UNDONE + 2 * (ON + OFF)


def test_what_the_others_say_is_about_the_row_and_not_about_its_mean_over_twenty(watch):
    """A fault of 25 % read as 3 %: most of the rows that were averaged came before it."""
    (reason, *_) = broken(watch.alarms(too_hot(ROWS))).reasons
    healthy = plant(ROWS, 5)[BEGIN : BEGIN + 20, 2]
    assert reason.channel == "2"
    assert healthy.min() - 0.3 < reason.expected < healthy.max() + 0.3
    assert reason.seen - reason.expected > 1.0


@pytest.mark.parametrize("until", [ROWS, UNDONE])
def test_offline_is_online_is_after_restarts(watch, until):
    rows = too_hot(until)
    monitor, last, statistic = watch.monitor(), {}, []
    for k, row in enumerate(rows):
        told = monitor.update(row)
        statistic.append(told.statistic)
        last |= {
            one.raised: (one.state, one.ongoing_since, one.back) for one in (told.alarm, *told.ended) if one is not None
        }
        if k % 499 == 0:
            monitor = Monitor.load(watch, monitor.to_bytes())
    offline = watch.alarms(rows)
    assert last == {one.raised: (one.state, one.ongoing_since, one.back) for one in offline}
    assert_close(np.array(statistic), offline.statistic)
    blocks = watch.monitor()
    results = [one for first in range(0, ROWS, 700) for one in blocks.extend(rows[first : first + 700])]
    found = {}
    for told in results:
        found |= {
            one.raised: (one.state, one.ongoing_since, one.back) for one in (told.alarm, *told.ended) if one is not None
        }
    assert found == last


def test_a_mode_that_does_not_come_again_keeps_no_alarm_for_ever():
    track = Ongoing(np.ones(2), ["switch", "heat"], switches=((0, 0.5),))
    alarm = broken_alarm()
    values, away = np.array([1.0, 0.0]), np.array([0.0, 5.0])
    for row in range(200):
        track.step(away, row=row, values=values)
        if row == 100:
            track.begin(alarm)
    assert track.clear(alarm).state == "ongoing"
    ended, row = (), 200
    while not ended and row < 2 * ELSEWHERE:
        ended, row = track.step(np.zeros(2), row=row, values=np.zeros(2)), row + 1
    assert ended[0].state == "back"
    assert ELSEWHERE <= row - 200 < ELSEWHERE + STEADY + SETTLED
    assert track.step(np.zeros(2), row=row, values=values) == ()


def test_an_alarm_is_back_once_the_mode_it_was_mostly_in_is_as_usual():
    """After a fault of a day it stayed open for two, until the boiler stood still at night again."""
    track = Ongoing(np.ones(2), ["switch", "heat"], switches=((0, 0.5),))
    day, night, away = np.array([1.0, 0.0]), np.array([0.0, 0.0]), np.array([0.0, 5.0])
    for row in range(900):
        track.step(away, row=row, values=night if row >= 700 else day)
        if row == 100:
            track.begin(broken_alarm())
    assert track.clear(broken_alarm()).state == "ongoing"
    assert len(track.state()["modes"][0]) == 2
    ended, row = (), 900
    while not ended and row < 2000:
        ended, row = track.step(np.zeros(2), row=row, values=day), row + 1
    assert ended[0].state == "back"
    assert row < 900 + STEADY + MEAN + 2 * SETTLED


def broken_alarm():
    return Alarm(
        raised=100, onset=99, cleared=None, peak=9.0, threshold=5.0, rule="excess", budget="1/day", channels={"heat": 1.0},
        reasons=(Reason("heat", 1.0, 1.0, 0.0, 1.0),),
    )  # fmt: skip


def test_positions_of_a_mode():
    mode = PresentMode([(0, 0.5)])
    for value in [1.0] * (STEADY + 1):
        mode.step(np.array([value, 3.0]))
    assert mode.settled
    mode.step(np.array([1.2, 3.0]))
    mode.step(np.array([np.nan, 3.0]))
    mode.step(None)
    assert mode.settled
    mode.step(np.array([0.0, 3.0]))
    assert not mode.settled


def test_a_state_with_forged_modes_is_refused():
    track = Ongoing(np.ones(2), ["switch", "heat"], switches=((0, 0.5),))
    for row in range(200):
        track.step(np.array([0.0, 5.0]), row=row, values=np.array([1.0, 0.0]))
        if row == 100:
            track.begin(broken_alarm())
    state = track.state()
    again = Ongoing(np.ones(2), ["switch", "heat"], switches=((0, 0.5),))
    again.restore(state)
    assert again.state()["modes"] == state["modes"] == [[[[1.0], [1], 0, 99]]]
    with pytest.raises(ArtefactError, match="positions of the channels"):
        again.restore({**state, "modes": [[[[1.0, 2.0], [1], 0, 99]]]})
