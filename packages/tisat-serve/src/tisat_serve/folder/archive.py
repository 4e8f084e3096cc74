"""History as it lies in the store: pieces of consecutive rows of an entity, and those that are not there yet."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tisat.utils.types import Array, Flags, Integers
from tisat_serve.engine.row_encoding import ACCEPTED, Body, Brief, joined, unpack_body, unpack_brief
from tisat_serve.store import Record, Store

if TYPE_CHECKING:
    from tisat.watch import Watch
    from tisat_serve.engine.entities import Entities
    from tisat_serve.engine.entity_state import EntityState

FOREVER = 2**63 - 1
WARM = 300  # rows at least that a new monitor is shown


def nanoseconds(start: float | None, stop: float | None) -> tuple[int, int]:
    """A stretch of time as the store keeps times; without an end where none is said."""
    return -FOREVER if start is None else int(start * 1e9), FOREVER if stop is None else int(stop * 1e9)


def _stored(
    entities: Entities, cell: EntityState, columns: str, start: int, stop: int, *, same_model: bool
) -> list[Record]:
    """The pieces of an entity's history that touch ``[start, stop)``."""
    model = entities.groups[cell.group].model_of[cell.calibration]
    query = f"SELECT {columns} FROM history WHERE entity = ? AND last >= ? AND first < ? AND model >= ? AND model <= ? ORDER BY id"
    return entities.store.read(query, (cell.id, start, stop, *((model, model) if same_model else (0, FOREVER))))


def briefs_of(
    entities: Entities, entity: str, start: int = -FOREVER, stop: int = FOREVER, *, same_model: bool = False
) -> Brief:
    """Read times, statistic, status and thresholds of the rows of an entity in ``[start, stop)``, as they were scored.

    ``same_model``: only those that the model it has now has judged.
    """
    cell = entities.get(entity)
    with entities.lock:  # so that no row moves from here to there in between
        found = _stored(entities, cell, "rows, threshold, brief", start, stop, same_model=same_model)
        rest = cell.brief()
    brief: Brief = joined([*(unpack_brief(content, rows, threshold) for rows, threshold, content in found), rest])
    return brief.select((brief.times >= start) & (brief.times < stop))


def rows_of(
    entities: Entities, entity: str, start: int = -FOREVER, stop: int = FOREVER, *, same_model: bool = False
) -> tuple[Brief, Body]:
    """Everything about the rows of an entity in ``[start, stop)``."""
    cell = entities.get(entity)
    with entities.lock:
        found = _stored(entities, cell, "rows, threshold, brief, body", start, stop, same_model=same_model)
        rest = cell.brief(), cell.body(len(entities.groups[cell.group].watch.channels))
    brief: Brief = joined([*(unpack_brief(content, rows, level) for rows, level, content, _ in found), rest[0]])
    body: Body = joined([*(unpack_body(content, rows) for rows, _, _, content in found), rest[1]])
    inside = (brief.times >= start) & (brief.times < stop)
    return brief.select(inside), body.select(inside)


def stretches(keep: Flags, shortest: int) -> list[Integers]:
    """The rows of each run of ``keep`` that is long enough."""
    runs = np.split(np.arange(len(keep)), np.flatnonzero(np.diff(keep)) + 1)
    return [run for run in runs if len(run) >= shortest and keep[run[0]]]


def warm_up_start(store: Store, number: int, watch: Watch) -> int:
    """The time from which on there are enough kept rows of an entity to warm up a new monitor."""
    needed, rows, start = max(WARM, 3 * int(getattr(watch.detector, "window", 0) or 0)), 0, FOREVER
    query = "SELECT rows, first FROM history WHERE entity = ? ORDER BY id DESC LIMIT 200"
    for count, first in store.read(query, (number,)):
        rows, start = rows + count, min(first, start)
        if rows >= needed:
            break
    return start


def taken_rows(
    store: sqlite3.Connection, number: int, start: int, stop: int
) -> Iterator[tuple[Integers, Array, npt.NDArray[np.uint8]]]:
    """Times, values and whether the alarm was on of the rows of an entity that were taken in, piece by piece, from any connection."""
    query = "SELECT rows, brief, body FROM history WHERE entity = ? AND last >= ? AND first < ? ORDER BY id"
    for rows, brief, body in store.execute(query, (number, start, stop)):
        head = unpack_brief(brief, rows)
        taken = (head.status < ACCEPTED) & (head.times >= start) & (head.times < stop)
        yield head.times[taken], unpack_body(body, rows).values[taken], head.active[taken]
