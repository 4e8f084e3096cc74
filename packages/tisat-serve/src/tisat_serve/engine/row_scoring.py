"""Let entries of the log have their effect: rows are judged, labels and thresholds reach their monitors; what follows is an event.

A result depends on the rows of its entity alone, to the last bit, whatever is judged with it. Nothing is written here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tisat.errors import InputError
from tisat.watch.monitor import Monitor
from tisat.watch.row_result import RowResult
from tisat_serve.alarms.alarm_log import Event, about_channel, statistical
from tisat_serve.engine.entity_state import Cell
from tisat_serve.engine.group import Group, Model
from tisat_serve.engine.log_entries import ACCEPT, LABEL, RELEASE, ROW
from tisat_serve.engine.model_switch import succeed
from tisat_serve.store import Entry
from tisat_serve.structs import Outcome

if TYPE_CHECKING:
    from tisat_serve.engine.engine import Engine

TOGETHER = 256  # rows judged at once: windows of more do not fit into a processor's cache
Waiting: TypeAlias = tuple[Cell, int, int, int | None, bytes, bool]  # a cell, and a row as it holds it


class Judge:
    """Judges rows for an engine.

    Parameters
    ----------
    engine : Engine
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def apply(self, entries: Sequence[tuple[int, Entry]]) -> dict[int, Outcome]:
        """Let entries of the log have their effect; outcomes by place in the log."""
        outcomes: dict[int, Outcome] = {}
        ready: dict[str, list[Waiting]] = {name: [] for name in self._engine.groups}
        now, steady = self._engine.clock(), self._engine.steady()
        for seq, entry in entries:
            cell = self._engine._by_id[entry[1]]
            group = self._engine.groups[cell.group]
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
            self._judge(self._engine.groups[name], rows, outcomes)
        return outcomes

    def _other(self, cell: Cell, group: Group, entry: Entry) -> None:
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
                self._engine.counts["labels beyond the record"] += 1
        elif entry[0] == ACCEPT:
            if group.print_of(cell.calibration).startswith(entry[3]):
                self._accept(cell, group, entry[2])
        else:
            place, cell.seq = cell.seq, cell.seq - 1
            self._engine._save([cell])  # a piece of history has one threshold; what follows is not in this state
            cell.seq = place
            if group.model_of[entry[2]] == group.model_of[cell.calibration]:
                fleet.monitors[cell.name] = Monitor.load(group.watches[entry[2]], monitor.to_bytes(), recalibrate=True)
            else:
                self._engine._events += succeed(self._engine, cell, group, entry[2])
            cell.calibration = entry[2]
            cell.threshold = group.watches[entry[2]].calibration.threshold
        self._engine._mark(cell)

    def _accept(self, cell: Cell, group: Group, row: int) -> None:
        """Take the level of an alarm's channels for the new normal; the alarm is over."""
        over = group.fleet_of(cell.calibration)[cell.name].accept(row)
        at = cell.at or cell.newest
        self._engine._events += [
            statistical(one, group.print_of(cell.calibration), cell.group, cell.seq, at) for one in over
        ]
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
                self._judge_together(group, group.models[model], some[start : start + TOGETHER], outcomes)

    def _judge_together(self, group: Group, model: Model, rows: list[Waiting], outcomes: dict[int, Outcome]) -> None:
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
            self._engine.counts[verdict.status] += 1
            outcomes[seq] = self._outcome(model, cell, verdict, seq, at)
            if len(cell.times) >= self._engine.limits.save_rows:
                self._engine._mark(cell)
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
            self._engine._events.append(event)
        self._engine._events += [statistical(one, model.print, cell.group, seq, at) for one in verdict.ended]
        for silence in verdict.silences:
            self._engine._events.append(about_channel(silence, model.print, cell.group, seq, at))
        return outcome

    def _speak(self, cell: Cell, seq: int) -> None:
        """A silent entity says something again."""
        assert cell.quiet is not None
        now = int(self._engine.clock() * 1e9)
        self._engine._events.append(
            Event(seq, "cleared", cell.quiet, cell.name, cell.group, "silence", now, now, 0.0, {})
        )
        cell.quiet = None
