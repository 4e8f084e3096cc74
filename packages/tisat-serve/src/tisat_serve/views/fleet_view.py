"""What can be asked of a running service, without changing anything: the one side a console, a script and the HTTP interface use.

Times are seconds since 1970 (or on an entity's own clock). Everything comes back as the types of :mod:`tisat_serve.structs`.
"""

from __future__ import annotations

import fnmatch
import json
import math
from typing import Any

import msgspec

from tisat.alarms.alarms import say_time
from tisat.errors import NotFoundError
from tisat.io.durations import spelt
from tisat.utils.types import JsonDict
from tisat_serve import structs
from tisat_serve.alarms import alarm_groups, ledger
from tisat_serve.alarms.alarm_log import MERGED, moment_of, severity_of, suppression_of
from tisat_serve.engine.engine import Engine
from tisat_serve.engine.entity_state import EntityState
from tisat_serve.feedback import whatif
from tisat_serve.folder.archive import nanoseconds
from tisat_serve.views import heatmap as heat
from tisat_serve.views.history_chart import history_chart
from tisat_serve.views.wrong_clocks import latest_time

_ALARMS = (
    "SELECT alarms.*, coalesce((SELECT word FROM labels WHERE labels.alarm = alarms.id ORDER BY labels.id DESC LIMIT 1), 'unmarked') "
    "AS label, coalesce((SELECT author FROM acknowledgements WHERE alarm = alarms.id ORDER BY id DESC LIMIT 1), '') AS acknowledged, "
    "(SELECT until FROM acknowledgements WHERE alarm = alarms.id ORDER BY id DESC LIMIT 1) AS snoozed FROM alarms"
)
_LAST_CALLED = " AND sort != 'silence' ORDER BY sort = 'statistic', coalesce(json_extract(document, '$.state'), '') = 'merged' DESC, raised"  # the last one stays
NS = 1e-9
COUNTS = ("false_alarms", "avoided", "true_alarms", "missed", "unlabelled", "rows", "seen")  # of a proposal


