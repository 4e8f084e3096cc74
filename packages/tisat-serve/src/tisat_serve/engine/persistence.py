"""What the engine keeps on the disk, and how it begins again: states, pieces of history, the log and its end."""

from __future__ import annotations

import json
import sqlite3
import threading
import time as clocks
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from tisat.alarms.calibration import Calibration
from tisat.errors import InputError, NotFoundError
from tisat.utils.types import JsonDict
from tisat.watch.monitor import Monitor
from tisat_serve.alarms.alarm_log import Event, Policy, write_event
from tisat_serve.engine.entity_state import Cell
from tisat_serve.engine.group import FIRST, Group
from tisat_serve.engine.row_encoding import squeeze, unpack_brief, unsqueeze
from tisat_serve.store import Entry, Mark, Record, Store, StoreFullError

TOGETHER = 10  # sampling periods between the beginnings of alarms that are one incident
ROOM = 1 << 18  # characters that must find room before a full disk is believed to be one no more
_ENTITIES = "SELECT id, name, grp, dates, enrolled, received, saved, calibration, state, held FROM entities WHERE retired IS NULL"
_encode = msgspec.msgpack.Encoder().encode


@dataclass
class Limits:
    """What the service takes at most."""

    entities: int = 20_000
    save_rows: int = 64  # after so many rows an entity's state is saved
    keep_alarms: float = 730 * 86400.0  # seconds for which alarms that are over are kept, with their labels
    keep_journal: float = 730 * 86400.0


def add_calibration(
    write: sqlite3.Connection,
    group: str,
    entity: str | None,
    calibration: Calibration,
    author: str,
    reason: str,
    model: int,
    at: float,
) -> int:
    """Keep a threshold with its budget; its number."""
    values = (group, entity, json.dumps(calibration.to_json()), at, author, reason, model)
    return write.execute("INSERT INTO calibrations VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", values).lastrowid or 0


