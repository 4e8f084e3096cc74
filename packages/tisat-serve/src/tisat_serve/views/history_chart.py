"""A stretch of one entity for a picture: values, what was expected, the statistic.

In as many steps as a screen can show.
"""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tisat.gap_filling import take_in
from tisat.series import Series
from tisat.utils.types import Array, Integers
from tisat_serve.engine.row_encoding import ACCEPTED, CODES
from tisat_serve.folder.archive import rows_of
from tisat_serve.structs import ChannelHistory, History
from tisat_serve.views.heatmap import span_of

if TYPE_CHECKING:
    from tisat_serve.engine.group import Group
    from tisat_serve.views.fleet_view import FleetView

MOST_POINTS = 2000
EXPLAINED = 400  # steps at most for which the expectation is asked of the detector
CONTEXT = 400  # rows before the stretch that the detector gets to warm up


def history_chart(
    view: FleetView,
    name: str,
    *,
    start: float | None = None,
    stop: float | None = None,
    points: int = 400,
    channels: int = 8,
) -> History:
    """A stretch of one entity in at most ``points`` steps; the last day unless told.

    The ``channels`` most contributing ones.
    """
    engine = view.engine
    cell = engine.entities.get(name)
    group = engine.groups[cell.group]
    if stop is None and cell.newest > -(2**62):
        stop = cell.newest * 1e-9 + 1e-3
    begin, end = span_of(view, start, stop)
    points = max(1, min(int(points), MOST_POINTS))
    first = int(begin * 1e9)
    width = max(int((end - begin) * 1e9 / points), round((group.watch.period or 0.0) * 1e9), 1)
    steps = max(1, -(-int((end - begin) * 1e9) // width))
    reach = round(CONTEXT * (group.watch.period or 0.0) * 1e9)
    brief, body = rows_of(engine.entities, name, first - reach, first + width * steps)
    taken = brief.status < ACCEPTED
    brief, values = brief.select(taken), body.values[taken]
    times = brief.times
    step = (times - first) // width
    inside = step >= 0
    which = step[inside]
    rows = brief.select(inside)
    order = np.arange(steps)
    left, right = np.searchsorted(which, order, "left"), np.searchsorted(which, order, "right")
    offset = int((~inside).sum())
    columns = np.flatnonzero(right > left)
    alarms = view.alarms(entity=name, start=begin, stop=end, sort="statistic", limit=200)
    attribution = _attribution(view, alarms)
    names = sorted(group.watch.channels, key=lambda one: -attribution.get(one, 0.0))[: max(1, channels)]
    expected, spread = _expectations(group, values, cell.stamps(times), offset + right[columns] - 1)
    lines = []
    for one in names:
        c = group.watch.channels.index(one)
        column = values[inside][:, c]
        low, mean, high = _summary(column, left[columns])
        lines.append(
            ChannelHistory(
                one, attribution.get(one, 0.0), *(_plain(a) for a in (mean, low, high, expected[:, c], spread[:, c]))
            )
        )
    _, _, peak = _summary(rows.statistic, left[columns])
    _, _, ratio = _summary(rows.statistic / rows.threshold, left[columns])
    words = [_worst(rows.status[left[k] : right[k]], rows.active[left[k] : right[k]]) for k in columns]
    pauses = [
        one
        for one in view.pauses()
        if fnmatch.fnmatchcase(name, one.pattern) and one.start < end and (one.every or one.stop > begin)
    ]
    return History(
        entity=name,
        group=cell.group,
        start=begin,
        stop=end,
        step=width * 1e-9,
        rows=int(inside.sum()),
        times=[(first + width * int(k)) * 1e-9 for k in columns],
        ratio=_plain(ratio),
        statistic=_plain(peak),
        threshold=_plain(rows.threshold[right[columns] - 1]),
        status=words,
        channels=lines,
        alarms=alarms,
        pauses=pauses,
    )


def _attribution(view: FleetView, alarms: list[Any]) -> dict[str, float]:
    """Shares of the evidence over the alarms of a stretch."""
    total: dict[str, float] = {}
    for alarm in alarms[:20]:
        for channel, share in view.alarm(alarm.id).shares.items():
            total[channel] = total.get(channel, 0.0) + share
    whole = sum(total.values())
    return {channel: share / whole for channel, share in total.items()} if whole > 0 else {}


def _expectations(group: Group, values: Array, stamps: Any, rows: Integers) -> tuple[Array, Array]:
    """What the detector expected of some rows, and how far off it usually is, in the user's units; NaN where it cannot say."""
    detector = group.watch.detector
    shape = (len(rows), len(group.watch.channels))
    expected, spread = np.full(shape, np.nan), np.full(shape, np.nan)
    if len(rows) == 0 or len(rows) > EXPLAINED or (stamps[1:] <= stamps[:-1]).any():
        return expected, spread
    series = Series(values, timestamps=stamps, channels=group.watch.channels)
    points = detector.points(series, period=group.watch.period)
    filled = take_in(series, period=group.watch.period).filled
    for k, row in enumerate(rows):
        if not np.isnan(points[row]).all():
            why = detector.explain(filled[row], points[row])
            expected[k], spread[k] = why.expected, why.spread
    return expected, spread


def _summary(column: Array, left: Integers) -> tuple[Array, Array, Array]:
    """Least, mean and largest known value of each step, which begins at a row of ``left``; NaN where none is known."""
    known = ~np.isnan(column)
    count = np.add.reduceat(known, left, dtype=np.int64)
    total = np.add.reduceat(np.where(known, column, 0.0), left)
    mean = np.divide(total, count, out=np.full(len(left), np.nan), where=count > 0)
    return np.fmin.reduceat(column, left), mean, np.fmax.reduceat(column, left)


def _worst(status: npt.NDArray[np.uint8], active: npt.NDArray[np.uint8]) -> str:
    if active.any():
        return "alarm"
    for word in ("unusable", "warming up"):
        if (status == CODES[word]).any():
            return word
    return "ok"


def _plain(values: Array) -> list[float | None]:
    return [None if value != value else value for value in np.asarray(values, dtype=np.float64).tolist()]
