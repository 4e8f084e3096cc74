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
from typing import Any, TypeAlias

import msgspec
import numpy as np

from tisat.errors import InputError
from tisat.io.timestamps import Moment, read_time
from tisat.watch.monitor import Monitor
from tisat.watch.row_result import RowResult
from tisat_serve.alarm_log import Event, about_channel, about_silence, statistical
from tisat_serve.entity_state import Cell
from tisat_serve.group import Group, Model
from tisat_serve.model_switch import succeed
from tisat_serve.persistence import Keeper
from tisat_serve.store import Mark
from tisat_serve.structs import Outcome, Row

ROW, RELEASE, LABEL, ADOPT, ACCEPT = range(5)  # kinds of entries of the log
LONGEST_NAME = 200
TOGETHER = 256  # rows judged at once: windows of more do not fit into a processor's cache
REPLAYED = 4096  # entries judged at once after a restart
Waiting: TypeAlias = tuple[Cell, int, int, int | None, bytes, bool]  # a cell, and a row as it holds it
_decode = msgspec.msgpack.Decoder(list[list[Any]]).decode


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
        super()._open()
        self._replay()

    def _replay(self) -> None:
        """Judge again what states do not know yet."""
        floor = min((cell.saved for cell in self.cells.values()), default=0)
        batch: list[tuple[int, list[Any]]] = []
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
                    self._apply(batch)
                    self.replayed += len(batch)
                    batch = []
        self._apply(batch)
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
            entries: list[list[Any]] = []
            fresh: dict[str, tuple[Any, ...]] = {}
            for r, rows in enumerate(requests):
                taken = []
                for i, row in enumerate(rows):
                    entry = self._read(row, now, fresh)
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
                outcomes = self._apply([(first + k, entry) for k, entry in enumerate(entries)])
                for k, (r, i) in enumerate(places):
                    found[r][i] = outcomes[first + k]
            return [[outcome for outcome in rows if outcome is not None] for rows in found]

    def _read(self, row: Row, now: float, fresh: dict[str, tuple[Any, ...]]) -> list[Any] | str:
        """A row as the log keeps it, or why it is refused."""
        cell = self.cells.get(row.entity)
        if cell is not None:
            number, group, dates = cell.id, self.groups[cell.group], cell.dates
        elif row.entity in fresh:
            number, _, name, dates = fresh[row.entity]
            group = self.groups[name]
        else:
            home = self._home(row)
            if isinstance(home, str):
                return home
            number, group, dates = -1, home, None
        try:
            moment = Moment(dates=True, value=int(now * 1e9), offset=0) if row.time is None else read_time(row.time)
            values: Any = row.values
            if group.ignore_extra and isinstance(values, dict):
                values = {channel: value for channel, value in values.items() if channel in group.known}
            read = group.read(values)
        except InputError as error:
            return str(error)
        if dates is not None and moment.dates != dates:
            return (
                f"The times of rows must be all dates or all numbers. Got {str(row.time)[:40]!r} after the other kind."
            )
        if number < 0:
            number = self._away.get(row.entity, self._next + len(fresh))
            fresh[row.entity] = (number, row.entity, group.name, moment.dates)
        at = int(moment.value) if moment.dates else round(moment.value * 1e9)
        if not -(2**62) < at < 2**63 - 1:
            return f"The time of a row must lie between the years 1824 and 2261. Got {str(row.time)[:40]!r} instead."
        entry = [ROW, number, at, moment.offset, np.ascontiguousarray(read).tobytes()]
        # As the windows stand now: what a row taught is not changed by what somebody says later, nor by a restart.
        return entry if self.policy.learns(row.entity, at) else [*entry, 0]

    def _home(self, row: Row) -> Group | str:
        """The group of a new entity, or why it has none."""
        name = row.entity
        if not name or len(name) > LONGEST_NAME or not name.isprintable():
            return f"The entity of a row must be a printable name of 1 to {LONGEST_NAME} characters. Got {name[:40]!r} instead."
        if name in self._resting:
            return f"The entity {name!r} must find its group {self._resting[name]!r} in the configuration. It is not there now."
        if self.accepts is not None and (why := self.accepts(name)):
            return why
        if len(self.cells) >= self.limits.entities:
            return f"The service must not watch more than {self.limits.entities} entities (limits.entities). {name!r} would be one more."
        if row.group:
            if row.group not in self.groups:
                return f"The group of a row must be one of {', '.join(self.groups)}. Got {row.group[:40]!r} instead."
            return self.groups[row.group]
        home = next((group for group in self.groups.values() if group.owns(name)), None)
        return (
            home
            or f"The entity of a row must fit the pattern of a group. {name!r} fits none of {', '.join(self.groups)}."
        )

    # ------------------------------------------------------------------ judging

    def _apply(self, entries: Sequence[tuple[int, list[Any]]]) -> dict[int, Outcome]:
        """Let entries of the log have their effect; outcomes by place in the log."""
        outcomes: dict[int, Outcome] = {}
        ready: dict[str, list[Waiting]] = {name: [] for name in self.groups}
        now, steady = self.clock(), self.steady()
        for seq, entry in entries:
            cell = self._by_id[entry[1]]
            group = self.groups[cell.group]
            cell.seq = seq
            if entry[0] == ROW:
                _, _, at, offset, values = entry[:5]
                learn = len(entry) == 5
                cell.received, cell.heard = now, steady
                if group.lateness:
                    free = cell.hold((at, seq, offset, values, learn), round(group.lateness * 1e9))
                    outcomes[seq] = Outcome(cell.name, "held", time=at * 1e-9)
                    ready[cell.group] += [(cell, *one) for one in free]
                else:
                    cell.newest = max(cell.newest, at)
                    ready[cell.group].append((cell, at, seq, offset, values, learn))
                continue
            if entry[0] == RELEASE:
                ready[cell.group] += [(cell, *one) for one in cell.release()]
                continue
            self._judge(group, ready[cell.group], outcomes)
            ready[cell.group] = []
            self._other(cell, group, entry)
        for name, rows in ready.items():
            self._judge(self.groups[name], rows, outcomes)
        return outcomes

    def _other(self, cell: Cell, group: Group, entry: list[Any]) -> None:
        fleet = group.fleet_of(cell.calibration)
        monitor = fleet[cell.name]
        if entry[0] == LABEL:
            try:
                if len(entry) < 5 or group.print_of(cell.calibration).startswith(entry[4]):  # rows are its model's own
                    if entry[3] == "new normal":
                        self._accept(cell, group, entry[2])
                    monitor.label(entry[2], entry[3])
            except InputError:
                # So old that the record has let it go: the book still has it.
                self.counts["labels beyond the record"] += 1
        elif entry[0] == ACCEPT:
            if group.print_of(cell.calibration).startswith(entry[3]):
                self._accept(cell, group, entry[2])
        else:
            place, cell.seq = cell.seq, cell.seq - 1
            self._save([cell])  # a piece of history has one threshold; what follows is not in this state
            cell.seq = place
            if group.model_of[entry[2]] == group.model_of[cell.calibration]:
                fleet.monitors[cell.name] = Monitor.restore(
                    group.watches[entry[2]], monitor.to_bytes(), recalibrate=True
                )
            else:
                self._events += succeed(self, cell, group, entry[2])
            cell.calibration = entry[2]
            cell.threshold = group.watches[entry[2]].calibration.threshold
        self._mark(cell)

    def _accept(self, cell: Cell, group: Group, row: int) -> None:
        """Take the level of an alarm's channels for the new normal; the alarm is over."""
        over = group.fleet_of(cell.calibration)[cell.name].accept(row)
        at = cell.at or cell.newest
        self._events += [statistical(one, group.print_of(cell.calibration), cell.group, cell.seq, at) for one in over]
        if over and group.fleet_of(cell.calibration)[cell.name].condition == "calm":
            cell.status = "ok"

    def _judge(self, group: Group, rows: list[Waiting], outcomes: dict[int, Outcome]) -> None:
        if len(group.models) > 1:  # entities follow a refit one by one: those on the same model are judged together
            apart: dict[int, list[Waiting]] = {}
            for row in rows:
                apart.setdefault(group.model_of[row[0].calibration], []).append(row)
        else:
            apart = {group.model: rows}
        for model, some in apart.items():
            for start in range(0, len(some), TOGETHER):
                self._judge_some(group, group.models[model], some[start : start + TOGETHER], outcomes)

    def _judge_some(self, group: Group, model: Model, rows: list[Waiting], outcomes: dict[int, Outcome]) -> None:
        items = [
            (
                cell.name,
                np.frombuffer(values),
                cell.moment(at, offset),
                learn,
            )
            for cell, at, _, offset, values, learn in rows
        ]
        for (cell, at, seq, _, values, _), verdict in zip(rows, model.fleet.judge(items), strict=True):
            cell.add(verdict, at, values, seq)
            self.counts[verdict.status] += 1
            outcomes[seq] = self._outcome(model, cell, verdict, seq, at)
            if len(cell.times) >= self.limits.save_rows:
                self._mark(cell)
            if cell.quiet is not None:
                self._speak(cell, seq)

    def _outcome(self, model: Model, cell: Cell, verdict: RowResult, seq: int, at: int) -> Outcome:
        score, statistic, threshold = verdict.score, verdict.statistic, verdict.threshold
        known = math.isfinite(statistic)
        outcome = Outcome(
            cell.name,
            verdict.status,
            time=at * 1e-9,
            score=score if math.isfinite(score) else None,
            statistic=statistic if known else None,
            threshold=threshold if math.isfinite(threshold) else None,
            ratio=statistic / threshold if known and threshold > 0 else None,
            active=verdict.active,
            raised=verdict.raised,
            cleared=verdict.cleared,
            reason=verdict.reason,
        )
        if verdict.alarm is not None:
            event = statistical(verdict.alarm, model.print, cell.group, seq, at)
            outcome.alarm = event.id
            self._events.append(event)
        self._events += [statistical(one, model.print, cell.group, seq, at) for one in verdict.ended]
        for silence in verdict.silences:
            self._events.append(about_channel(silence, model.print, cell.group, seq, at))
        return outcome

    def _speak(self, cell: Cell, seq: int) -> None:
        """A silent entity says something again."""
        assert cell.quiet is not None
        now = int(self.clock() * 1e9)
        self._events.append(Event(seq, "cleared", cell.quiet, cell.name, cell.group, "silence", now, now, 0.0, {}))
        cell.quiet = None

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
                    self._apply([(self._seq - 1, [RELEASE, cell.id])])
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

    def command(self, entity: str, *entry: Any) -> None:
        """Let something other than a row happen to an entity, through the log."""
        self.commands([(entity, *entry)])

    def commands(self, items: Sequence[tuple[Any, ...]]) -> None:
        """The same for many at once: ``(entity, kind, ...)``."""
        with self.lock:
            entries = []
            for entity, *entry in items:
                entries.append([entry[0], self.cell_of(entity).id, *entry[1:]])
            if entries:
                self._log(entries, {}, self.clock())
                first = self._seq - len(entries)
                self._apply([(first + k, entry) for k, entry in enumerate(entries)])
                self.settle()
