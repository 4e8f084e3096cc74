"""Local times of a time zone: the hour that comes twice in autumn, and offsets for the user's own clock."""

from __future__ import annotations

import datetime
import zoneinfo

import numpy as np

from tisat.errors import ParameterError
from tisat.events import events_from_labels
from tisat.io.timestamps import Times
from tisat.utils.near_names import meant
from tisat.utils.types import AnyArray

_QUARTER = 15 * 60 * 10**9  # no zone changes its clock within a quarter of an hour
_UTC = datetime.UTC
_EPOCH = datetime.datetime(1970, 1, 1)


def zone_of(name: str) -> zoneinfo.ZoneInfo:
    """A time zone by name.

    Examples
    --------
    >>> zone_of("Europe/Berlin").key
    'Europe/Berlin'
    """
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        hint = meant(str(name), zoneinfo.available_timezones())
        raise ParameterError(
            f"--timezone must be a time zone such as Europe/Berlin or UTC. Got {name!r} instead.{hint}"
        ) from None


def _minutes(local: datetime.datetime) -> int:
    offset = local.utcoffset()
    assert offset is not None
    return round(offset.total_seconds() / 60)


def offsets_of_local(nanoseconds: int, zone: zoneinfo.ZoneInfo) -> tuple[int, int]:
    """Minutes east of UTC that a local time may mean: the earlier and the later of an hour that comes twice."""
    local = _EPOCH + datetime.timedelta(seconds=nanoseconds // 10**9)
    return _minutes(local.replace(tzinfo=zone)), _minutes(local.replace(tzinfo=zone, fold=1))


def in_zone(times: Times, name: str) -> Times:
    """Times in a zone: local ones are told apart by their order, those with an offset are moved to the zone's own clock.

    Examples
    --------
    >>> local = np.array(["2026-10-25T02:30", "2026-10-25T02:45", "2026-10-25T02:00"], dtype="datetime64[ns]")
    >>> in_zone(Times(local), "Europe/Berlin").offsets.tolist()
    [120, 120, 60]
    """
    zone = zone_of(name)
    if times.values.dtype.kind != "M":
        raise ParameterError(f"--timezone must come with times that are dates. Got numbers, and {name!r}.")
    values = times.values.astype(np.int64)
    quarters, back = np.unique(values // _QUARTER, return_inverse=True)
    if times.offsets is not None:
        moments = [
            _minutes((_EPOCH + datetime.timedelta(seconds=int(q) * 900)).replace(tzinfo=_UTC).astimezone(zone))
            for q in quarters
        ]
        return Times(times.values, np.array(moments, dtype=np.int16)[back], times.note)
    pairs = np.array([offsets_of_local(int(q) * _QUARTER, zone) for q in quarters], dtype=np.int16).reshape(-1, 2)
    first, second = pairs[back, 0], pairs[back, 1]
    offsets: AnyArray = first.copy()
    twice = first > second
    for start, stop in events_from_labels(twice).tolist():
        steps = np.flatnonzero(np.diff(values[start:stop]) <= 0)
        if steps.size:  # the clock went back here
            offsets[start + int(steps[0]) + 1 : stop] = second[start + int(steps[0]) + 1 : stop]
    moved = (values - offsets.astype(np.int64) * 60 * 10**9).view("datetime64[ns]")
    moved[np.isnat(times.values)] = np.datetime64("NaT")  # what is not known stays so
    return Times(moved, offsets, times.note)
