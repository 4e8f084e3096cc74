"""Whether rows are dated in the zone of the training data: the sentence where they are not.

A date carries its offset from UTC, not the name of its zone, and one zone has two offsets a year. Another offset than those of training is
therefore that of another zone only where no zone of the world has it at that time and those of training at theirs.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from functools import lru_cache

import numpy as np

from tisat.io.timestamps import Moment, offset_minutes, read_time, say_offset
from tisat.series import Series
from tisat.utils.types import JsonMap
from tisat.watch.clock import UNZONED

ELSEWHERE = (
    "The rows have no dates of the zone of training. Their offset is {offset}, there it was {zone}, and the model knows the time of day. "
    "Give them in that zone (frame.tz_convert(...), timezone=..., --timezone)."
)


class TrainingZone:
    """The zone that the dates of training were written in, as far as their offsets tell.

    Parameters
    ----------
    trained : mapping
        ``trained_on_`` of a detector.
    dated : bool
        The model knows the calendar: an hour of another zone is another hour to it.

    Examples
    --------
    >>> from tisat.io.timestamps import read_time
    >>> zone = TrainingZone({"zone": "-06:00", "start": "2026-01-01T06:00", "stop": "2026-02-01T06:00"}, dated=True)
    >>> zone.note(read_time("2026-07-01T12:00-05:00"))  # daylight saving
    ''
    >>> zone.note(read_time("2026-07-01T12:00+09:00"))[:53]
    'The rows have no dates of the zone of training. Their'
    """

    def __init__(self, trained: JsonMap, *, dated: bool) -> None:
        self._zone = str(trained.get("zone", ""))
        self._offsets = frozenset(map(offset_minutes, re.findall(r"[+-]\d\d:\d\d|Z", self._zone.replace("UTC", "Z"))))
        self._days = tuple(str(trained[end])[:10] for end in ("start", "stop") if trained.get(end))
        self._dated = dated

    def note(self, moment: Moment | None) -> str:
        """The sentence about the date of a row; empty where there is nothing to say."""
        if not self._zone or moment is None or not moment.dates or moment.offset in self._offsets:
            return ""
        if moment.offset is None:
            return UNZONED.format(zone=self._zone)
        day = int(moment.value) // (86_400 * 10**9)
        if not self._dated or not self._offsets or _one_zone(self._offsets, self._days, moment.offset, day):
            return ""
        return ELSEWHERE.format(offset=say_offset(moment.offset).replace("Z", "UTC"), zone=self._zone)

    def note_of(self, series: Series) -> str:
        """The sentence about the dates of a series; empty where there is nothing to say."""
        if series.timestamps is None or not len(series):
            return ""
        first = [0] if series.offsets is None else np.unique(series.offsets, return_index=True)[1].tolist()
        found = (self.note(read_time(series.stamp(row))) for row in first)
        return next(filter(None, found), "")


@lru_cache(maxsize=256)
def _one_zone(offsets: frozenset[int], days: tuple[str, ...], offset: int, day: int) -> bool:
    """Whether some zone has ``offset`` on a day since 1970, and those of training on their ``days``; True where that cannot be said."""
    try:
        now = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(days=day)
        then = [datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC) for text in days]
    except (ValueError, OverflowError):
        return True
    names = [
        name for name in zoneinfo.available_timezones() if not name.startswith("Antarctica/")
    ]  # two hours of summer time
    zones = map(zoneinfo.ZoneInfo, names)
    return not names or any(
        offset in _minutes(now, zone) and all(_minutes(one, zone) & offsets for one in then) for zone in zones
    )


def _minutes(day: datetime.datetime, zone: zoneinfo.ZoneInfo) -> set[int]:
    """The offsets of a zone at the beginning and at the end of a day."""
    ends = (day.astimezone(zone).utcoffset(), (day + datetime.timedelta(days=1)).astimezone(zone).utcoffset())
    return {round(end.total_seconds() / 60) for end in ends if end is not None}