class FleetView:
    """The read side.

    Parameters
    ----------
    engine : Engine
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.store = engine.store

    # ------------------------------------------------------------------ entities

    def entities(self, *, search: str = "", status: str = "") -> list[structs.EntityInfo]:
        """All entities, the highest ratio first.

        Those whose name holds ``search`` and that are in ``status``.
        """
        engine = self.engine
        open_alarms: dict[str, str] = dict(
            self.store.read("SELECT entity, id FROM alarms WHERE cleared IS NULL" + _LAST_CALLED)
        )
        latest = self._latest()
        with engine.lock:
            entities = [
                self._entity(cell, open_alarms, latest)
                for cell in engine.cells.values()
                if search.lower() in cell.name.lower()
            ]
        entities = [one for one in entities if not status or one.status == status]
        return sorted(entities, key=lambda one: (-(one.ratio or 0.0), one.name))

    def entity(self, name: str) -> structs.EntityInfo:
        """One entity."""
        cell = self.engine.entities.get(name)
        records = self.store.read(
            "SELECT entity, id FROM alarms WHERE entity = ? AND cleared IS NULL" + _LAST_CALLED,
            (name,),
        )
        latest = self._latest()
        with self.engine.lock:
            return self._entity(cell, dict(records), latest)

    def _latest(self) -> float:
        """The latest time of a row that is not ahead."""
        times = [cell.at * NS for cell in list(self.engine.cells.values()) if cell.at is not None]
        return latest_time(times, self.engine.clock())

    def ahead(self) -> list[str]:
        """Entities whose clock is ahead of this machine's and of most others."""
        latest = self._latest()
        cells = list(self.engine.cells.values())
        return [cell.name for cell in cells if cell.at is not None and cell.at * NS > latest]

    def _entity(self, cell: EntityState, open_alarms: dict[str, str], latest: float) -> structs.EntityInfo:
        monitor = self.engine.groups[cell.group].fleet_of(cell.calibration)[cell.name]
        tally, moved = monitor.tally, monitor.movement
        at = cell.newest if cell.newest > -(2**62) else None
        trouble = [monitor.trouble] if monitor.trouble else []
        if cell.at is not None and cell.at * NS > latest:
            far = spelt(cell.at * NS - self.engine.clock())
            trouble.append(
                f"Its last row is {far} ahead of this machine's clock, and ahead of most entities: is its clock right?"
            )
        pause = self.engine.policy.pause(cell.name, at if at is not None else 0)
        return structs.EntityInfo(
            name=cell.name,
            group=cell.group,
            status=self.engine.entities.status(cell),
            ratio=cell.ratio if math.isfinite(cell.ratio) else None,
            statistic=cell.now if math.isfinite(cell.now) else None,
            threshold=float(monitor.calibration.threshold if moved is None else moved.after),
            time=None if cell.at is None else cell.at * NS,
            received=cell.received,
            rows=monitor.rows,
            judged=tally.judged,
            late=cell.late,
            refused=cell.refused,
            alarm=open_alarms.get(cell.name) if monitor.condition != "calm" or monitor.silent else None,
            silent_channels=list(monitor.silent),
            paused=pause is not None,
            trouble=" ".join(trouble),
        )

    def calibrated(self, name: str) -> float:
        """The threshold of an entity as calibrated.

        The one in force may have followed its alarms.
        """
        cell = self.engine.entities.get(name)
        return float(self.engine.groups[cell.group].watches[cell.calibration].calibration.threshold)

    def oldest(self) -> float | None:
        """The time of the oldest row that is kept."""
        kept = self.store.read("SELECT min(first) FROM history")[0][0]
        rest = [cell.times[0] for cell in list(self.engine.cells.values()) if cell.times]
        found = [one for one in (kept, *rest) if one is not None]
        return min(found) * NS if found else None

    def counts(self) -> dict[str, int]:
        """How many entities are in each status."""
        with self.engine.lock:
            words = [self.engine.entities.status(cell) for cell in self.engine.cells.values()]
        return {word: words.count(word) for word in sorted(set(words))}

    history = history_chart
    heat_map = heat.heat_map

    # ------------------------------------------------------------------ alarms

    def alarms(self, **chosen: Any) -> list[structs.AlarmInfo]:
        """Alarms, the latest first; ``chosen`` as in :meth:`records`."""
        return [self.info(record) for record in self.records(**chosen)]

    def records(
        self,
        *,
        entity: str = "",
        start: float | None = None,
        stop: float | None = None,
        label: str = "",
        sort: str = "",
        active: bool | None = None,
        suppressed: bool | None = None,
        limit: int = 200,
        before: str = "",
    ) -> list[JsonDict]:
        """Alarms as the store has them, the latest first.

        ``before`` is the id of the last one of the page before.
        """
        where = ["coalesce(cleared, raised) >= ?", "raised < ?"]
        values: list[object] = [*nanoseconds(start, stop)]
        earlier = "(raised, id) < (SELECT raised, id FROM alarms WHERE id = ?)"
        for clause, value in (("entity = ?", entity), ("sort = ?", sort), ("label = ?", label), (earlier, before)):
            if value:
                where.append(clause)
                values.append(value)
        if active is not None:
            where.append("cleared IS NULL" if active else "cleared IS NOT NULL")
            if active:  # what was handed over is on elsewhere
                where.append("entity NOT IN (SELECT name FROM entities WHERE retired IS NOT NULL)")
        if suppressed is not None:
            where.append("suppressed != ''" if suppressed else "suppressed = ''")
        query = f"SELECT * FROM ({_ALARMS}) WHERE {' AND '.join(where)} ORDER BY raised DESC, id DESC LIMIT ?"
        return self.store.records(query, (*values, max(1, min(limit, 10_000))))

    def alarms_of(self, incidents: list[str]) -> list[structs.AlarmInfo]:
        """The alarms of incidents, by their ids."""
        query = f"SELECT * FROM ({_ALARMS}) WHERE incident IN ({', '.join('?' * len(incidents))})"
        return [self.info(record) for record in self.store.records(query, incidents)]

    incidents, incident = alarm_groups.incidents, alarm_groups.incident
    recurrences = alarm_groups.recurrences

    def info(self, record: JsonDict, *, now: bool = True) -> structs.AlarmInfo:
        """An alarm as the store has it, for people; ``now``: as strong as it is by now, though the store may not know yet."""
        document = json.loads(record["document"])
        ratio = record["ratio"]
        cell = self.engine.cells.get(record["entity"])
        if now and record["cleared"] is None and record["sort"] == "statistic" and cell is not None:
            alarm = self.engine.groups[cell.group].fleet_of(cell.calibration)[cell.name].alarm
            if alarm is not None and alarm.threshold > 0:
                ratio = max(ratio, alarm.peak / alarm.threshold)
        entity_document = {
            "kind": "",
            "why": "",
            "budget": "",
            **document,
            **record,
            "group": record["grp"],
            "ratio": ratio,
            "severity": severity_of(ratio, record["sort"]),
            "state": _state(record, document),
            "ongoing_since": self._ongoing_since(document, record),
            "channels": list(document.get("channels", {}))[:5],
            **{at: record[at] and record[at] * NS for at in ("raised", "onset", "cleared")},
        }
        return msgspec.convert(entity_document, structs.AlarmInfo)

    def alarm(self, number: str, *, event: str = "") -> structs.AlarmPage:
        """One alarm with everything; with the document of an ``event`` as it was then, but for its end."""
        found = self.store.records(f"SELECT * FROM ({_ALARMS}) WHERE id = ?", (number,))
        if not found:
            raise NotFoundError(f"No alarm has the id {number[:64]!r}.")
        record = found[0] if not event else _as_then(found[0], event)
        alarm, document = self.info(record, now=not event), json.loads(record["document"])
        alarm.accepted = self._accepted(number) if alarm.cleared is None or alarm.state == "new normal" else ""
        first = alarm.channels[0] if alarm.channels else None
        earlier = self.alarms(entity=alarm.entity, stop=alarm.raised, sort=alarm.sort, limit=50)
        like = self.recurrences(entity=alarm.entity, sort=alarm.sort, stop=alarm.raised + 1e-3)
        again = next((one.words for one in like if number in one.alarms), "")
        threshold = float(document.get("threshold") or 0.0)
        return structs.AlarmPage(
            alarm=alarm,
            reasons=[structs.ReasonInfo(**one) for one in document.get("reasons", [])],
            further=msgspec.convert(document.get("further", []), list[structs.FurtherInfo]),
            shares=document.get("channels", {}),
            threshold=threshold,
            statistic=alarm.ratio * threshold,
            rule=document.get("rule", ""),
            labels=self.labels(number),
            similar=[one for one in earlier if first is not None and one.channels[:1] == [first] and one.id != number][
                :10
            ],
            together=[one for one in self.alarms_of([alarm.incident]) if one.id != number][:20],
            recurrence=again,
            sentences=_sentences(alarm, document, again),
        )

    def _accepted(self, number: str) -> str:
        """Who accepted an alarm last."""
        query = "SELECT author FROM journal WHERE what IN (?, ?) ORDER BY id DESC LIMIT 1"
        found = self.store.read(query, (f"accept {number}", f"label {number} new normal"))
        return str(found[0][0]) if found else ""

    @staticmethod
    def _ongoing_since(document: JsonDict, record: JsonDict) -> float | None:
        if document.get("ongoing_since") is None:
            return None
        return moment_of(document.get("cleared_time"), record["raised"]) * NS

    def labels(self, alarm: str = "") -> list[structs.Label]:
        """Labels, the latest first; those of one alarm or all."""
        query = "SELECT id, alarm, word, author, reason, at FROM labels" + (" WHERE alarm = ?" if alarm else "")
        found = self.store.records(query + " ORDER BY id DESC LIMIT 1000", (alarm,) if alarm else ())
        return msgspec.convert(found, list[structs.Label])

    # ------------------------------------------------------------------ the budget

    budgets = ledger.budgets_of
    ledger = ledger.ledger
    what_if = whatif.what_if

    # ------------------------------------------------------------------ people

    def proposals(self, *, state: str = "") -> list[structs.ProposalInfo]:
        """Proposals, the latest first."""
        query = "SELECT * FROM proposals" + (" WHERE state = ?" if state else "") + " ORDER BY id DESC LIMIT 200"
        return [_proposal(record) for record in self.store.records(query, (state,) if state else ())]

    def proposal(self, number: int) -> structs.ProposalInfo:
        """One proposal."""
        found = self.store.records("SELECT * FROM proposals WHERE id = ?", (number,))
        if not found:
            raise NotFoundError(f"The proposal must be there. Got number {number}, which is not.")
        return _proposal(found[0])

    def pauses(self, *, ended: bool = False) -> list[structs.Pause]:
        """Maintenance windows; those that were ended by hand too where asked."""
        query = "SELECT * FROM pauses" + ("" if ended else " WHERE ended IS NULL") + " ORDER BY start DESC LIMIT 1000"
        return [_pause(record, self._note(record)) for record in self.store.records(query)]

    def rules(self, *, ended: bool = False) -> list[structs.RuleInfo]:
        """Suppression rules."""
        query = "SELECT * FROM rules" + ("" if ended else " WHERE ended IS NULL") + " ORDER BY id"
        return [
            structs.RuleInfo(one["id"], one["pattern"], suppression_of(one).text, one["author"], one["reason"], one["ended"], self._note(one))
            for one in self.store.records(query)
        ]  # fmt: skip

    def _note(self, record: JsonDict) -> str:
        """What to know of the pattern of a maintenance window or a rule in force."""
        pattern = record["pattern"]
        used = record["ended"] is not None or any(
            fnmatch.fnmatchcase(name, pattern) for name in list(self.engine.cells)
        )
        return "" if used else f"No entity fits the pattern {pattern!r} now."

    def patterns(self, *, ended: bool = False) -> list[structs.PatternInfo]:
        """Patterns of alarms that people know, in force.

        Those that were ended too where asked.
        """
        query = (
            "SELECT *, grp AS 'group', (SELECT count(*) FROM alarms WHERE grp = patterns.grp AND "
            "json_extract(alarms.document, '$.known') = words) AS known FROM patterns"
        ) + ("" if ended else " WHERE ended IS NULL")
        return msgspec.convert(self.store.records(query + " ORDER BY id"), list[structs.PatternInfo])

    def journal(self, *, limit: int = 200) -> list[JsonDict]:
        """Who changed what, the latest first."""
        return self.store.records("SELECT * FROM journal ORDER BY id DESC LIMIT ?", (limit,))


