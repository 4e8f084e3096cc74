"""History as it lies in the store: pieces of consecutive rows of an entity, and those that are not there yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tisat.serve.packing import ACCEPTED, STATUSES, Body, Brief, joined, unpack_body, unpack_brief

if TYPE_CHECKING:
    from tisat.serve.cell import Cell
    from tisat.serve.engine import Engine

FOREVER = 2**63 - 1


def _models(engine: Engine, cell: Cell, *, only: bool) -> tuple[int, int]:
    model = engine.groups[cell.group].model_of[cell.calibration]
    return (model, model) if only else (0, FOREVER)


def briefs_of(
    engine: Engine, entity: str, start: int = -FOREVER, stop: int = FOREVER, *, same_model: bool = False
) -> tuple[Brief, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Times, statistic and status of the rows of an entity in ``[start, stop)``, as they were judged, and their thresholds.

    ``same_model``: only those that the model it has now has judged.
    """
    cell = engine.cell_of(entity)
    with engine.lock:  # so that no row moves from here to there in between
        query = "SELECT rows, threshold, brief FROM history WHERE entity = ? AND last >= ? AND first < ? AND model >= ? AND model <= ? ORDER BY id"
        found = engine.store.read(query, (cell.id, start, stop, *_models(engine, cell, only=same_model)))
        rest, threshold = cell.brief(), cell.threshold
    parts = [unpack_brief(content, rows) for rows, _, content in found] + [rest]
    brief: Brief = joined(parts)
    thresholds = np.repeat([row[1] for row in found] + [threshold], [len(part.times) for part in parts])
    inside = (brief.times >= start) & (brief.times < stop)
    if inside.all():
        return brief, thresholds
    return brief.where(inside), thresholds[inside]


def rows_of(
    engine: Engine, entity: str, start: int = -FOREVER, stop: int = FOREVER, *, same_model: bool = False
) -> tuple[Brief, Body]:
    """Everything about the rows of an entity in ``[start, stop)``."""
    cell = engine.cell_of(entity)
    with engine.lock:
        query = "SELECT rows, brief, body FROM history WHERE entity = ? AND last >= ? AND first < ? AND model >= ? AND model <= ? ORDER BY id"
        found = engine.store.read(query, (cell.id, start, stop, *_models(engine, cell, only=same_model)))
        rest = (cell.brief(), cell.body()) if cell.times else None
    channels = len(engine.groups[cell.group].watch.channels)
    briefs = [unpack_brief(content, rows) for rows, content, _ in found]
    bodies = [unpack_body(content, rows) for rows, _, content in found]
    if rest is not None:
        briefs.append(rest[0])
        bodies.append(rest[1])
    if not briefs:
        empty = np.empty(0)
        whole = np.empty(0, dtype=np.int64)
        return Brief(whole, empty, np.empty(0, np.uint8), np.empty(0, np.uint8)), Body(
            np.empty((0, channels)), empty, empty, whole, whole
        )
    brief: Brief = joined(briefs)
    body: Body = joined(bodies)
    inside = (brief.times >= start) & (brief.times < stop)
    return brief.where(inside), body.where(inside)


def verdict_lines(engine: Engine) -> list[bytes]:
    """The verdicts on the rows that were taken in, one line each, by entity and row: the same to the bit after any restart.

    Rows that were left out (sent twice, say, by a client that got no answer) change nothing and are not in it.
    """
    lines = []
    for name in sorted(engine.cells):
        brief, body = rows_of(engine, name)
        for k in np.flatnonzero(brief.status < ACCEPTED):
            numbers = (body.score[k], body.evidence[k], brief.statistic[k])
            said = " ".join(float(number).hex() for number in numbers)
            text = (
                f"{name} {brief.times[k]} {STATUSES[brief.status[k]]} {int(body.row[k])} {int(brief.active[k])} {said}"
            )
            lines.append(text.encode())
    return lines
