"""Many rows of one entity at a time: the code for whole series on stretches of usual rows, the monitor's own on all others.

A row is **usual** where it can be read, lacks nothing, and its time follows the one before at a usual step. Stretches of them go through
the stages of a monitor as arrays, with the state carried on from stretch to stretch; a row that is late, lacks a value, ends a gap or
cannot be read goes through :meth:`tisat.watch.Monitor.update`. Points of a stretch differ from those of single rows by the rounding that
the detector declares; all stages after the points give the same for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from tisat.errors import InputError
from tisat.events import events_from_labels
from tisat.gap_filling import MAX_GAP, PACE_ROWS, Stamp, bounded
from tisat.io.timestamps import EARLIEST, LATEST, Moment, say
from tisat.series import Series, SeriesLike, as_series
from tisat.utils.types import AnyArray, Array, Flags
from tisat.utils.validation import check_same_length
from tisat.watch.alarm_tracker import Stretch
from tisat.watch.row_result import RowResult

if TYPE_CHECKING:
    from tisat.watch.monitor import Monitor
    from tisat.watch.row_intake import RowIntake

BLOCK = 10_000  # rows that are looked at together
LEAST = 200  # usual rows in a row that are worth the code for whole series

Rows: TypeAlias = Sequence[object] | AnyArray
Times: TypeAlias = Sequence[object] | AnyArray | None


@dataclass(frozen=True)
class Read:
    """Rows as they were read."""

    values: Array  # (n, C)
    usual: Flags  # (n,): in itself and after the row before it
    moments: AnyArray | None = None  # (n,): nanoseconds since 1970 or seconds; None without times
    offsets: Sequence[int | None] = ()
    dates: bool = False

    def moment(self, place: int) -> Moment | None:
        """The time of a row."""
        if self.moments is None:
            return None
        return Moment(self.dates, self.moments[place].item(), self.offsets[place])

    def stamp(self, place: int) -> Stamp:
        """The time of a row as alarms carry it."""
        moment = self.moment(place)
        return None if moment is None else say(moment.value, moment.offset, dates=moment.dates)

    def clock(self, rows: slice) -> Array:
        """Local times ``(n,)`` of rows with the same offset, NaN without dates."""
        if self.moments is None or not self.dates:
            return np.full(rows.stop - rows.start, np.nan)
        return self.moments[rows].astype(np.float64) / 1e9 + (self.offsets[rows.start] or 0) * 60.0


def extend(monitor: Monitor, given: Iterable[object], given_times: Iterable[object] | None) -> list[RowResult]:
    """The results on many rows, in order; see the module."""
    table = _table(given)
    if table is not None:
        table = table.in_order(monitor.watch.channels, whose="this monitor")
        given = table.values
        if given_times is None and table.timestamps is not None:
            given_times = [table.stamp(row) for row in range(len(table))]
    rows, times = _sequence(given, 2), None if given_times is None else _sequence(given_times, 1)
    check_same_length(rows, rows if times is None else times, ("rows", "times"), "Monitor.extend")
    results: list[RowResult] = []
    for first in range(0, len(rows), BLOCK):
        some = slice(first, first + BLOCK)
        results += _block(monitor, rows[some], _cut(times, some))
    return results


def _table(given: object) -> Series | None:
    """A series, or a dataframe or column as one; None where these are plain rows."""
    if isinstance(given, Series):
        return given
    if isinstance(given, np.ndarray | list | tuple):
        return None
    from narwhals import dependencies

    tabular = any(test(given) for test in (dependencies.is_into_dataframe, dependencies.is_into_series))
    tabular = tabular or hasattr(given, "collect")  # a lazy frame is refused with what to type
    return as_series(cast("SeriesLike", given), whose="Monitor.extend") if tabular else None


def _cut(times: Times, rows: slice) -> Times:
    return None if times is None else times[rows]


def _sequence(given: Iterable[object], dimensions: int) -> Rows:
    return given if isinstance(given, np.ndarray) and given.ndim == dimensions else list(given)


def _singly(monitor: Monitor, rows: Rows, times: Times) -> list[RowResult]:
    from tisat.watch.fleet import judge_all

    stamps = repeat(None, len(rows)) if times is None else times
    return judge_all([(monitor, row, time) for row, time in zip(rows, stamps, strict=True)])


def leading(monitor: Monitor, rows: Rows, times: Times) -> list[RowResult]:
    """The results on the usual rows that these begin with; none where they are few, and then nothing has changed.

    The pace of the rows is not found to be wrong at any of them.
    """
    intake = monitor._intake
    if times is not None and intake.clock.last is None and all(time is None for time in times):
        times = None
    if len(rows) < LEAST or not _takes_blocks(monitor) or not _begun(intake, times):
        return []
    rows, times = rows[:BLOCK], _cut(times, slice(0, BLOCK))
    read = _read(intake, rows, times)
    count = len(rows) if read.usual.all() else int(np.argmin(read.usual))
    if count < LEAST or not intake.follows_on(read.moment(0)):
        return []
    moments = None if read.moments is None else read.moments[:count]
    count = intake.follow(read.values[:count], moments, read.moment(0))
    return _stretch(monitor, read, slice(0, count), times) if count else []


def _takes_blocks(monitor: Monitor) -> bool:
    stream = monitor.stream
    by_itself = not (monitor._windowed or hasattr(stream, "deviations"))
    return not monitor._intake.counting and bool(getattr(stream, "takes_blocks", by_itself))


def _block(monitor: Monitor, rows: Rows, times: Times) -> list[RowResult]:
    intake = monitor._intake
    if len(rows) < LEAST or not _takes_blocks(monitor):
        return _singly(monitor, rows, times)
    if times is not None and intake.clock.last is None and all(time is None for time in times):
        times = None
    results: list[RowResult] = []
    if not _begun(intake, times):
        head = PACE_ROWS + 1
        results = _singly(monitor, rows[:head], _cut(times, slice(head)))
        rows, times = rows[head:], _cut(times, slice(head, None))
        if not _begun(intake, times):
            return results + _singly(monitor, rows, times)
    read = _read(intake, rows, times)
    usual, done = events_from_labels(read.usual), 0
    for begin, end in usual[np.diff(usual)[:, 0] > LEAST].tolist():
        while done < end:
            # The first usual row goes alone, too: it tells whether those after it follow it.
            alone = slice(done, max(begin, done) + 1)
            results += _singly(monitor, rows[alone], _cut(times, alone))
            done = alone.stop
            if done < end and intake.follows(read.moment(done - 1)):
                here = slice(done, end)
                moments = None if read.moments is None else read.moments[here]
                count = intake.follow(read.values[here], moments, read.moment(done))
                if count:
                    results += _stretch(monitor, read, slice(done, done + count), times)
                done += count
    return results + _singly(monitor, rows[done:], _cut(times, slice(done, None)))


def _begun(intake: RowIntake, times: Times) -> bool:
    """Whether it is known what a usual step is: rows have no times, or one was accepted and the period is known."""
    clock = intake.clock
    if times is None or clock.last is None:
        return times is None and clock.last is None
    return clock.period is not None or len(clock.steps) == PACE_ROWS


def _read(intake: RowIntake, rows: Rows, times: Times) -> Read:
    values, usual = intake.read_many(rows)
    if times is None:
        return Read(values, usual)
    clock, offsets = intake.clock, list[int | None]()
    kind = times.dtype.kind if isinstance(times, np.ndarray) else ""
    if isinstance(times, np.ndarray) and kind == "M" and clock.dates:
        days = times.astype("datetime64[D]")
        usual &= (days > EARLIEST) & (days < LATEST)
        moments, offsets = times.astype("datetime64[ns]").astype(np.int64), [None] * len(times)
    elif isinstance(times, np.ndarray) and kind in "iuf" and not clock.dates:
        moments, offsets = times.astype(np.float64), [None] * len(times)
        usual &= np.isfinite(moments)
    else:
        moments, offsets = np.zeros(len(rows), dtype=np.int64 if clock.dates else np.float64), [None] * len(rows)
        for place, time in enumerate(times):
            try:
                moment = clock.read(time)
            except InputError:
                usual[place] = False
                continue
            moments[place], offsets[place] = moment.value, moment.offset
    with np.errstate(invalid="ignore", over="ignore"):
        steps = np.diff(moments) / (1e9 if clock.dates else 1.0)
    usual_step = clock._usual()
    assert usual_step is not None, "the period is known"
    usual[1:] &= (steps > 0) & (steps <= MAX_GAP * usual_step)
    if len(set(offsets)) > 1:
        usual[1:] &= [a == b for a, b in pairwise(offsets)]
    return Read(values, usual, moments, offsets, clock.dates)


def _stretch(monitor: Monitor, read: Read, rows: slice, times: Times) -> list[RowResult]:
    """The results on usual rows that the intake has taken in."""
    values, stream = read.values[rows], monitor.stream
    framed = bounded(monitor._detector, values)
    if monitor._frame is not None:
        framed = np.column_stack([framed, read.clock(rows)])
    points, deviations = stream.run_with_deviations(framed) if monitor._windowed else (stream.run(framed), None)
    scored = monitor.aggregation.run(points)
    evidence, trace = monitor._run.run(scored)
    monitor.record.run(trace.statistic)
    known = scored.known
    monitor.counts["ok"] += int(known.sum())
    monitor.counts["warming up"] += len(known) - int(known.sum())
    stretch = Stretch(
        first=monitor.rows - len(values), values=values, points=scored.points, evidence=evidence if evidence.ndim == 1 else np.add.reduce(evidence, axis=1),
        trace=trace, known=known, deviations=deviations, stamp=lambda place: read.stamp(rows.start + place),
    )  # fmt: skip
    given = repeat(None, len(values)) if times is None else times[rows]
    results = [
        RowResult(row, "ok" if ok else "warming up", score, told, statistic, threshold, time=time, entity=monitor.name)
        for row, ok, score, told, statistic, threshold, time in zip(
            range(stretch.first, monitor.rows), known.tolist(), scored.scores.tolist(), stretch.evidence.tolist(),
            trace.statistic.tolist(), trace.threshold.tolist(), given, strict=True,
        )
    ]  # fmt: skip
    for told in monitor._course.run_stretch(stretch):
        results[told.place] = replace(
            results[told.place], **{name: value for name, value in told._asdict().items() if name != "place"}
        )
    return results
