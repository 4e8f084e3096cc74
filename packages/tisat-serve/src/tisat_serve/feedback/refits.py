"""Refits: another model from the history that was kept, as a proposal with its consequences; nothing changes until somebody takes it.

**What it learns from.** The rows of the group's entities that were taken in, without those of maintenance windows that are not to be
learned from, and without those of alarms; rows of an alarm marked false are normal and stay, and after one marked *new
normal* only what follows its onset counts.

**What it would have done.** The new model judges the stored rows of the group as it would have judged them live (batch and
stream agree), and its alarms are laid beside those in the book. As long as a refit is open it is the **shadow**: it is asked
about the rows that have come since, which it has not seen, and raises nothing.

**By the calendar** (:class:`Schedule`) a refit only ever proposes: somebody looks at its consequences and takes it, or not.
"""

from __future__ import annotations

import json
import threading
import warnings
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tisat.errors import ConflictError, InputError, NotFoundError, TisatError
from tisat.series import Series
from tisat.utils.types import Array, Flags, Integers, JsonDict
from tisat.watch.watch import Watch
from tisat_serve.alarms.alarm_log import in_pauses
from tisat_serve.engine.group import Group, watch_from_bytes, watch_to_bytes
from tisat_serve.engine.row_encoding import ACCEPTED
from tisat_serve.feedback.whatif import WhatIfComparison, book_of, compare_alarms, sentences_of
from tisat_serve.folder.archive import FOREVER, rows_of, stretches
from tisat_serve.structs import Shadow
from tisat_serve.views.wrong_clocks import latest_time
from tisat_serve.worker import ThreadedPart

if TYPE_CHECKING:
    from tisat_serve.engine.engine import Engine
    from tisat_serve.service import Service
    from tisat_serve.views.fleet_view import FleetView

MOST_FITTED = 200_000  # rows a refit learns from, the latest of every entity
MOST_JUDGED = 500_000  # rows its consequences are shown on, the latest of every entity
CONTEXT = 400  # rows before a stretch that the model gets to warm up
SHORTEST = 30  # rows without a break that are worth learning from
LOOK = 60.0  # seconds between two looks at the calendar
Rows = tuple[Integers, Array]


