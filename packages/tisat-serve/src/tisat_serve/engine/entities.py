"""The entities of a service: who is watched, in which group, with which monitor, and who is not here now."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence

import msgspec

from tisat.errors import NotFoundError
from tisat.watch.monitor import Monitor
from tisat_serve.engine.entity_state import EntityState
from tisat_serve.engine.group import Group, load_thresholds
from tisat_serve.engine.row_encoding import decompress, unpack_brief
from tisat_serve.store import Record, Store

_ENTITIES = "SELECT id, name, grp, dates, enrolled, received, saved, calibration, state, held FROM entities WHERE retired IS NULL"


class Entities:
    """Entities by name and by number, with their groups.

    Parameters
    ----------
    store : Store
    groups : iterable of Group
        The first whose pattern fits takes a new entity.
    lock : RLock
        Of everything that changes from row to row.
    clock, steady : callable
        Seconds since 1970, and seconds by a clock that never steps.
    """

    def __init__(
        self,
        store: Store,
        groups: Iterable[Group],
        lock: threading.RLock,
        clock: Callable[[], float],
        steady: Callable[[], float],
    ) -> None:
        self.store, self.lock, self._clock, self._steady = store, lock, clock, steady
        self.cells: dict[str, EntityState] = {}
        self.by_id: dict[int, EntityState] = {}
        self.groups: dict[str, Group] = {}
        self.resting: dict[str, str] = {}  # entities whose group is not there now
        self.away: dict[str, int] = {}  # entities that were handed over to another service
        self.next_id = 1
        self.add_groups(list(groups))
        self._restore()

    def add_groups(self, groups: Sequence[Group]) -> None:
        """More groups of entities, all of them or, where one is refused, none."""
        with self.lock:
            for group in groups:
                load_thresholds(self.store, group, self._clock())
            self.groups.update({group.name: group for group in groups})

    def _restore(self) -> None:
        now = self._clock()
        self.away.update(self.store.read("SELECT name, id FROM entities WHERE retired IS NOT NULL"))
        open_silences: dict[str, str] = dict(
            self.store.read("SELECT entity, id FROM alarms WHERE sort = 'silence' AND cleared IS NULL")
        )
        for record in self.store.read(_ENTITIES):
            name, group = record[1:3]
            if group not in self.groups:
                self.resting[name] = group
            else:
                cell = self._restore_entity(record, now)
                cell.quiet = open_silences.get(name)
                cell.received = record[5] if cell.quiet else now
        self.next_id = 1 + (self.store.read("SELECT max(id) FROM entities")[0][0] or 0)
        last = "SELECT coalesce(max(CASE WHEN judged + unusable > 0 THEN id END), max(id)) FROM history GROUP BY entity"  # not of late rows alone
        latest = f"SELECT entity, rows, threshold, brief FROM history WHERE id IN ({last})"
        for number, rows, threshold, content in self.store.read(latest):
            if number in self.by_id:
                self.by_id[number].recall(unpack_brief(content, rows, threshold))
        for cell in self.cells.values():
            calm = self.groups[cell.group].fleet_of(cell.calibration)[cell.name].condition == "calm"
            cell.status = "alarm" if not calm else "ok" if cell.status == "alarm" else cell.status

    def _restore_entity(self, record: Record, now: float) -> EntityState:
        """Go on with an entity as the store has it."""
        number, name, group, dates, enrolled, received, saved, calibration, state, held_back = record
        cell = self.add(EntityState(number, name, group, bool(dates), calibration, received, self._steady()), state)
        cell.enrolled, cell.saved, cell.seq = enrolled, saved, saved
        cell.received = now  # silence is counted from our own return
        if held_back:
            cell.held = [
                (*row[:4], bool(row[4]) if len(row) > 4 else True) for row in msgspec.msgpack.decode(held_back)
            ]
        return cell

    def resume(self, names: Sequence[str], seq: int) -> None:
        """Go on with entities that were let go, from their state in the store, after entry ``seq`` of the log."""
        with self.lock:
            for name in names:
                with self.store.writing() as write:
                    write.execute("UPDATE entities SET retired = NULL WHERE name = ?", (name,))
                cell = self._restore_entity(self.store.read(f"{_ENTITIES} AND name = ?", (name,))[0], self._clock())
                cell.saved = cell.seq = max(cell.saved, seq)
                self.away.pop(name, None)

    def add(self, cell: EntityState, state: bytes | None = None) -> EntityState:
        """Take an entity in, with a monitor of its own: a new one, or one from its state."""
        home = self.groups[cell.group]
        watch = home.watches[cell.calibration]
        monitor = Monitor(watch, name=cell.name) if state is None else Monitor.load(watch, decompress(state))
        home.fleet_of(cell.calibration).monitors[cell.name] = monitor
        cell.threshold, cell.alarm = watch.calibration.threshold, monitor.alarm
        cell.refused = monitor.counts["refused"] + monitor.counts["unconfirmed"]
        cell.late = monitor.counts["late"] + monitor.counts["duplicate"]
        stamp = monitor.last_time
        if stamp is not None:
            cell.at = cell.newest = int(stamp) if cell.dates else round(stamp * 1e9)
        self.cells[cell.name] = self.by_id[cell.id] = cell
        self.away.pop(cell.name, None)
        self.next_id = max(self.next_id, cell.id + 1)
        return cell

    def remove(self, cell: EntityState) -> None:
        """Let an entity go, with its monitor; what the store has of it stays."""
        del self.cells[cell.name], self.by_id[cell.id]
        self.groups[cell.group].fleet_of(cell.calibration).monitors.pop(cell.name, None)

    def write_new(self, write: sqlite3.Connection, records: Iterable[Record], now: float, seq: int) -> None:
        """Write entities that enrol: number, name, group, whether their times are dates."""
        for number, name, group, dates in records:
            write.execute(
                "INSERT INTO entities VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL) ON CONFLICT (name) DO UPDATE SET grp = excluded.grp, "
                "dates = excluded.dates, saved = excluded.saved, calibration = excluded.calibration, state = NULL, held = NULL, retired = NULL",
                (number, name, group, dates, now, now, seq, self.groups[group].calibration),
            )

    def add_new(self, records: Iterable[Record], now: float, seq: int) -> None:
        """Take in the entities of :meth:`write_new`, once they are on the disk."""
        for number, name, group, dates in records:
            cell = self.add(
                EntityState(number, name, group, dates, self.groups[group].calibration, now, self._steady())
            )
            cell.saved = cell.seq = seq

    # ------------------------------------------------------------------ who is there

    def get(self, entity: str) -> EntityState:
        """An entity by its name."""
        cell = self.cells.get(entity)
        if cell is None:
            raise NotFoundError(f"The service must know the entity. Got {entity[:200]!r} instead.")
        return cell

    def status(self, cell: EntityState) -> str:
        """The status of an entity; a channel that is silent is an alarm too."""
        if cell.quiet:
            return "silent"
        return "alarm" if self.groups[cell.group].fleet_of(cell.calibration)[cell.name].silent else cell.status

    def group(self, name: str) -> Group:
        """A group by its name; the first where none is said."""
        group = self.groups.get(name or next(iter(self.groups)))
        if group is None:
            raise NotFoundError(f"The group must be one of {', '.join(self.groups)}. Got {name[:200]!r} instead.")
        return group

    def names_in(self, group: str) -> list[str]:
        """The entities of a group."""
        return [name for name, cell in list(self.cells.items()) if cell.group == group]