def _pause(record: JsonDict, note: str) -> structs.Pause:
    times = {at: record[at] * NS for at in ("start", "stop")}
    switches = {name: bool(record[name]) for name in ("silent", "unlearned")}
    return msgspec.convert({**record, **times, **switches, "note": note}, structs.Pause)


def _proposal(record: JsonDict) -> structs.ProposalInfo:
    document = json.loads(record["document"])
    counts = {name: document[name] for name in COUNTS}
    more = {"group": record["grp"], "loses_true": document["missed"] > 0, "document": counts}
    return msgspec.convert({**document, **record, **more}, structs.ProposalInfo)


def _as_then(record: JsonDict, event: str) -> JsonDict:
    """An alarm of the store as one of its events had it; whether and how it ended is as it is now."""
    then, last = json.loads(event), json.loads(record["document"])
    ratio = then["peak"] / then["threshold"] if then.get("threshold") else record["ratio"]
    ended = {
        key: last[key]
        for key in ("state", "ongoing_since", "back", "back_time", "cleared", "cleared_time")
        if key in last
    }
    return {**record, "ratio": ratio, "document": json.dumps({**last, **then, **ended})}


def _state(record: JsonDict, document: JsonDict) -> str:
    """The state of an alarm: as the library says, unless the store knows better."""
    said = str(document.get("state", "raised"))
    if record["cleared"] is None:
        return said if said in ("ongoing", "merged") else "raised"
    return "cleared" if said in ("raised", "ongoing") else said


