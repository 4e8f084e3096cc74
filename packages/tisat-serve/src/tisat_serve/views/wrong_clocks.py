"""Entities whose clock is far ahead: what is shown of all entities does not end with theirs."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

AHEAD = 3600.0  # seconds ahead of this machine and of most entities after which a clock is wrong


def latest_time(times: Iterable[float], now: float) -> float:
    """Latest time that is not ahead of both this machine's clock and half of the entities.

    Rows of the past and rows of the future are shown alike where they are those of most entities.

    Examples
    --------
    >>> latest_time([100.0, 160.0, 9e9], now=200.0), latest_time([8e9, 8e9, 9e9], now=200.0)
    (3800.0, 8000003600.0)
    """
    known = list(times)
    return max(now, statistics.median_low(known) if known else now) + AHEAD


def newest_time(times: Iterable[float | None], now: float) -> float | None:
    """Largest time that is not ahead.

    Examples
    --------
    >>> newest_time([100.0, None, 9e9], now=200.0)
    100.0
    """
    known = [time for time in times if time is not None]
    latest = latest_time(known, now)
    return max((time for time in known if time <= latest), default=None)