class Refits:
    """Makes refits and says what they would do.

    Parameters
    ----------
    engine : Engine
    view : FleetView
    """

    def __init__(self, engine: Engine, view: FleetView) -> None:
        self.engine, self.view, self.store = engine, view, engine.store
        self._busy = threading.Lock()
        self._models: dict[int, Watch] = {}

    # ------------------------------------------------------------------ making one

    def make(self, home: Group, *, budget: str | None, author: str, reason: str) -> JsonDict:
        """Fit the group's detector again.

        The document of a proposal, whose ``model`` is in the store.
        """
        if not self._busy.acquire(blocking=False):
            raise ConflictError("A refit must be made one at a time. Another one is being made; ask again later.")
        try:
            names = self.engine.entities.names_in(home.name)
            parts, note = self.normal(home, names)
            calibration = home.watches[home.calibration].calibration
            watch = refitted(home.watch, parts, budget or calibration.budget)
            content = watch_to_bytes(watch)
            watch = watch_from_bytes(content)
            with self.store.writing() as write:
                model = int(
                    write.execute(
                        "INSERT INTO models VALUES (NULL, ?, ?, ?, ?, ?, ?)",
                        (home.name, watch.fingerprint(), content, self.engine.clock(), author, reason),
                    ).lastrowid
                    or 0
                )
            result = self.alarms_on_history(home, watch, names, -FOREVER, FOREVER)
        finally:
            self._busy.release()
        lines = [
            *note,
            *(f"On stored history: {line}" for line in sentences_of(result)),
            "Most of these rows are those it was fitted on: the shadow below judges what comes after.",
        ]
        words = [one.label for of in result.book.values() for one in of]
        return {
            "kind": "refit",
            "model": model,
            "since": self.newest(home.name) + 1,
            "threshold_before": calibration.threshold,
            "threshold_after": watch.calibration.threshold,
            "budget": watch.calibration.budget,
            "sentences": lines,
            "false_alarms": sum(word in ("false", "new normal") for word in words),
            "avoided": sum(one.label in ("false", "new normal") for one in result.avoided),
            "true_alarms": words.count("true"),
            "missed": sum(one.label == "true" for one in result.avoided),
            "unlabelled": words.count("unmarked"),
            "rows": result.rows,
            "seen": float(len(result.alarms)),
            "calibration": watch.calibration.to_json(),
        }

    def normal(self, home: Group, names: list[str]) -> tuple[list[Series], list[str]]:
        """Stretches of rows to learn from, and sentences on what was left out."""
        parts: list[Series] = []
        rows_taken = rows_left = 0
        most = max(MOST_FITTED // max(len(names), 1), SHORTEST)
        for name in names:
            cell = self.engine.cells[name]
            times, values = self._rows(name)
            keep = self._learnable(name, times)
            rows_left += int((~keep).sum())
            keep[: max(0, len(keep) - most)] = False
            for part in stretches(keep, SHORTEST):
                stamps = cell.stamps(times[part])
                parts.append(Series(values[part], timestamps=stamps, channels=home.watch.channels, name=name))
                rows_taken += len(part)
        if not parts:
            raise InputError(
                f"A refit of group {home.name!r} must have rows to learn from, {SHORTEST} without a break. The kept history has none; "
                "label alarms that were false, or wait."
            )
        said = [f"Fitted on {rows_taken} rows of {len({part.name for part in parts})} entities."]
        if rows_left:
            said.append(
                f"{rows_left} rows of alarms (but those marked false) and of maintenance windows were left out."
            )
        return parts, said

    def _rows(self, name: str, start: int = -FOREVER, stop: int = FOREVER) -> Rows:
        brief, body = rows_of(self.engine.entities, name, start, stop)
        taken = brief.status < ACCEPTED
        return brief.times[taken], body.values[taken]

    def _learnable(self, name: str, times: Integers) -> Flags:
        keep = np.ones(len(times), dtype=np.bool_)
        for alarm in self.view.alarms(entity=name, sort="statistic", limit=10_000):
            onset = round(alarm.onset * 1e9) - 1000  # seconds as others read them are rounded
            stop = FOREVER if alarm.cleared is None else round(alarm.cleared * 1e9) - 1000
            if alarm.label == "new normal":
                keep[times < onset] = False
            elif alarm.label != "false":
                keep[(times >= onset) & (times < stop)] = False
        keep[in_pauses(self.engine.policy.unlearned(name), times)] = False
        return keep

    # ------------------------------------------------------------------ what it would do

    def alarms_on_history(self, home: Group, watch: Watch, names: list[str], start: int, stop: int) -> WhatIfComparison:
        """The alarms a watch raises on stored rows in ``[start, stop)``, beside those in the book."""
        most = max(MOST_JUDGED // max(len(names), 1), CONTEXT)
        period = round((watch.period or 60.0) * 1e9)
        alarms_of: dict[str, list[tuple[float, float | None]]] = {}
        rows = 0
        first = stop
        for name in names:
            times, values = self._rows(name, max(start - CONTEXT * period, -FOREVER), stop)
            times, values = times[-most:], values[-most:]
            begin = int(np.searchsorted(times, start))
            rows += len(times) - begin
            alarms_of[name] = []
            if len(times) <= begin:
                continue
            first = min(first, int(times[begin]))
            stamps = self.engine.cells[name].stamps(times)
            try:
                alarms = watch.alarms(
                    Series(values, timestamps=stamps, channels=watch.channels, name=name), any_period=True
                )
            except TisatError:
                continue  # nothing of it can be judged
            for alarm in alarms:
                if alarm.raised >= begin:
                    over = None if alarm.cleared is None else float(times[alarm.cleared]) * 1e-9
                    alarms_of[name].append((float(times[alarm.raised]) * 1e-9, over))
        begun = first * 1e-9 - 1e-6
        book = book_of(self.view, names, begun, None) if rows else {name: [] for name in names}
        return compare_alarms(
            {name: [one for one in of if one.raised >= begun] for name, of in book.items()}, alarms_of, rows
        )

    def shadow(self, number: int) -> Shadow:
        """Alarms of an open refit on the rows that came after it; none is raised."""
        found = self.store.read("SELECT grp, document, at FROM proposals WHERE id = ?", (number,))
        if not found:
            raise NotFoundError(f"The proposal must be there. Got {number}, which is not.")
        group, text, _ = found[0]
        document = json.loads(text)
        if document.get("kind") == "refit" and not self.store.read(
            "SELECT 1 FROM models WHERE id = ?", (document["model"],)
        ):
            raise ConflictError(
                f"A shadow must be that of a refit that may still be taken. Proposal {number} was left."
            )
        if document.get("kind") != "refit" or group not in self.engine.groups:
            raise InputError(f"A shadow must be that of a refit. Proposal {number} is about a threshold; see /whatif.")
        home = self.engine.groups[group]
        watch = self.model(int(document["model"]))
        names = self.engine.entities.names_in(group)
        result = self.alarms_on_history(home, watch, names, int(document["since"]), FOREVER)
        return Shadow(
            proposal=number,
            since=document["since"] * 1e-9,
            rows=result.rows,
            in_force=sum(map(len, result.book.values())),
            shadow=len(result.alarms),
            both=sum(one.was is not None for one in result.alarms),
            alarms=result.alarms[:200],
            sentences=sentences_of(result) if result.rows else ["No row has come since."],
        )

    def model(self, number: int) -> Watch:
        """A model of the store."""
        if number not in self._models:
            self._models[number] = watch_from_bytes(
                self.store.read("SELECT body FROM models WHERE id = ?", (number,))[0][0]
            )
        return self._models[number]

    def forget(self, number: int) -> None:
        """Delete a model that was not taken."""
        self._models.pop(number, None)
        with self.store.writing() as write:
            write.execute("DELETE FROM models WHERE id = ? AND id NOT IN (SELECT model FROM calibrations)", (number,))

    def newest(self, group: str) -> int:
        """The time of the latest row of a group that is not ahead."""
        cells = list(self.engine.cells.values())
        times = [cell.newest for cell in cells if cell.group == group and cell.newest > -(2**62)]
        latest = latest_time([time * 1e-9 for time in times], self.engine.clock())
        return max((time for time in times if time * 1e-9 <= latest), default=0)


def refitted(watch: Watch, parts: list[Series], budget: str) -> Watch:
    """The same detector and rule, with their settings, fitted on other rows.

    Its notes are in its calibration.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return watch.refitted(parts, budget=budget)


class Schedule(ThreadedPart):
    """Proposes a refit for every group whose ``refit`` time has passed since the last one, unless one waits already."""

    name = "schedule"
    patience: ClassVar[float] = 60.0  # a refit that is being made is waited for

    def _run(self) -> None:
        while not self._end.wait(LOOK):
            self.propose_due(self._service)

    def propose_due(self, service: Service) -> list[int]:
        """Make what is due; the numbers of the proposals."""
        proposals = []
        engine = service.engine
        for group in list(engine.groups.values()):
            if group.refit is None or not engine.entities.names_in(group.name):
                continue
            query = "SELECT coalesce(max(at), 0), coalesce(sum(state = 'open'), 0) FROM proposals WHERE grp = ? AND document LIKE '%\"kind\": \"refit\"%'"
            last, waiting = engine.store.read(query, (group.name,))[0]
            begun = engine.store.read("SELECT min(at) FROM calibrations WHERE grp = ?", (group.name,))[0][0] or 0.0
            if waiting or engine.clock() - max(last, begun) < group.refit:
                continue
            try:
                proposals.append(service.feedback.refit(group=group.name, author="tisat", reason="scheduled").id)
            except TisatError as error:
                service.say(f"{group.name}: the scheduled refit was not made. {error}")
        return proposals
