"""Alarms that are alike are one line with their number and rhythm; none is lost, and chance is no rhythm."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import pytest

from tisat.alarms import Alarm, recurring
from tisat.alarms.explanation import Reason
from tisat.alarms.recurrence import rhythm_of

NIGHT = datetime.datetime(2026, 3, 3, 2, 0, tzinfo=datetime.UTC)


def alarm(at: datetime.datetime | None, row: int, *, channel: str = "flow", sign: int = -1, who: str = "pump") -> Alarm:
    reasons = (Reason(channel, 0.7, 5.0 + sign, 5.0, 1.0), Reason("power", 0.3, 4.0, 5.0, 1.0))
    stamp = None if at is None else at.isoformat()
    return Alarm(row, row, row + 9, 3.0, 2.0, "excess", "1/day", {}, stamp, reasons=reasons, kind="level", series=who)


def every(step: datetime.timedelta, count: int, *, jitter: float = 0.0) -> list[datetime.datetime]:
    shifts = np.random.default_rng(0).uniform(-jitter, jitter, count)
    return [NIGHT + k * step + datetime.timedelta(seconds=float(s)) for k, s in enumerate(shifts)]


@pytest.mark.parametrize(
    ("moments", "said"),
    [
        (every(datetime.timedelta(days=1), 12), "12th time, nightly at 02:00 since 3 March"),
        (every(datetime.timedelta(days=7), 4), "4th time, on Tuesdays at 02:00 since 3 March"),
        (every(datetime.timedelta(hours=6), 21), "21st time, about every 6 h since 3 March"),
        (every(datetime.timedelta(minutes=20), 3), "3rd time, about every 20 min since 3 March"),
        (every(datetime.timedelta(days=1, hours=7), 9, jitter=50000.0), "9th time since 3 March"),
        (every(datetime.timedelta(days=1), 2), ""),
        ([None, None, None], "3rd time since row 0"),
    ],
)
def test_the_line_names_the_rhythm_that_nearly_all_keep(moments, said):
    (found,) = recurring([alarm(at, 10 * k) for k, at in enumerate(moments)])
    assert found.words == said


def test_the_line_names_the_channel_that_leads_most_of_them():
    """The last alarm may have another channel first, by a hair; the line speaks of all of them."""
    alarms = [alarm(at, k) for k, at in enumerate(every(datetime.timedelta(days=1), 3))]
    reasons = (Reason("power", 0.51, 4.0, 5.0, 1.0), Reason("flow", 0.49, 4.0, 5.0, 1.0))
    (found,) = recurring([*alarms[:2], replace(alarms[2], reasons=reasons)])
    assert str(found) == "pump: level of flow: 3rd time, nightly at 02:00 since 3 March"


def test_the_daytime_is_daily_and_another_year_is_named():
    noon = [NIGHT.replace(year=2025, month=12, day=25, hour=12) + datetime.timedelta(days=k) for k in range(12)]
    (found,) = recurring([alarm(at, k) for k, at in enumerate(noon)])
    assert str(found) == "pump: level of flow: 12th time, daily at 12:00 since 25 December 2025"


def test_every_alarm_is_in_one_group_and_others_do_not_join_it():
    nights = [alarm(at, 100 * k) for k, at in enumerate(every(datetime.timedelta(days=1), 5))]
    others = [
        alarm(NIGHT, 1, sign=1),
        alarm(NIGHT, 2, channel="temp"),
        alarm(NIGHT, 3, who="fan"),
    ]
    found = recurring([*others, *reversed(nights)])
    assert sorted(len(one.alarms) for one in found) == [1, 1, 1, 5]
    assert sorted(each.raised for one in found for each in one.alarms) == sorted(
        one.raised for one in [*nights, *others]
    )
    assert found[0].alarms == tuple(nights), "the latest first, the oldest of it first"
    assert not any(one.words for one in found[1:])


def test_moments_at_random_have_no_rhythm():
    rng = np.random.default_rng(1)
    named = 0
    for _ in range(200):
        seconds = np.sort(rng.uniform(0, 14 * 86400, 8))
        named += bool(rhythm_of([NIGHT + datetime.timedelta(seconds=float(one)) for one in seconds]))
    assert named <= 2
