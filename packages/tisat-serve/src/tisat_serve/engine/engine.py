"""Rows in, outcomes out, and nothing that was answered is ever lost.

There is no network here.

**Order of things.** Rows are read; those that cannot be are refused (:class:`Admission`). The others go into the log, in one
transaction that ends on the disk (:class:`Log`). Only then are they scored and answered (:class:`RowScoring`). What follows from
the results (alarms, what is to be sent) is written with the next transaction, or at once where nothing waits (:class:`Saver`).
From time to time the state of an entity is saved together with its piece of history; the log before the oldest state that still
needs it is cut off.

**After a kill** states are read (:class:`Entities`) and the log is scored again from there. A result depends on the rows of its
entity alone, to the last bit, so it comes out as it was given; what is in the store already is not written twice.

Everything that changes a monitor goes through the log: rows, the end of a reorder window, labels, thresholds.
"""

from __future__ import annotations

import math
import threading
import time as clocks
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tisat.utils.types import JsonDict
from tisat_serve.alarms.alarm_log import Policy, event_of_silence
from tisat_serve.engine.admission import LONGEST_NAME, Admission
from tisat_serve.engine.entities import Entities
from tisat_serve.engine.entity_state import EntityState
from tisat_serve.engine.group import Group
from tisat_serve.engine.row_scoring import RowScoring
from tisat_serve.engine.saver import Saver
from tisat_serve.store import ADOPT, RELEASE, Entry, Log, Mark, Record, Store, StoreFullError
from tisat_serve.structs import Outcome, Row

REPLAYED = 4096  # entries scored at once after a restart


@dataclass
class Limits:
    """Limits of the engine."""

    entities: int = 20_000
    save_rows: int = 64  # after so many rows an entity's state is saved
    keep_alarms: float = 730 * 86400.0  # seconds for which alarms that are over are kept, with their labels
    keep_journal: float = 730 * 86400.0