class Keeper:
    """The part of an engine that writes and reads its store; :class:`tisat_serve.engine.engine.Engine` says what the parameters are."""

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
        self.steady = steady or (clocks.monotonic if clock is clocks.time else clock)
        self.store, self.limits, self.routes, self.clock = store, limits or Limits(), routes, clock
        self.groups = {group.name: group for group in groups}
        self.lock = threading.RLock()  # of everything that changes from row to row
        self.cells: dict[str, Cell] = {}
        self._by_id: dict[int, Cell] = {}
        self.counts: Counter[str] = Counter()  # for people and for /metrics
        self.policy = Policy()
        self.full = False  # the disk is full
        self.accepts: Callable[[str], str] | None = None  # why an entity is not for us; empty where it is
        self.listeners: list[Callable[[JsonDict], None]] = []
        self._events: list[Event] = []  # not yet in the book
        self._due: deque[Cell] = deque()  # entities whose state is to be saved
        self._seq = 1
        self.replayed = 0
        self._next = 1
        self._resting: dict[str, str] = {}  # entities whose group is not there now
        self._away: dict[str, int] = {}  # entities that were handed over to another service
        self._open()

    # ------------------------------------------------------------------ beginning

    def _open(self) -> None:
        for group in self.groups.values():
            self._prepare(group)
        self.reload_policy()
        self._restore()

    def add_groups(self, groups: Sequence[Group]) -> None:
        """More groups of entities, all of them or, where one is refused, none."""
        with self.lock:
            for group in groups:
                self._prepare(group)
            self.groups.update({group.name: group for group in groups})

    def _prepare(self, group: Group) -> None:
        """The thresholds of a group, in force or kept."""
        store = self.store
        known = store.meta(f"model:{group.name}")
        if known and known != group.models[FIRST].print:
            raise InputError(
                f"The folder {str(store.folder)!r} must be used with the model it began with. Group {group.name!r} has another model now; "
                "give the old one, or move on to the new one with tisat serve upgrade."
            )
        if not store.read("SELECT 1 FROM calibrations WHERE grp = ? AND entity IS NULL", (group.name,)):
            self._first_calibration(group)
        for number, entity, document, model in store.read(
            "SELECT id, entity, document, model FROM calibrations WHERE grp = ? AND model >= 0 ORDER BY id",
            (group.name,),
        ):
            self._model(group, model)
            group.watch_at(number, Calibration.from_json(json.loads(document)), model)
            if entity is None:
                group.force(int(number))

    def _model(self, group: Group, number: int) -> None:
        """Have a model of a group ready."""
        if number not in group.models:
            group.add_model(number, self.store.read("SELECT body FROM models WHERE id = ?", (number,))[0][0])

    def _first_calibration(self, group: Group) -> None:
        with self.store.writing() as write:
            known = {"model": group.models[FIRST].print, "channels": json.dumps(group.watch.channels)}
            rows = [(f"{what}:{group.name}", value) for what, value in known.items()]
            write.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)
            self.add_calibration(write, group.name, None, group.watch.calibration, "tisat", "the model's own")

    def add_calibration(
        self,
        write: sqlite3.Connection,
        group: str,
        entity: str | None,
        calibration: Calibration,
        author: str,
        reason: str,
        model: int = FIRST,
    ) -> int:
        """Keep a threshold with its budget; its number."""
        return add_calibration(write, group, entity, calibration, author, reason, model, self.clock())

    def reload_policy(self) -> None:
        """Read maintenance windows, suppression rules and patterns again."""
        self.policy.load(*(self.store.records(f"SELECT * FROM {table}") for table in ("pauses", "rules", "patterns")))

    def _restore(self) -> None:
        now = self.clock()
        self._away = dict(self.store.read("SELECT name, id FROM entities WHERE retired IS NOT NULL"))
        open_silences: dict[str, str] = dict(
            self.store.read("SELECT entity, id FROM alarms WHERE sort = 'silence' AND cleared IS NULL")
        )
        for record in self.store.read(_ENTITIES):
            name, group = record[1:3]
            if group not in self.groups:
                self._resting[name] = group
            else:
                cell = self._begin(record, now)
                cell.quiet = open_silences.get(name)
                cell.received = record[5] if cell.quiet else now
        cut = self.store.read("SELECT max(seq + count) FROM log")[0][0] or 1
        self._seq = max(cut, 1 + max((cell.saved for cell in self.cells.values()), default=0))
        self._next = 1 + (self.store.read("SELECT max(id) FROM entities")[0][0] or 0)
        latest = "SELECT entity, rows, threshold, brief FROM history WHERE id IN (SELECT max(id) FROM history GROUP BY entity)"
        for number, rows, threshold, content in self.store.read(latest):
            if number in self._by_id:
                self._by_id[number].recall(unpack_brief(content, rows, threshold))
        for cell in self.cells.values():
            calm = self.groups[cell.group].fleet_of(cell.calibration)[cell.name].condition == "calm"
            cell.status = "alarm" if not calm else "ok" if cell.status == "alarm" else cell.status

    def _begin(self, record: Record, now: float) -> Cell:
        """Go on with an entity as the store has it."""
        number, name, group, dates, enrolled, received, saved, calibration, state, held = record
        cell = self._enrol(Cell(number, name, group, bool(dates), calibration, received, self.steady()), state)
        cell.enrolled, cell.saved, cell.seq = enrolled, saved, saved
        cell.received = now  # silence is counted from our own return
        if held:
            cell.held = [(*row[:4], bool(row[4]) if len(row) > 4 else True) for row in msgspec.msgpack.decode(held)]
        return cell

    def wake(self, names: Sequence[str]) -> None:
        """Go on with entities that were let go, from their state in the store."""
        with self.lock:
            for name in names:
                with self.store.writing() as write:
                    write.execute("UPDATE entities SET retired = NULL WHERE name = ?", (name,))
                cell = self._begin(self.store.read(f"{_ENTITIES} AND name = ?", (name,))[0], self.clock())
                cell.saved = cell.seq = max(cell.saved, self._seq - 1)
                self._away.pop(name, None)

    def _enrol(self, cell: Cell, state: bytes | None = None) -> Cell:
        """Take an entity in, with a monitor of its own: a new one, or one from its state."""
        home = self.groups[cell.group]
        watch = home.watches[cell.calibration]
        monitor = Monitor(watch, name=cell.name) if state is None else Monitor.load(watch, unsqueeze(state))
        home.fleet_of(cell.calibration).monitors[cell.name] = monitor
        cell.threshold = watch.calibration.threshold
        cell.refused = monitor.counts["refused"] + monitor.counts["unconfirmed"]
        cell.late = monitor.counts["late"] + monitor.counts["duplicate"]
        stamp = monitor.last_time
        if stamp is not None:
            cell.at = cell.newest = int(stamp) if cell.dates else round(stamp * 1e9)
        self.cells[cell.name] = self._by_id[cell.id] = cell
        return cell

    # ------------------------------------------------------------------ who is there

    def cell_of(self, entity: str) -> Cell:
        """What is held of an entity, by its name."""
        cell = self.cells.get(entity)
        if cell is None:
            raise NotFoundError(f"The service must know the entity. Got {entity[:200]!r} instead.")
        return cell

    def group_of(self, name: str) -> Group:
        """A group by its name; the first where none is said."""
        group = self.groups.get(name or next(iter(self.groups)))
        if group is None:
            raise NotFoundError(f"The group must be one of {', '.join(self.groups)}. Got {name[:200]!r} instead.")
        return group

    def names_of(self, group: str) -> list[str]:
        """The entities of a group."""
        return [name for name, cell in list(self.cells.items()) if cell.group == group]

    # ------------------------------------------------------------------ the log

    def _log(self, entries: list[Entry], fresh: Mapping[str, Record], now: float, marks: Mark | None = None) -> None:
        """Write entries, and what waits to be written, to the disk; with them how far a source was read."""
        try:
            with self.store.writing() as write:
                self._write_events(write, now)
                if marks is not None:
                    marks.write(write)
                for number, name, group, dates in fresh.values():
                    calibration = self.groups[group].calibration
                    write.execute(
                        "INSERT INTO entities VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL) ON CONFLICT (name) DO UPDATE SET grp = excluded.grp, "
                        "dates = excluded.dates, saved = excluded.saved, calibration = excluded.calibration, state = NULL, held = NULL, retired = NULL",
                        (number, name, group, dates, now, now, self._seq - 1, calibration),
                    )
                if entries:
                    write.execute("INSERT INTO log VALUES (?, ?, ?)", (self._seq, len(entries), _encode(entries)))
        except StoreFullError:
            self.full = True
            raise
        self.full = False
        self._events.clear()
        for number, name, group, dates in fresh.values():
            home = self.groups[group].calibration
            cell = self._enrol(Cell(number, name, group, dates, home, now, self.steady()))
            cell.saved = cell.seq = self._seq - 1
            self._away.pop(name, None)
            self.counts["enrolled"] += 1
            self._next = max(self._next, number + 1)
        self._seq += len(entries)

    # ------------------------------------------------------------------ writing down what follows

    def _write_events(self, write: sqlite3.Connection, now: float) -> None:
        for event in self._events:
            period = self.groups[event.group].watch.period or 60.0
            write_event(write, event, self.policy, self.routes, now, reach=round(TOGETHER * period * 1e9))

    def settle(self, *, most: int = 32) -> None:
        """Write what follows from the results, save the states that are due, tell those who listen."""
        with self.lock:
            told = list(self._events)
            try:
                if self._events:
                    with self.store.writing() as write:
                        self._write_events(write, self.clock())
                    self._events.clear()
                due = [self._due.popleft() for _ in range(min(len(self._due), max(most, len(self._due) // 32)))]
                if due:
                    self._save(due)
            except StoreFullError:
                self.full = True
                return
        for event in told:
            about = {"what": event.what, "alarm": event.id, "entity": event.entity, "sort": event.sort}
            self.tell({**about, "at": event.at * 1e-9})

    def save_while_idle(self, *, most: int = 64) -> None:
        """Nothing waits: save states before they must be, so that a restart has less to judge again."""
        with self.lock:
            some = [
                cell for cell in self.cells.values() if not cell.due and 2 * len(cell.times) >= self.limits.save_rows
            ]
            for cell in some[:most]:
                self._mark(cell)
        self.settle(most=most)

    def _mark(self, cell: Cell) -> None:
        if not cell.due:
            cell.due = True
            self._due.append(cell)

    def _save(self, cells: Sequence[Cell]) -> None:
        """The states of entities and their new pieces of history, in one transaction."""
        now = self.clock()
        done = []
        try:
            with self.store.writing() as write:
                self._write_events(write, now)
                for cell in cells:
                    state = squeeze(self.groups[cell.group].fleet_of(cell.calibration).state_of(cell.name))
                    held = msgspec.msgpack.encode(cell.held) if cell.held else None
                    piece = cell.piece()
                    write.execute(
                        "UPDATE entities SET received = ?, saved = ?, calibration = ?, state = ?, held = ? WHERE id = ?",
                        (cell.received, cell.seq, cell.calibration, state, held, cell.id),
                    )
                    if piece is not None:
                        write.execute(
                            "INSERT INTO history VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                            (*piece, self.groups[cell.group].model_of[cell.calibration]),
                        )
                    done.append(cell)
        except StoreFullError:
            for cell in cells:
                cell.due = False
                self._mark(cell)
            raise
        self._events.clear()
        self.counts["saves"] += len(done)
        for cell in done:
            cell.saved, cell.due = cell.seq, False
            cell.forget()

    def _try_room(self) -> None:
        """Whether there is room on the disk again."""
        try:
            with self.store.writing() as write:
                write.execute("INSERT OR REPLACE INTO meta VALUES ('room', ?)", ("x" * ROOM,))
            with self.store.writing() as write:
                write.execute("DELETE FROM meta WHERE key = 'room'")
            self.full = False
        except StoreFullError:
            self.full = True

    def tell(self, event: JsonDict) -> None:
        """Tell those who listen."""
        for listener in list(self.listeners):
            listener(event)

    def _cut(self) -> None:
        """Cut off the log that no state needs, and history that is older than it is kept."""
        with self.lock:
            needed = min((cell.saved for cell in self.cells.values() if cell.unsaved), default=self._seq - 1)
            last = self.store.read("SELECT max(seq) FROM log")[0][0]
            first = self.store.read("SELECT min(seq + count) FROM log")[0][0]
            if last is not None and first is not None and first - 1 <= needed:
                with self.store.writing() as write:
                    write.execute("DELETE FROM log WHERE seq + count - 1 <= ? AND seq < ?", (needed, last))

    def close(self) -> None:
        """Save everything."""
        with self.lock:
            try:
                self.settle()
                rest = [cell for cell in self.cells.values() if cell.unsaved]
                for start in range(0, len(rest), 64):
                    self._save(rest[start : start + 64])
                self._due.clear()
            except StoreFullError:
                self.full = True  # the log has all of it
