"""The fleet at a glance: entities x time, the largest statistic / threshold of each cell, and why there is none where there is none."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from tisat.utils.types import Array, Integers
from tisat_serve.engine.row_encoding import ACCEPTED, CODES, Brief, joined, unpack_brief
from tisat_serve.structs import HeatMap
from tisat_serve.views.wrong_clocks import newest_time

if TYPE_CHECKING:
    from tisat_serve.views.fleet_view import FleetView

DAY = 86400.0
EARLIEST, LATEST = -4e9, 4.2e9  # seconds: in nanoseconds less than 2**63 apart
MOST_STEPS = 400
LETTERS = "-wuca"  # nothing came, warming up, unusable, calm, alarm: the later one wins


def span_of(view: FleetView, start: float | None, stop: float | None) -> tuple[float, float]:
    """The stretch asked for: up to the newest row whose time is not ahead, one day before that, unless told."""
    if stop is None:
        now = view.engine.clock()
        newest = newest_time([cell.at and cell.at * 1e-9 for cell in view.engine.cells.values()], now)
        stop = now if newest is None else newest + 1e-3
    if start is None:
        start = stop - DAY
    first, last = (min(max(float(at), EARLIEST), LATEST) for at in (start, stop))
    return (first, last) if last > first else (first, first + 1.0)


def heat_map(
    view: FleetView,
    *,
    start: float | None = None,
    stop: float | None = None,
    steps: int = 96,
    group: str = "",
    only: Collection[str] | None = None,
) -> HeatMap:
    """Entities x time: the largest statistic / threshold of each cell.

    The last day unless told; of some entities ``only``.
    """
    engine = view.engine
    begin, end = span_of(view, start, stop)
    steps = max(1, min(int(steps), MOST_STEPS))
    first, width = int(begin * 1e9), max(int((end - begin) * 1e9 / steps), 1)
    last = first + width * steps
    infos = [
        info for info in view.entities() if (not group or info.group == group) and (only is None or info.name in only)
    ]
    infos.sort(key=lambda info: info.name)
    place = {info.name: k for k, info in enumerate(infos)}
    ratio = np.full((len(infos), steps), np.nan)
    state = np.zeros((len(infos), steps), dtype=np.int64)
    with engine.lock:
        numbers = {cell.id: place[name] for name, cell in engine.cells.items() if name in place}
        rest = [(place[name], cell.brief()) for name, cell in engine.cells.items() if name in place and cell.times]
        some = "" if only is None else f" AND entity IN ({', '.join(map(str, numbers))})"  # numbers of our own
        pieces = view.store.read(
            f"SELECT entity, rows, threshold, brief FROM history WHERE last >= ? AND first < ?{some}", (first, last)
        )
    parts = [
        (numbers[number], unpack_brief(content, rows, threshold))
        for number, rows, threshold, content in pieces
        if number in numbers
    ]
    parts += rest
    if parts:
        _fill(ratio, state, parts, first, width, steps)
    return HeatMap(
        start=begin,
        stop=end,
        step=width * 1e-9,
        times=[(first + width * k) * 1e-9 for k in range(steps)],
        entities=[info.name for info in infos],
        groups=[info.group for info in infos],
        status=[info.status for info in infos],
        ratio=[[None if value != value else round(value, 4) for value in row] for row in ratio.tolist()],
        state=["".join(LETTERS[code] for code in row) for row in state.tolist()],
    )


def _fill(
    ratio: Array,
    state: Integers,
    parts: list[tuple[int, Brief]],
    first: int,
    width: int,
    steps: int,
) -> None:
    """All pieces at once: the largest ratio and the worst state of each cell."""
    entity = np.repeat([number for number, _ in parts], [len(brief.times) for _, brief in parts])
    times, statistic, status, active, threshold = joined([brief for _, brief in parts])
    step = (times - first) // width
    inside = (step >= 0) & (step < steps) & (status < ACCEPTED)
    cells = entity[inside] * steps + step[inside]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = statistic[inside] / threshold[inside]
    word = np.select(
        [active[inside] > 0, status[inside] == CODES["unusable"], status[inside] == CODES["warming up"]],
        [4, 2, 1],
        default=3,
    )
    known = np.isfinite(value)
    flat = np.full(ratio.size, -np.inf)
    np.maximum.at(flat, cells[known], value[known])
    ratio.reshape(-1)[:] = np.where(np.isfinite(flat), flat, np.nan)
    np.maximum.at(state.reshape(-1), cells, word)