class Engine:
    """The watch over groups of entities, kept in a store.

    Parameters
    ----------
    store : Store
    groups : iterable of Group
        The first whose pattern fits takes a new entity.
    limits : Limits, optional
    routes : tuple of str
        Sinks that are told of alarms through the outbox.
    clock : callable
        Seconds since 1970.
    steady : callable, optional
        Seconds by a clock that never steps; the monotonic one, or ``clock`` where that is not the time of this machine.
    """

    def __init__(
        self,
        store: Store,
        groups: Iterable[Group],
        *,
        limits: Limits | None = None,
        routes: tuple[str, ...] = (),
        clock: Callable[[], float] = clocks.time,
        steady: Callable[[], float] | None = None,
    ) -> None:
        self.store, self.clock = store, clock
        self.steady = steady or (clocks.monotonic if clock is clocks.time else clock)
        self.lock = threading.RLock()  # of everything that changes from row to row
        self.counts: Counter[str] = Counter()  # for people and for /metrics
        self.listeners: list[Callable[[JsonDict], None]] = []
        self.limits = limits or Limits()
        self.policy = Policy()
        self.entities = Entities(store, groups, self.lock, clock, self.steady)
        self.groups, self.cells = self.entities.groups, self.entities.cells
        self.reload_policy()
        self.log = Log(store, max((cell.saved for cell in self.cells.values()), default=0))
        self.admission = Admission(self.entities, self.policy, self.limits.entities)
        self.saver = Saver(self.entities, self.policy, self.counts, clock, routes)
        self.scoring = RowScoring(self.entities, self.saver, self.counts, clock, self.steady, self.limits.save_rows)
        self.replayed = 0
        self._replay()

    def _replay(self) -> None:
        """Score again what states do not know yet."""
        floor = min((cell.saved for cell in self.cells.values()), default=0)
        batch: list[tuple[int, Entry]] = []
        for seq, entry in self.log.entries_after(floor):
            cell = self.entities.by_id.get(entry[1])
            if cell is not None and seq > cell.saved:
                batch.append((seq, entry))
                self.replayed += 1
            if len(batch) >= REPLAYED:
                self.scoring.apply(batch)
                batch = []
        self.scoring.apply(batch)
        self.settle()

    def configure(self, limits: Limits, routes: tuple[str, ...]) -> None:
        """Put other limits and sinks in force."""
        self.limits, self.saver.routes = limits, routes
        self.admission.most, self.scoring.save_rows = limits.entities, limits.save_rows

    def reload_policy(self) -> None:
        """Read maintenance windows, suppression rules and patterns again."""
        self.policy.load(*(self.store.records(f"SELECT * FROM {table}") for table in ("pauses", "rules")))
        with self.lock:
            for group in self.groups.values():
                group.load_patterns(self.store)

    # ------------------------------------------------------------------ rows in, outcomes out

    def ingest(self, rows: Sequence[Row]) -> list[Outcome]:
        """The outcomes of rows, in their order; the rows are on the disk when it returns."""
        outcomes = self.ingest_many([rows])[0]
        self.settle()
        return outcomes

    def ingest_many(self, requests: Sequence[Sequence[Row]], mark: Mark | None = None) -> list[list[Outcome]]:
        """The outcomes of the rows of several requests, in one transaction.

        :meth:`settle` must follow when nothing waits.

        With a ``mark`` the last request is from a source that can be read again: its rows are taken in the order they have there.
        """
        with self.lock:
            now = self.clock()
            answers: list[list[Outcome | None]] = [[None] * len(rows) for rows in requests]
            places: list[tuple[int, int]] = []
            entries: list[Entry] = []
            fresh: dict[str, Record] = {}
            for r, rows in enumerate(requests):
                accepted = []
                for i, row in enumerate(rows):
                    entry = self.admission.read(row, now, fresh)
                    if isinstance(entry, str):
                        answers[r][i] = Outcome(row.entity[:LONGEST_NAME], "refused", reason=entry)
                        self.counts["refused"] += 1
                        if row.entity in self.cells:
                            self.cells[row.entity].refused += 1
                    else:
                        accepted.append((entry, i))
                if mark is None or r < len(requests) - 1:
                    accepted.sort(key=lambda pair: pair[0][2])  # of one request, in order of time
                entries += [entry for entry, _ in accepted]
                places += [(r, i) for _, i in accepted]
            if entries or mark is not None:
                first = self.log.next
                outcomes = self._append(entries, fresh, mark)
                for k, (r, i) in enumerate(places):
                    answers[r][i] = outcomes[first + k]
            return [[outcome for outcome in rows if outcome is not None] for rows in answers]

    def _append(
        self, entries: Sequence[Entry], fresh: Mapping[str, Record] | None = None, mark: Mark | None = None
    ) -> dict[int, Outcome]:
        """Write entries to the log, with the events that wait, new entities and how far a source was read; then apply them."""
        now, first = self.clock(), self.log.next
        with self.store.writing() as write:
            if self.saver.events:
                self.saver.write_events(write, now)
            if mark is not None:
                mark.write(write)
            if fresh:
                self.entities.write_new(write, fresh.values(), now, first - 1)
            self.log.write(write, entries)
        self.store.full = False
        self.saver.events.clear()
        if fresh:
            self.entities.add_new(fresh.values(), now, first - 1)
            self.counts["enrolled"] += len(fresh)
        self.log.next += len(entries)
        return self.scoring.apply(list(enumerate(entries, first)))

    def settle(self, *, most: int = 32) -> None:
        """Write events, save the states that are due, notify listeners."""
        with self.lock:
            events = list(self.saver.events)
            if not (events or self.saver.due):
                return
            try:
                self.saver.write_due(most)
            except StoreFullError:
                return
        for event in events:
            about = {"what": event.what, "alarm": event.id, "entity": event.entity, "sort": event.sort}
            self.notify({**about, "at": event.at * 1e-9})

    def notify(self, event: JsonDict) -> None:
        """Notify the listeners of an event."""
        for listener in list(self.listeners):
            listener(event)

    # ------------------------------------------------------------------ from time to time

    def save_while_idle(self, *, most: int = 64) -> None:
        """Nothing waits: save states before they must be, so that a restart has less to score again."""
        with self.lock:
            half = [
                cell for cell in self.cells.values() if not cell.due and 2 * len(cell.times) >= self.limits.save_rows
            ]
            for cell in half[:most]:
                self.saver.mark(cell)
        self.settle(most=most)

    def run_maintenance(self) -> None:
        """Raise alarms on silent entities, release held rows, cut the log."""
        with self.lock:
            now, steady = self.clock(), self.steady()
            for cell in self.cells.values():
                group = self.groups[cell.group]
                since = steady - cell.heard
                if cell.held and since > group.lateness + 1.0:
                    self._append([[RELEASE, cell.id]])
                if cell.quiet is None and since > (group.silent_after or math.inf):
                    last = cell.at or 0
                    event = event_of_silence(cell.name, cell.group, last, now - since, now)
                    cell.quiet = event.id
                    self.saver.events.append(event)
        if self.store.full:
            self.store.try_room()
        self.settle()
        self.cut_log()

    def cut_log(self) -> None:
        """Cut off the log that no state needs."""
        with self.lock:
            self.log.cut(min((cell.saved for cell in self.cells.values() if cell.unsaved), default=self.log.next - 1))

    def switch_next_entity(self) -> bool:
        """Switch one entity to the model in force; False where none is left."""
        with self.lock:
            behind = next(
                (
                    cell
                    for group in self.groups.values()
                    if len(group.models) > 1
                    for cell in self.cells.values()
                    if cell.group == group.name and group.model_of[cell.calibration] != group.model
                ),
                None,
            )
            if behind is None or self.store.full:
                return False
            self.commands([(behind.name, ADOPT, self._calibration_of(behind))])
            return True

    def _calibration_of(self, cell: EntityState) -> int:
        """The calibration of the model in force that an entity should have: its own where somebody gave it one, else the group's."""
        group = self.groups[cell.group]
        own = self.store.read(
            "SELECT max(id) FROM calibrations WHERE grp = ? AND entity = ? AND model = ?",
            (group.name, cell.name, group.model),
        )[0][0]
        return int(own) if own is not None else group.calibration

    def commands(self, items: Sequence[Record]) -> None:
        """Let something other than rows happen to entities, through the log: ``(entity, kind, ...)``."""
        with self.lock:
            entries = [[kind, self.entities.get(entity).id, *values] for entity, kind, *values in items]
            if entries:
                self._append(entries)
                self.settle()

    def close(self) -> None:
        """Save everything; where the disk is full, the log has all of it."""
        with self.lock:
            self.settle()
            if not self.store.full:
                try:
                    self.saver.save_all()
                except StoreFullError:
                    return
