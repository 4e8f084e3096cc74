"""Write what follows from results: alarms, what is to be sent, the states of entities and their pieces of history."""

from __future__ import annotations

import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Sequence

import msgspec

from tisat.alarms.incidents import TOGETHER
from tisat_serve.alarms.alarm_log import Event, Policy, write_event
from tisat_serve.engine.entities import Entities
from tisat_serve.engine.entity_state import EntityState
from tisat_serve.engine.row_encoding import compress
from tisat_serve.store import StoreFullError


class Saver:
    """Events that wait to be written and entities whose state is to be saved.

    Parameters
    ----------
    entities : Entities
    policy : Policy
        Says of whom nobody is told.
    counts : Counter
    clock : callable
    routes : tuple of str
        Sinks that are told of alarms through the outbox.
    """

    def __init__(
        self,
        entities: Entities,
        policy: Policy,
        counts: Counter[str],
        clock: Callable[[], float],
        routes: tuple[str, ...],
    ) -> None:
        self._entities, self._store, self._policy = entities, entities.store, policy
        self._counts, self._clock, self.routes = counts, clock, routes
        self.events: list[Event] = []  # not yet in the store
        self.due: deque[EntityState] = deque()

    def write_events(self, write: sqlite3.Connection, now: float) -> None:
        """Write the events that wait.

        They are to be cleared when the transaction has ended.
        """
        for event in self.events:
            period = self._entities.groups[event.group].watch.period or 60.0
            write_event(write, event, self._policy, self.routes, now, reach=round(TOGETHER * period * 1e9))

    def write_due(self, most: int) -> None:
        """Write the events that wait, and save ``most`` of the states that are due, or a part of a long queue."""
        if self.events:
            with self._store.writing() as write:
                self.write_events(write, self._clock())
            self.events.clear()
        due = [self.due.popleft() for _ in range(min(len(self.due), max(most, len(self.due) // 32)))]
        if due:
            self.save(due)

    def mark(self, cell: EntityState) -> None:
        """Have the state of an entity saved soon."""
        if not cell.due:
            cell.due = True
            self.due.append(cell)

    def drop(self, names: set[str]) -> None:
        """Do not save these entities any more."""
        self.due = deque(cell for cell in self.due if cell.name not in names)

    def save(self, cells: Sequence[EntityState]) -> None:
        """Save the states of entities and their new pieces of history, in one transaction."""
        groups = self._entities.groups
        try:
            with self._store.writing() as write:
                self.write_events(write, self._clock())
                for cell in cells:
                    group = groups[cell.group]
                    state = compress(group.fleet_of(cell.calibration).state_of(cell.name))
                    held_back = msgspec.msgpack.encode(cell.held) if cell.held else None
                    piece = cell.piece()
                    write.execute(
                        "UPDATE entities SET received = ?, saved = ?, calibration = ?, state = ?, held = ? WHERE id = ?",
                        (cell.received, cell.seq, cell.calibration, state, held_back, cell.id),
                    )
                    if piece is not None:
                        write.execute(
                            "INSERT INTO history VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                            (*piece, group.model_of[cell.calibration]),
                        )
        except StoreFullError:
            for cell in cells:
                cell.due = False
                self.mark(cell)
            raise
        self.events.clear()
        self._counts["saves"] += len(cells)
        for cell in cells:
            cell.saved, cell.due = cell.seq, False
            cell.forget()

    def save_all(self) -> None:
        """Save every entity of which the log still holds something that its state does not."""
        unsaved = [cell for cell in self._entities.cells.values() if cell.unsaved]
        for start in range(0, len(unsaved), 64):
            self.save(unsaved[start : start + 64])
        self.due.clear()
