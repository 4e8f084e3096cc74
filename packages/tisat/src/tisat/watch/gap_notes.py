"""Sentences about jumps in time that are too long to bridge, and the rows after them that have no score."""

from __future__ import annotations

import numpy as np

from tisat.alarms.tally import say_time
from tisat.gap_filling import Stamp, time_flags
from tisat.io.durations import spelt
from tisat.series import Series
from tisat.utils.types import Array


def gap_remark(last: Stamp, stamp: Stamp, seconds: float, context: int | None) -> str:
    """The sentence about the gap that the row at ``stamp`` ends, for a detector that looks back ``context`` rows.

    Examples
    --------
    >>> print(gap_remark("2026-06-01T07:59:00", "2026-06-01T09:00:00", 3660.0, 100))
    no row came for 1.02 h, after 2026-06-01T07:59:00 and before 2026-06-01T09:00:00; the next 100 rows are not scored
    """
    rows = "first rows after it" if context is None else f"next {context} rows" if context > 1 else "next row"
    verb = "is" if context is not None and context <= 1 else "are"
    return f"no row came for {spelt(seconds)}, after {last} and before {stamp}; the {rows} {verb} not scored"


def warm_up_of(detector: object) -> int | None:
    """The rows without a score after a gap; None where that is not known beforehand."""
    context: int | None = getattr(detector, "_context", lambda: None)()
    return None if context is None else max(context, 1)


def gaps_note(series: Series, scores: Array, *, period: float | None) -> str:
    """The sentence about the gaps of a series with these scores; empty where it has none."""
    left_out, begins = time_flags(series, period)
    ends = np.flatnonzero(begins)
    if not len(ends) or series.seconds is None:
        return ""
    kept = np.flatnonzero(~left_out)
    starts = kept[np.searchsorted(kept, ends) - 1]
    lengths = series.seconds[ends] - series.seconds[starts]
    lost = 0
    for begin, stop in zip(ends, [*ends[1:], len(scores)], strict=True):
        scored = np.flatnonzero(~np.isnan(scores[begin:stop]))
        lost += int(scored[0]) if len(scored) else int(stop - begin)

    def words(gap: int) -> str:
        stamp = series.stamp(int(starts[gap]))
        return f"{spelt(float(lengths[gap]))} after {'' if stamp is None else say_time(stamp)}"

    longest = int(np.argmax(lengths))
    where = "" if len(ends) == 1 else f"the first {words(0)}, the longest " if longest else "the first and longest "
    after = f"{lost:,} row{'s' * (lost != 1)} after {'it' if len(ends) == 1 else 'them'}"
    return f"{len(ends)} gap{'s' * (len(ends) != 1)} in time: {where}{words(longest)}; {after} could not be scored."
