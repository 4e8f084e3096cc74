"""Remove what is not to be kept: an entity with everything about it, and what is older than it is kept."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from tisat.errors import NotFoundError
from tisat_serve.store import Store, file_in

if TYPE_CHECKING:
    from tisat_serve.engine.engine import Engine


def _erase(write: sqlite3.Connection, name: str, now: float, author: str, reason: str) -> int:
    """Delete everything about an entity but the note that it was.

    The number of rows of history.
    """
    record = write.execute("SELECT id FROM entities WHERE name = ?", (name,)).fetchone()
    if record is None:
        raise NotFoundError(f"The service must know the entity. Got {name[:200]!r} instead.")
    rows = write.execute("SELECT coalesce(sum(rows), 0) FROM history WHERE entity = ?", record).fetchone()[0]
    write.execute("DELETE FROM history WHERE entity = ?", record)
    for table in ("labels", "acknowledgements", "outbox"):
        write.execute(f"DELETE FROM {table} WHERE alarm IN (SELECT id FROM alarms WHERE entity = ?)", (name,))
    for table in ("alarms", "calibrations", "proposals", "owners"):
        write.execute(f"DELETE FROM {table} WHERE entity = ?", (name,))
    write.execute("DELETE FROM entities WHERE name = ?", (name,))
    write.execute("INSERT INTO journal VALUES (NULL, ?, ?, ?, ?)", (now, author, f"forget {name}", reason))
    return int(rows)


def forget(engine: Engine, name: str, *, author: str, reason: str = "") -> int:
    """Forget an entity of a running engine: state, history, alarms, labels.

    The number of rows of history.

    A row of it that comes later enrols it afresh.
    """
    with engine.lock:
        engine.settle(most=0)
        cell = engine.cells.get(name)
        engine.saver.events[:] = [event for event in engine.saver.events if event.entity != name]
        with engine.store.writing() as write:
            rows = _erase(write, name, engine.clock(), author, reason)
        if cell is not None:
            rows += len(cell.times)
            engine.saver.drop({name})
            engine.entities.remove(cell)
        engine.entities.away.pop(name, None)
        engine.entities.resting.pop(name, None)
    engine.notify({"what": "forgotten", "entity": name})
    return rows


def forget_in(folder: Path, name: str, *, now: float, author: str, reason: str = "") -> int:
    """Forget an entity in the folder of a service that is stopped."""
    file_in(folder)
    with Store(folder) as store, store.writing() as write:
        return _erase(write, name, now, author, reason)


def forget_old(engine: Engine) -> int:
    """Remove history, alarms that are over and lines of the journal that are older than they are kept; the pieces of history."""
    removed = 0
    with engine.lock:
        ends = {cell.id: (cell.newest, engine.groups[cell.group].retention) for cell in engine.cells.values()}
    now, limits = engine.clock(), engine.limits
    with engine.store.writing() as write:
        for number, (newest, retention) in ends.items():
            removed += write.execute(
                "DELETE FROM history WHERE entity = ? AND last < ?", (number, newest - int(retention * 1e9))
            ).rowcount
        old = "SELECT id FROM alarms WHERE cleared IS NOT NULL AND at < ?"
        for table in ("labels", "acknowledgements", "outbox"):
            write.execute(f"DELETE FROM {table} WHERE alarm IN ({old})", (now - limits.keep_alarms,))
        write.execute("DELETE FROM alarms WHERE cleared IS NOT NULL AND at < ?", (now - limits.keep_alarms,))
        write.execute("DELETE FROM journal WHERE at < ?", (now - limits.keep_journal,))
    return removed
