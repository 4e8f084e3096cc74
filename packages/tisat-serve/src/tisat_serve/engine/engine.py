"""Rows in, outcomes out, and nothing that was answered is ever lost. There is no network here.

**Order of things.** Rows are read; those that cannot be are refused. The others go into the log, in one transaction that ends
on the disk. Only then are they judged and answered. What follows from the results (alarms, what is to be sent) is
written with the next transaction, or at once where nothing waits. From time to time the state of an entity is saved
together with its piece of history; the log before the oldest state that still needs it is cut off.

**After a kill** states are read and the log is judged again from there. A result depends on the rows of its entity alone, to
the last bit, so it comes out as it was given; what is in the book already is not written twice.

Everything that changes a monitor goes through the log: rows, the end of a reorder window, labels, thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from tisat.errors import InputError
from tisat_serve.alarms.alarm_log import about_silence
from tisat_serve.engine.admission import LONGEST_NAME, Admission
from tisat_serve.engine.entity_state import Cell
from tisat_serve.engine.log_entries import ADOPT, RELEASE
from tisat_serve.engine.persistence import Keeper
from tisat_serve.engine.row_scoring import Judge
from tisat_serve.store import Entry, Mark, Record
from tisat_serve.structs import Outcome, Row

REPLAYED = 4096  # entries judged at once after a restart
_decode = msgspec.msgpack.Decoder(list[Entry]).decode


class Engine(Keeper):
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

    def _open(self) -> None:
        self._admission, self._judge = Admission(self), Judge(self)
        super()._open()
        self._replay()

    def _replay(self) -> None:
        """Judge again what states do not know yet."""
        floor = min((cell.saved for cell in self.cells.values()), default=0)
        batch: list[tuple[int, Entry]] = []
        query = "SELECT seq, count, body FROM log WHERE seq + count > ? ORDER BY seq"
        with self.store.reading() as connection:
            for seq, count, body in connection.execute(query, (floor + 1,)):
                entries = _decode(body)
                if len(entries) != count:
                    raise InputError(
                        f"The log of {str(self.store.folder)!r} must be whole. Entry {seq} is not; restore a backup."
                    )
                for place, entry in enumerate(entries):
                    cell = self._by_id.get(entry[1])
                    if cell is not None and seq + place > cell.saved:
                        batch.append((seq + place, entry))
                if len(batch) >= REPLAYED:
                    self._judge.apply(batch)
                    self.replayed += len(batch)
                    batch = []
        self._judge.apply(batch)
        self.replayed += len(batch)
        self.settle()

    # ------------------------------------------------------------------ rows in, outcomes out

    def ingest(self, rows: Sequence[Row]) -> list[Outcome]:
        """The outcomes of rows, in their order; the rows are on the disk when it returns."""
        found = self.ingest_many([rows])[0]
        self.settle()
        return found

    def ingest_many(self, requests: Sequence[Sequence[Row]], mark: Mark | None = None) -> list[list[Outcome]]:
        """The outcomes of the rows of several requests, in one transaction. :meth:`settle` must follow when nothing waits.

        With a ``mark`` the last request is from a source that can be read again: its rows are taken in the order they have there.
        """
        with self.lock:
            now = self.clock()
            found: list[list[Outcome | None]] = [[None] * len(rows) for rows in requests]
            places: list[tuple[int, int]] = []
            entries: list[list[object]] = []
            fresh: dict[str, tuple[object, ...]] = {}
            for r, rows in enumerate(requests):
                taken = []
                for i, row in enumerate(rows):
                    entry = self._admission.read(row, now, fresh)
                    if isinstance(entry, str):
                        found[r][i] = Outcome(row.entity[:LONGEST_NAME], "refused", reason=entry)
                        self.counts["refused"] += 1
                        if row.entity in self.cells:
                            self.cells[row.entity].refused += 1
                    else:
                        taken.append((entry, i))
                if mark is None or r < len(requests) - 1:
                    taken.sort(key=lambda pair: pair[0][2])  # of one request, in order of time
                entries += [entry for entry, _ in taken]
                places += [(r, i) for _, i in taken]
            if entries or mark is not None:
                self._log(entries, fresh, now, mark)
                first = self._seq - len(entries)
                outcomes = self._judge.apply([(first + k, entry) for k, entry in enumerate(entries)])
                for k, (r, i) in enumerate(places):
                    found[r][i] = outcomes[first + k]
            return [[outcome for outcome in rows if outcome is not None] for rows in found]

    # ------------------------------------------------------------------ from time to time

    def tend(self) -> None:
        """Once in a while: silent entities, rows held too long, the end of the log, old history."""
        with self.lock:
            now, steady = self.clock(), self.steady()
            for cell in self.cells.values():
                group = self.groups[cell.group]
                since = steady - cell.heard
                if cell.held and since > group.lateness + 1.0:
                    self._log([[RELEASE, cell.id]], {}, now)
                    self._judge.apply([(self._seq - 1, [RELEASE, cell.id])])
                if cell.quiet is None and since > (group.silent_after or math.inf):
                    last = cell.at or 0
                    event = about_silence(cell.name, cell.group, last, now - since, now)
                    cell.quiet = event.id
                    self._events.append(event)
        if self.full:
            self._try_room()
        self.settle()
        self._cut()

    def move_on(self) -> bool:
        """Let one entity that is still on a model of before have the one in force; False where there is none."""
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
            if behind is None or self.full:
                return False
            self.command(behind.name, ADOPT, self.own_calibration(behind))
            return True

    def own_calibration(self, cell: Cell) -> int:
        """The calibration of the model in force that an entity should have: its own where somebody gave it one, else the group's."""
        group = self.groups[cell.group]
        found = self.store.read(
            "SELECT max(id) FROM calibrations WHERE grp = ? AND entity = ? AND model = ?",
            (group.name, cell.name, group.model),
        )[0][0]
        return int(found) if found is not None else group.calibration

    def command(self, entity: str, *entry: object) -> None:
        """Let something other than a row happen to an entity, through the log."""
        self.commands([(entity, *entry)])

    def commands(self, items: Sequence[Record]) -> None:
        """The same for many at once: ``(entity, kind, ...)``."""
        with self.lock:
            entries = []
            for entity, *entry in items:
                entries.append([entry[0], self.cell_of(entity).id, *entry[1:]])
            if entries:
                self._log(entries, {}, self.clock())
                first = self._seq - len(entries)
                self._judge.apply([(first + k, entry) for k, entry in enumerate(entries)])
                self.settle()