def _sentences(alarm: structs.AlarmInfo, document: JsonDict, again: str) -> list[str]:
    """The alarm in words."""
    if alarm.sort != "statistic":
        return [f"{alarm.entity}: {alarm.why}."]
    raised, onset = document.get("raised_time"), document.get("onset_time")
    lines = [
        f"Raised at {say_time(raised) if raised is not None else alarm.raised}; its evidence began at {say_time(onset) if onset is not None else alarm.onset}."
    ]
    if alarm.state == "ongoing":
        lines.append("The change is over and its channels are still different: it is ongoing until back or accepted.")
    elif alarm.cleared is None:
        accepted = f"; {alarm.accepted} accepted it: it ends as the new normal when its statistic falls"
        lines.append(f"It is still on{accepted if alarm.accepted else ''}.")
    else:
        how = {"back": "; its channels are back", "new normal": "; accepted as the new normal"}.get(alarm.state, "")
        how = f"; {MERGED}" if alarm.state == "merged" else how
        lines.append(f"It lasted {spelt(alarm.cleared - alarm.raised)}{how}.")
    if again:
        lines.append(f"{again[0].upper()}{again[1:]}.")
    if alarm.why:
        lines.append(f"Contributing: {alarm.why}.")
    lines.append(
        f"How unusual: {alarm.ratio:.2f} times the threshold ({alarm.severity}), which is made for the budget {alarm.budget}."
    )
    if alarm.suppressed:
        lines.append(f"Nobody was told: {alarm.suppressed}.")
    return lines
