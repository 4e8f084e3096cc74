"""Alarms that recur are one line for each title."""

from tisat.alarms import Alarm
from tisat.alarms.recurrence import recurrence_lines, recurring


def alarm(row, channels):
    return Alarm(row, row, row + 5, 3.0, 2.0, "excess", "1/day", channels, kind="spike", series="big")


def test_groups_with_one_title_are_one_line():
    shares = [{"a": 1.0}, {"b": 1.0}]
    alarms = [alarm(100 * k, shares[k % 2]) for k in range(8)]
    assert len(recurring(alarms)) == 2
    assert recurrence_lines(alarms) == ["big: spike: 8th time since row 0"]
    assert recurrence_lines(alarms[:2]) == []
