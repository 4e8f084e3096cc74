"""A time as others read it."""

from __future__ import annotations

import datetime


def say_moment(seconds: float) -> str:
    """A time as others read it: ISO 8601 in UTC.

    Examples
    --------
    >>> say_moment(1770000000.0)
    '2026-02-02T02:40:00.000Z'
    """
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
