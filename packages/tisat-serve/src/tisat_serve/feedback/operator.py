"""Operator feedback: labels, proposals, maintenance windows, suppression rules.

Nothing here happens by itself. A label changes the ledger and what a proposal is made from; a proposal changes a threshold
only when somebody takes it, and can be taken back; rules and windows hold messages back, never alarms.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from dataclasses import dataclass
from typing import Any

import numpy as np

from tisat.alarms.calibration import Calibration
from tisat.alarms.episode_log import Episode, EpisodeRecord, Proposal, propose
from tisat.alarms.suppression import Suppression
from tisat.errors import ConflictError, InputError, NotFoundError, ParameterError
from tisat.utils.numbers import say_number
from tisat.utils.types import JsonDict
from tisat_serve.alarms.alarm_log import MISSING, in_pauses
from tisat_serve.alarms.known_patterns import KIND, KnownPatterns
from tisat_serve.engine.engine import Engine
from tisat_serve.engine.group import add_calibration
from tisat_serve.engine.row_encoding import ACCEPTED
from tisat_serve.feedback.refits import Refits
from tisat_serve.folder.archive import briefs_of
from tisat_serve.folder.forgetting import forget
from tisat_serve.store import ACCEPT, ADOPT, LABEL
from tisat_serve.structs import Acknowledgement, AlarmInfo, Label, Pause, ProposalInfo, RuleInfo
from tisat_serve.views.fleet_view import FleetView

WORDS = ("true", "false", "expected", "new normal", "unmarked")
LONGEST_TEXT = 2000
ENOUGH_FALSE = 3  # alarms marked false after which a recalibration is proposed


@dataclass(frozen=True)
class Pooled:
    """The records of several entities as one, as :func:`tisat.alarms.episode_log.propose` looks at it."""

    episodes: tuple[Episode, ...]
    rows: int

    @classmethod
    def of(cls, records: list[EpisodeRecord]) -> Pooled:
        """One after the other: episodes keep their lengths."""
        labels = []
        offset = 0
        for record in records:
            for one in record.episodes:
                stop = record.rows if one.stop is None else one.stop
                labels.append(Episode(one.start + offset, max(stop, one.start) + offset, one.peak, one.label))
            offset += max(record.rows, max((one.stop or 0 for one in record.episodes), default=0))
        return cls(tuple(labels), sum(record.rows for record in records))


class OperatorFeedback:
    """Changes by operators, each with author and reason.

    Parameters
    ----------
    engine : Engine
    view : FleetView
    """

    def __init__(self, engine: Engine, view: FleetView) -> None:
        self.engine, self.view, self.store = engine, view, engine.store
        self.refits = Refits(engine, view)
        self.patterns = KnownPatterns(self)

    def _note(self, write: sqlite3.Connection, author: str, what: str, reason: str) -> None:
        write.execute("INSERT INTO journal VALUES (NULL, ?, ?, ?, ?)", (self.engine.clock(), author, what, reason))

    # ------------------------------------------------------------------ labels

    def label(self, alarm: str, word: str, *, author: str, reason: str = "") -> Label:
        """Say what an alarm was: true, false, expected, new normal; or unmarked, to take it back."""
        _check(word, "label", WORDS)
        author, reason = _text(author, "author"), _text(reason, "reason", empty=True)
        entity, group, sort, document = self._alarm(alarm)
        with self.engine.lock:
            with self.store.writing() as write:
                at = self.engine.clock()
                number = write.execute(
                    "INSERT INTO labels VALUES (NULL, ?, ?, ?, ?, ?)", (alarm, word, author, reason, at)
                ).lastrowid
                self._note(write, author, f"label {alarm} {word}", reason)
            if sort == "statistic" and entity in self.engine.cells:
                said = "unlabelled" if word == "unmarked" else word
                alarm_of = json.loads(document)
                self.engine.commands([(entity, LABEL, int(alarm_of["raised"]), said, alarm_of.get("model", ""))])
        self.engine.notify({"what": "label", "alarm": alarm, "entity": entity, "label": word})
        self._offer(entity)
        if sort == "statistic":
            self.patterns.offer(group)
        return Label(int(number or 0), alarm, word, author, reason, at)

    def label_incident(self, incident: str, word: str, *, author: str, reason: str = "") -> list[Label]:
        """Say what all alarms of an incident were."""
        alarms = self.view.incident(incident).alarms
        return [self.label(one.id, word, author=author, reason=reason) for one in alarms]

    def acknowledge_incident(
        self, incident: str, *, author: str, reason: str = "", minutes: float | None = None
    ) -> list[Acknowledgement]:
        """Acknowledge all alarms of an incident."""
        alarms = self.view.incident(incident).alarms
        return [self.acknowledge(one.id, author=author, reason=reason, minutes=minutes) for one in alarms]

    def _alarm(self, alarm: str) -> tuple[str, str, str, str]:
        """The entity, group, sort and document of an alarm."""
        found = self.store.read("SELECT entity, grp, sort, document FROM alarms WHERE id = ?", (alarm,))
        if not found:
            raise NotFoundError(f"No alarm has the id {alarm[:64]!r}.")
        entity, group, sort, document = found[0]
        return entity, group, sort, document

    def accept(self, alarm: str, *, author: str, reason: str = "") -> AlarmInfo:
        """Take the level of an alarm's channels for the new normal; no label is given.

        An ongoing alarm is over; one that is on is ``accepted``, and over when its statistic falls.
        """
        author, reason = _text(author, "author"), _text(reason, "reason", empty=True)
        entity, _, sort, document = self._alarm(alarm)
        info = self.view.alarm(alarm).alarm
        why = "is over" if info.cleared is not None else MISSING.get(sort, "")
        if why or entity not in self.engine.cells:
            why = why or "is of an entity that was handed over"
            raise ConflictError(f"The alarm must be about values, and on or ongoing, to be accepted. {alarm!r} {why}.")
        named = json.loads(document)
        with self.engine.lock:
            with self.store.writing() as write:
                self._note(write, author, f"accept {alarm}", reason)
            self.engine.commands([(entity, ACCEPT, int(named["raised"]), named.get("model", ""))])
        self.engine.notify({"what": "accepted", "alarm": alarm, "entity": entity})
        return self.view.alarm(alarm).alarm

    def acknowledge(
        self, alarm: str, *, author: str, reason: str = "", minutes: float | None = None
    ) -> Acknowledgement:
        """Say that somebody is on an alarm; with ``minutes`` it is snoozed: Alertmanager is told of it again only after so long."""
        author, reason = _text(author, "author"), _text(reason, "reason", empty=True)
        self._alarm(alarm)
        at = self.engine.clock()
        until = None if minutes is None else at + 60.0 * minutes
        with self.store.writing() as write:
            values = (alarm, author, reason, at, until)
            query = "INSERT INTO acknowledgements VALUES (NULL, ?, ?, ?, ?, ?)"
            number = int(write.execute(query, values).lastrowid or 0)
            self._note(
                write, author, f"acknowledge {alarm}" if until is None else f"snooze {alarm} {minutes:g} min", reason
            )
        self.engine.notify({"what": "acknowledged", "alarm": alarm})
        return Acknowledgement(number, *values)

    def _offer(self, entity: str) -> None:
        """Propose by itself once enough alarms of an entity are marked false and no proposal waits; nothing changes by it."""
        if entity not in self.engine.cells:
            return
        line = next(one for one in self.view.ledger().entities if one.name == entity)
        waits = self.store.read("SELECT 1 FROM proposals WHERE entity = ? AND state = 'open'", (entity,))
        if waits or not (line.false >= ENOUGH_FALSE or (line.false and line.over)):
            return
        try:
            proposal, group, number = self._make_proposal(entity, "", None)
        except ParameterError:
            return  # this calibration keeps no levels to start from
        if proposal.avoided and proposal.after.threshold > proposal.before.threshold:  # else it would help nobody
            reason = f"{line.false} alarms marked false, {say_number(line.allowed)} allowed"
            self.store_proposal(group, entity, self._consequences(proposal, entity, group), number, "tisat", reason)

    # ------------------------------------------------------------------ proposals

    def propose(
        self, *, entity: str = "", group: str = "", budget: str | None = None, author: str, reason: str = ""
    ) -> ProposalInfo:
        """Another threshold for one entity or a group, from what was seen and labelled, with its consequences."""
        made, home, number = self._make_proposal(entity, group, budget)
        return self.store_proposal(home, entity, self._consequences(made, entity, home), number, author, reason)

    def _make_proposal(self, entity: str, group: str, budget: str | None) -> tuple[Proposal, str, int]:
        """Another threshold, the group it is for and the number of the calibration before."""
        engine = self.engine
        with engine.lock:
            home = engine.entities.group(engine.entities.get(entity).group if entity else group)
            names = [entity] if entity else engine.entities.names_in(home.name)
            number = engine.cells[entity].calibration if entity else home.calibration
            records = [self._record(name, home.watches[number].calibration) for name in names]
            record: Any = records[0] if len(records) == 1 else Pooled.of(records)
            return propose(home.watches[number].calibration, record, budget=budget), home.name, number

    def refit(self, *, group: str = "", budget: str | None = None, author: str, reason: str = "") -> ProposalInfo:
        """Another model for a group, fitted on what was kept and labelled, with its consequences. Nothing changes by it."""
        author, reason = _text(author, "author"), _text(reason, "reason", empty=True)
        home = self.engine.entities.group(group)
        document = self.refits.make(home, budget=budget, author=author, reason=reason)
        return self.store_proposal(home.name, "", document, home.calibration, author, reason)

    def store_proposal(
        self, group: str, entity: str, document: JsonDict, before: int, author: str, reason: str
    ) -> ProposalInfo:
        """Store a proposal until it is decided."""
        with self.store.writing() as write:
            proposal = write.execute(
                "INSERT INTO proposals VALUES (NULL, ?, ?, ?, 'open', ?, ?, ?, NULL, NULL, ?)",
                (group, entity or None, json.dumps(document), self.engine.clock(), _text(author, "author"), _text(reason, "reason", empty=True), before),
            ).lastrowid  # fmt: skip
            self._note(write, author, f"proposal {proposal}", reason)
        self.engine.notify({"what": "proposal", "proposal": proposal, "entity": entity})
        return self.view.proposal(int(proposal or 0))

    def _record(self, name: str, calibration: Calibration) -> EpisodeRecord:
        """Episodes of an entity with their labels, without maintenance windows."""
        engine = self.engine
        pauses = engine.policy.unlearned(name)
        cell = engine.cells[name]
        home = engine.groups[cell.group]
        if not pauses:
            return home.fleet_of(cell.calibration)[name].record
        brief = briefs_of(engine.entities, name)
        brief = brief.select(brief.status < ACCEPTED)
        record = EpisodeRecord.beside(calibration)
        record.run(np.where(in_pauses(pauses, brief.times), np.nan, brief.statistic).tolist())
        for alarm in self.view.alarms(entity=name, sort="statistic", limit=10_000):
            if alarm.label != "unmarked":
                row = int(np.searchsorted(brief.times, round(alarm.raised * 1e9) - 1000))
                with contextlib.suppress(InputError):  # inside a window, or older than what is kept
                    record.label(row, alarm.label)
        return record

    def _consequences(self, made: Proposal, entity: str, group: str) -> JsonDict:
        """Consequences of a proposal on the stored history."""
        effect = self.view.what_if(entity=entity, group=group, threshold=made.after.threshold)
        lower = made.after.threshold < made.before.threshold
        sensitive = ["A lower threshold is more sensitive: there would be more alarms, not fewer."] if lower else []
        return {
            "threshold_before": made.before.threshold,
            "threshold_after": made.after.threshold,
            "budget": made.after.budget,
            "sentences": [*sensitive, *made.words, *(f"On stored history: {line}" for line in effect.sentences)],
            "false_alarms": made.false_alarms,
            "avoided": made.avoided,
            "true_alarms": made.true_alarms,
            "missed": max(made.missed, effect.lost_true),
            "unlabelled": made.unlabelled,
            "rows": made.rows,
            "seen": made.seen,
            "calibration": made.after.to_json(),
        }

    def decide(self, number: int, *, take: bool, author: str, reason: str = "") -> ProposalInfo:
        """Take a proposal or leave it."""
        author, reason = _text(author, "author"), _text(reason, "reason", empty=True)
        proposal = self.view.proposal(number)
        if proposal.state != "open":
            raise ConflictError(f"The proposal must be open. Number {number} is {proposal.state}.")
        document = json.loads(self.store.read("SELECT document FROM proposals WHERE id = ?", (number,))[0][0])
        if take and proposal.kind == KIND:
            self.patterns.take(proposal, document, author, reason)
            self._state(number, "taken", author, reason)
            return self.view.proposal(number)
        if take:
            model = document.get("model", self._model_of(proposal))
            return self._adopt(proposal, "taken", Calibration.from_json(document["calibration"]), model, author, reason)
        self._state(number, "left", author, reason)
        self.refits.forget(document.get("model", 0))
        return self.view.proposal(number)

    def revert(self, number: int, *, author: str, reason: str = "") -> ProposalInfo:
        """Go back to the threshold before a proposal that was taken."""
        proposal = self.view.proposal(number)
        if proposal.state != "taken":
            raise ConflictError(f"The proposal must have been taken. Number {number} is {proposal.state}.")
        if proposal.kind == KIND:
            (text,) = self.store.read("SELECT document FROM proposals WHERE id = ?", (number,))[0]
            self.end("patterns", json.loads(text)["number"], author=author, reason=reason)
            self._state(number, "reverted", _text(author, "author"), reason)
            return self.view.proposal(number)
        (before,) = self.store.read("SELECT before FROM proposals WHERE id = ?", (number,))[0]
        text, model = self.store.read("SELECT document, model FROM calibrations WHERE id = ?", (before,))[0]
        calibration = Calibration.from_json(json.loads(text))
        if proposal.kind != "refit" and model != self._model_of(proposal):
            raise ConflictError(
                f"A threshold must belong to the model in force. That before proposal {number} is another model's; "
                "go back to that model first."
            )
        return self._adopt(proposal, "reverted", calibration, model, _text(author, "author"), reason)

    def _state(self, number: int, state: str, author: str, reason: str, calibration: int | None = None) -> None:
        with self.store.writing() as write:
            write.execute(
                "UPDATE proposals SET state = ?, decided = ?, calibration = coalesce(?, calibration) WHERE id = ?",
                (state, self.engine.clock(), calibration, number),
            )
            self._note(write, author, f"proposal {number} {state}", reason)

    def _model_of(self, proposal: ProposalInfo) -> int:
        """The model in force where a proposal speaks."""
        home = self.engine.groups[proposal.group]
        if proposal.entity is None or proposal.entity not in self.engine.cells:
            return home.model
        return home.model_of[self.engine.cells[proposal.entity].calibration]

    def _adopt(
        self, proposal: ProposalInfo, state: str, calibration: Calibration, model: int, author: str, reason: str
    ) -> ProposalInfo:
        """Put a calibration in force where a proposal speaks, which is in that state from then on."""
        engine = self.engine
        home = engine.groups[proposal.group]
        with engine.lock:
            home.load_model(self.store, model)
            with self.store.writing() as write:
                adopted = add_calibration(
                    write, proposal.group, proposal.entity, calibration, author, reason, model, engine.clock()
                )
            home.watch_at(adopted, calibration, model)
            if proposal.entity is not None:
                names = [proposal.entity]
            else:  # where the model is another one, entities follow one by one: see Engine.switch_next_entity
                home.force(adopted)
                names = [
                    name
                    for name in engine.entities.names_in(home.name)
                    if home.model_of[engine.cells[name].calibration] == model
                ]
            engine.commands([(name, ADOPT, adopted) for name in names])
            self._state(proposal.id, state, author, reason, adopted)
        engine.notify({"what": "threshold", "group": proposal.group, "entity": proposal.entity or ""})
        return self.view.proposal(proposal.id)

    # ------------------------------------------------------------------ maintenance windows and suppression rules

    def pause(
        self, pattern: str, start: float, stop: float, *, author: str, reason: str = "", silent: bool = True, unlearned: bool = True, every: float | None = None
    ) -> Pause:  # fmt: skip
        """A maintenance window for the entities of a pattern: do not send, do not learn; repeated ``every`` so many seconds."""
        if not -9e9 < start < stop < 9e9 or (every is not None and not stop - start <= every < 9e9):
            raise InputError(
                "A maintenance window must start before it stops, and must not be longer than its repetition. "
                f"Got {start:.15g} to {stop:.15g}{'' if every is None else f', every {every:g} seconds'}."
            )
        values = (_text(pattern, "pattern"), int(start * 1e9), int(stop * 1e9), every, silent, unlearned)
        number = self.add("pauses", values, "maintenance window", author, reason)
        return next(one for one in self.view.pauses() if one.id == number)

    def rule(self, pattern: str, suppress: str, *, author: str, reason: str = "") -> RuleInfo:
        """Hold messages back of alarms about something, which stay visible (:mod:`tisat.alarms.suppression`)."""
        channels = dict.fromkeys(name for group in self.engine.groups.values() for name in group.watch.channels)
        rule = Suppression.parse(_text(suppress, "suppress"), channels=list(channels))
        values = (_text(pattern, "pattern"), rule.channel, rule.direction or "both", rule.least, rule.relative)
        number = self.add("rules", values, "rule", author, reason)
        return next(one for one in self.view.rules() if one.id == number)

    def add(self, table: str, values: tuple[object, ...], what: str, author: str, reason: str) -> int:
        """Put a maintenance window, a suppression rule or a pattern in force; its number."""
        row = (*values, _text(author, "author"), _text(reason, "reason", empty=True), self.engine.clock())
        with self.store.writing() as write:
            query = f"INSERT INTO {table} VALUES (NULL, {', '.join('?' * len(row))}, NULL)"
            number = int(write.execute(query, row).lastrowid or 0)
            self._note(write, author, f"{what} {number}", reason)
        self.engine.reload_policy()
        return number

    def forget(self, entity: str, *, author: str, reason: str = "") -> int:
        """Forget an entity with everything about it; the number of rows of history."""
        return forget(self.engine, entity, author=_text(author, "author"), reason=_text(reason, "reason", empty=True))

    def end(self, what: str, number: int, *, author: str, reason: str = "") -> bool:
        """End a maintenance window (``pauses``), a suppression rule (``rules``) or a known pattern (``patterns``)."""
        _check(what, "what", ("pauses", "rules", "patterns"))
        with self.store.writing() as write:
            done = write.execute(
                f"UPDATE {what} SET ended = ? WHERE id = ? AND ended IS NULL", (self.engine.clock(), number)
            ).rowcount
            if not done:
                raise NotFoundError(f"The number must be there among {what} in force. Got {number}, which is not.")
            self._note(write, _text(author, "author"), f"end {what} {number}", reason)
        self.engine.reload_policy()
        return True


def _check(value: str, name: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"The {name} must be one of {', '.join(choices)}. Got {str(value)[:60]!r} instead.")


def _text(value: str, name: str, *, empty: bool = False) -> str:
    """Text a person gave: of reasonable length, without control characters."""
    text = value.strip()
    control = any(ord(sign) < 32 and sign not in "\n\t" for sign in text)
    if control or len(text) > LONGEST_TEXT or not (text or empty):
        raise InputError(
            f"The {name} must be text of {0 if empty else 1} to {LONGEST_TEXT} characters. Got {text[:40]!r} instead."
        )
    return text
