"""Let entries of the log have their effect: rows are scored, labels and thresholds reach their monitors; what follows is an event.

A result depends on the rows of its entity alone, to the last bit, whatever is scored with it. Nothing is written here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from tisat.errors import InputError
from tisat.watch.monitor import Monitor
from tisat.watch.row_result import RowResult
from tisat_serve.alarms.alarm_log import Event, event_of_alarm, event_of_channel, worsened
from tisat_serve.engine.entities import Entities
from tisat_serve.engine.entity_state import EntityState
from tisat_serve.engine.group import Group, Model
from tisat_serve.engine.model_switch import switch_model
from tisat_serve.engine.saver import Saver
from tisat_serve.store import ACCEPT, LABEL, RELEASE, ROW, Entry
from tisat_serve.structs import Outcome

TOGETHER = 256  # rows judged at once: windows of more do not fit into a processor's cache
Waiting: TypeAlias = tuple[EntityState, int, int, int | None, bytes, bool]  # a cell, and a row as it holds it


class RowScoring:
    """Applies entries of the log to the monitors of entities.

    Parameters
    ----------
    entities : Entities
    saver : Saver
        Takes the events, and the entities that are to be saved.
    counts : Counter
        Of rows by status.
    clock, steady : callable
    save_rows : int
        After so many rows an entity is to be saved.
    """

    def __init__(
        self,
        entities: Entities,
        saver: Saver,
        counts: Counter[str],
        clock: Callable[[], float],
        steady: Callable[[], float],
        save_rows: int,
    ) -> None:
        self._entities, self._saver, self._counts = entities, saver, counts
        self._clock, self._steady, self.save_rows = clock, steady, save_rows

    def apply(self, entries: Sequence[tuple[int, Entry]]) -> dict[int, Outcome]:
        """Let entries of the log have their effect; outcomes by place in the log."""
        outcomes: dict[int, Outcome] = {}
        ready: dict[str, list[Waiting]] = {name: [] for name in self._entities.groups}
        now, steady = self._clock(), self._steady()
        for seq, entry in entries:
            cell = self._entities.by_id[entry[1]]
            group = self._entities.groups[cell.group]
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
            self._score(group, ready[cell.group], outcomes)
            ready[cell.group] = []
            self._apply_command(cell, group, entry)
        for name, rows in ready.items():
            self._score(self._entities.groups[name], rows, outcomes)
        return outcomes

    def _apply_command(self, cell: EntityState, group: Group, entry: Entry) -> None:
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
                self._counts["labels beyond the record"] += 1
        elif entry[0] == ACCEPT:
            if group.print_of(cell.calibration).startswith(entry[3]):
                self._accept(cell, group, entry[2])
        else:
            place, cell.seq = cell.seq, cell.seq - 1
            self._saver.save([cell])  # a piece of history has one threshold; what follows is not in this state
            cell.seq = place
            if group.model_of[entry[2]] == group.model_of[cell.calibration]:
                fleet.monitors[cell.name] = Monitor.load(group.watches[entry[2]], monitor.to_bytes(), recalibrate=True)
            else:
                self._saver.events += switch_model(self._entities, cell, group, entry[2])
            cell.calibration = entry[2]
            cell.threshold = group.watches[entry[2]].calibration.threshold
        self._saver.mark(cell)

    def _accept(self, cell: EntityState, group: Group, row: int) -> None:
        """Take the level of an alarm's channels for the new normal; the alarm is over."""
        over = group.fleet_of(cell.calibration)[cell.name].accept(row)
        at = cell.at or cell.newest
        self._saver.events += [
            event_of_alarm(one, group.print_of(cell.calibration), cell.group, cell.seq, at) for one in over
        ]
        if over and group.fleet_of(cell.calibration)[cell.name].condition == "calm":
            cell.status = "ok"

    def _score(self, group: Group, rows: list[Waiting], outcomes: dict[int, Outcome]) -> None:
        if not rows:
            return
        if len(group.models) > 1:  # entities follow a refit one by one: those on the same model are scored together
            rows = sorted(rows, key=lambda row: group.model_of[row[0].calibration])
        start = 0
        while start < len(rows):
            number = group.model_of[rows[start][0].calibration]
            stop = start
            while stop < min(len(rows), start + TOGETHER) and group.model_of[rows[stop][0].calibration] == number:
                stop += 1
            model, part = group.models[number], rows[start:stop]
            items = [
                (
                    cell.name,
                    np.frombuffer(values),
                    cell.moment(at, offset),
                    learn,
                )
                for cell, at, _, offset, values, learn in part
            ]
            for (cell, at, seq, _, values, _), verdict in zip(part, model.fleet.judge(items), strict=True):
                cell.add(verdict, at, values, seq)
                self._counts[verdict.status] += 1
                outcomes[seq] = self._outcome(model, cell, verdict, seq, at)
                if len(cell.times) >= self.save_rows:
                    self._saver.mark(cell)
                if cell.quiet is not None:
                    self._end_silence(cell, seq)
            start = stop

    def _outcome(self, model: Model, cell: EntityState, verdict: RowResult, seq: int, at: int) -> Outcome:
        score, statistic, threshold = verdict.score, verdict.statistic, verdict.threshold
        valid = math.isfinite(statistic)
        outcome = Outcome(
            cell.name,
            verdict.status,
            time=at * 1e-9,
            score=score if math.isfinite(score) else None,
            statistic=statistic if valid else None,
            threshold=threshold if math.isfinite(threshold) else None,
            ratio=statistic / threshold if valid and threshold > 0 else None,
            active=verdict.active,
            raised=verdict.raised,
            cleared=verdict.cleared,
            reason=verdict.reason,
        )
        if verdict.alarm is not None:
            event = event_of_alarm(verdict.alarm, model.print, cell.group, seq, at)
            if event.what == "raised" and not verdict.raised:
                event = replace(event, what="grown")
            outcome.alarm = event.id
            self._saver.events.append(event)
            cell.alarm = None if verdict.cleared else verdict.alarm
        elif cell.alarm is not None and (worse := worsened(cell.alarm, statistic)) is not None:
            event = event_of_alarm(worse, model.print, cell.group, seq, at)
            cell.alarm = worse
            self._saver.events.append(replace(event, what="worsened"))
        self._saver.events += [event_of_alarm(one, model.print, cell.group, seq, at) for one in verdict.ended]
        for silence in verdict.silences:
            self._saver.events.append(event_of_channel(silence, model.print, cell.group, seq, at))
        return outcome

    def _end_silence(self, cell: EntityState, seq: int) -> None:
        """Clear the alarm about a silent entity."""
        assert cell.quiet is not None
        now = int(self._clock() * 1e9)
        self._saver.events.append(
            Event(seq, "cleared", cell.quiet, cell.name, cell.group, "silence", now, now, 0.0, {})
        )
        cell.quiet = None
