"""From a result to the book of alarms: ids, records, and who is to be told.

No database is opened here.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tisat.alarms.alarms import Alarm
from tisat.alarms.explanation import Reason
from tisat.alarms.incidents import SPREAD, TOGETHER
from tisat.alarms.suppression import Suppression, covered
from tisat.gap_filling import Silence
from tisat.io.timestamps import read_time
from tisat.utils.types import Flags, Integers, JsonDict

if TYPE_CHECKING:
    from tisat_serve.sinks.message import Message
    from tisat_serve.structs import AlarmInfo

MERGED = "merged into an alarm that is ongoing"
MISSING = {  # why alarms about the data cannot be accepted
    "channel": "is about a silent channel: it ends when the channel sends values again",
    "silence": "is about missing rows: it ends when a row comes",
}
ONGOING = (
    "SELECT incident FROM alarms WHERE entity = ? AND cleared IS NULL AND json_extract(document, '$.state') = 'ongoing' "
    "ORDER BY raised LIMIT 1"
)
SEVERITIES = ((5.0, "critical"), (2.0, "major"), (0.0, "minor"))  # from so many times the threshold on


def severity_of(ratio: float, sort: str = "statistic") -> str:
    """Name how far beyond its threshold a statistic went.

    An alarm about the data has no statistic: a silent entity is major, a silent channel is minor.

    Examples
    --------
    >>> severity_of(1.2), severity_of(2.0), severity_of(7.5), severity_of(0.0, "silence")
    ('minor', 'major', 'critical', 'major')
    """
    return "major" if sort == "silence" else next(word for least, word in SEVERITIES if ratio >= least)


def severity_of_all(alarms: Iterable[AlarmInfo | Message]) -> str:
    """The highest severity of alarms that belong together; several silent entities are critical."""
    words, silent = set(), set()
    for alarm in alarms:
        words.add(alarm.severity)
        if alarm.sort == "silence":
            silent.add(alarm.entity)
    return next(word for _, word in SEVERITIES if word in words or (word == "critical" and len(silent) > 1))


def least_ratio(ratio: float) -> float:
    """From which ratio on an alarm has the severity of this one."""
    return next(least for least, _ in SEVERITIES if ratio >= least)


def worsened(alarm: Alarm, statistic: float) -> Alarm | None:
    """The alarm with the statistic of a later row, where its severity rose with it.

    Examples
    --------
    >>> alarm = Alarm(raised=50, onset=48, cleared=None, peak=3.5, threshold=3.0, rule="excess", budget="1/day", channels={})
    >>> worsened(alarm, 5.9) is None, worsened(alarm, 6.0).peak
    (True, 6.0)
    """
    if alarm.threshold <= 0 or not statistic > alarm.peak:  # NaN: not known
        return None
    if least_ratio(statistic / alarm.threshold) == least_ratio(alarm.peak / alarm.threshold):
        return None
    return replace(alarm, peak=statistic)


def alarm_id(entity: str, model: str, *what: object) -> str:
    """The same alarm has the same id in every run: from its entity, the model and when it was raised.

    Examples
    --------
    >>> alarm_id("pump", "model", 17, "2026-01-01T00:00Z") == alarm_id("pump", "model", 17, "2026-01-01T00:00Z")
    True
    """
    text = "\x1f".join(map(str, (entity, model, *what)))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def moment_of(stamp: str | float | None, default: int) -> int:
    """The nanoseconds of a stamp as alarms carry it."""
    if stamp is None:
        return default
    return round(stamp * 1e9) if isinstance(stamp, int | float) else int(read_time(stamp).value)


@dataclass(frozen=True)
class Event:
    """Something that goes into the book: an alarm raised, joined by further channels, grown beyond its pattern, worsened in severity, or cleared."""

    seq: int
    what: str  # raised, joined, grown, worsened, ongoing or cleared
    id: str
    entity: str
    group: str
    sort: str  # statistic, channel or silence
    at: int  # when, nanoseconds
    onset: int
    ratio: float
    document: JsonDict


def event_of_alarm(alarm: Alarm, model: str, group: str, seq: int, at: int) -> Event:
    """An alarm of a monitor: raised, joined by further channels, ongoing, or cleared."""
    number = alarm_id(alarm.series, model, alarm.raised, alarm.raised_time)
    ratio = alarm.peak / alarm.threshold if alarm.threshold > 0 else 0.0
    change = "cleared" if alarm.cleared is not None else "joined" if alarm.further else "raised"
    change = "ongoing" if alarm.state == "ongoing" else change
    document = alarm.to_json()
    document["why"] = "; ".join(word for word in (alarm.why, alarm.joined) if word)
    document["model"] = model[:16]
    return Event(
        seq, change, number, alarm.series, group, "statistic", at, moment_of(alarm.onset_time, at), ratio, document
    )


def event_of_channel(silence: Silence, model: str, group: str, seq: int, at: int) -> Event:
    """A channel that fell silent or came back."""
    number = alarm_id(silence.series, model, "channel", silence.channel, silence.since, silence.since_time)
    since = moment_of(silence.since_time, at)
    document = {
        **silence.to_json(),
        "kind": "silent channel",
        "why": f"{silence.channel} has said nothing since {silence.since_time if silence.since_time is not None else silence.since}",
        "channels": {silence.channel: 1.0},
    }
    what = "raised" if silence.until is None else "cleared"
    return Event(seq, what, number, silence.series, group, "channel", at, since, 0.0, document)


def event_of_silence(entity: str, group: str, last: int, since: float, now: float) -> Event:
    """An entity from which no row comes any more."""
    document = {
        "kind": "silent entity",
        "why": f"no row has come for {now - since:.0f} seconds",
        "channels": {},
        "since": since,
    }
    at = int(now * 1e9)
    return Event(0, "raised", alarm_id(entity, "silence", last), entity, group, "silence", at, last, 0.0, document)


class Policy:
    """Maintenance windows and suppression rules, read once and again when somebody changes them."""

    def __init__(self) -> None:
        self.pauses: list[JsonDict] = []
        self.rules: list[JsonDict] = []

    def load(self, pauses: list[JsonDict], rules: list[JsonDict]) -> None:
        """Load the windows and rules in force."""
        self.pauses = [pause for pause in pauses if pause["ended"] is None]
        self.rules = [rule for rule in rules if rule["ended"] is None]

    def pause(self, entity: str, at: int) -> JsonDict | None:
        """The maintenance window an entity is in at a time."""
        return next((pause for pause in about(self.pauses, entity) if within(pause, at)), None)

    def unlearned(self, entity: str) -> list[JsonDict]:
        """The maintenance windows whose rows of an entity are not to be learned from."""
        return [pause for pause in about(self.pauses, entity) if pause["unlearned"]]

    def learns(self, entity: str, at: int) -> bool:
        """Whether a row of this time is to be learned from."""
        return not any(within(pause, at) for pause in self.unlearned(entity))

    def decide(self, event: Event) -> tuple[str, int | None]:
        """Why nobody is told of an alarm (empty: they are), and the maintenance window it is in."""
        pause = self.pause(event.entity, event.at)
        if pause is not None and pause["silent"]:
            return f"maintenance window {pause['id']}: {pause['reason']}".rstrip(": "), pause["id"]
        number = None if pause is None else pause["id"]
        if event.sort != "statistic":
            return "", number
        rules = {suppression_of(one): one["id"] for one in about(self.rules, event.entity)}
        reasons = msgspec.convert(event.document.get("reasons") or [], list[Reason])
        used = covered(reasons, list(rules))
        return "; ".join(f"rule {rules[rule]}: {rule}" for rule in used), number


def about(records: Iterable[JsonDict], entity: str) -> list[JsonDict]:
    """The maintenance windows or suppression rules whose pattern an entity fits."""
    return [record for record in records if fnmatch.fnmatchcase(entity, record["pattern"])]


def in_pauses(pauses: Sequence[JsonDict], times: Integers) -> Flags:
    """Which times ``(n,)`` lie in one of some maintenance windows."""
    moments = times.tolist() if pauses else ()
    inside = [any(within(pause, at) for pause in pauses) for at in moments]
    return np.array(inside or [False] * len(times), dtype=np.bool_)


def within(pause: JsonDict, at: int) -> bool:
    """Whether a time lies in a window or in one of its repetitions."""
    if at < pause["start"]:
        return False
    if pause["every"]:
        return bool((at - pause["start"]) % int(pause["every"] * 1e9) < pause["stop"] - pause["start"])
    return bool(at < pause["stop"])


def suppression_of(rule: JsonDict) -> Suppression:
    """Make a suppression of a rule as the store has it."""
    direction = "" if rule["direction"] == "both" else rule["direction"]
    return Suppression(rule["channel"], direction, rule["least"], rule["least_relative"])


def write_event(
    write: sqlite3.Connection, event: Event, policy: Policy, routes: tuple[str, ...], now: float, *, reach: int
) -> bool:
    """Put an event into the book and what is to be sent into the outbox.

    False where it was there already.

    ``reach`` are the nanoseconds of :data:`tisat.alarms.incidents.TOGETHER` rows: which alarms are one incident is defined there.
    """
    before = write.execute(
        "SELECT suppressed, coalesce(json_extract(document, '$.known'), '') FROM alarms WHERE id = ?", (event.id,)
    ).fetchone()
    event_kind = event.what
    if event.what == "raised":
        pattern = str(event.document.get("known", ""))
        document = json.dumps({"known": "", **event.document}, allow_nan=False)
        suppressed, pause = policy.decide(event)
        suppressed = suppressed or _suppression_words(pattern)
        ongoing = None
        if event.document.get("state") == "merged":
            suppressed, ongoing = suppressed or MERGED, write.execute(ONGOING, (event.entity,)).fetchone()
        began, spread = max(event.onset, event.at - reach), reach * SPREAD // TOGETHER
        earlier = (
            "SELECT id FROM alarms WHERE raised >= ? AND incident = id AND max(onset, raised - ?) <= ? AND coalesce(cleared >= ?, 1) "
            "ORDER BY raised LIMIT 1"
        )
        opened = ongoing or write.execute(earlier, (began - spread, reach, event.at + spread, began)).fetchone()
        incident = event.id if opened is None else opened[0]
        cursor = write.execute(
            "INSERT OR IGNORE INTO alarms VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?, ?, ?)",
            (event.id, event.entity, event.group, event.sort, event.at, event.onset, event.ratio, now, document, suppressed, pause, incident),
        ).rowcount  # fmt: skip
    elif before is None:
        return False
    else:
        suppressed, pattern = before
        more = event.document.get("further") or event.document.get("ongoing_since") is not None or event.what == "grown"
        document = json.dumps({**event.document, "known": "" if more else pattern}, allow_nan=False)
        if (
            pattern and more and suppressed == _suppression_words(pattern)
        ):  # more became of it than people know: somebody is called
            merged = event.document.get("state") == "merged"
            suppressed, event_kind = (MERGED, "") if merged else ("", "raised")
        if suppressed == MERGED and event.document.get("state") != "merged":  # more than the ongoing one names
            suppressed, event_kind = "", "raised"
        change = "UPDATE alarms SET suppressed = ?, ratio = max(ratio, ?), "
        where = "WHERE id = ? AND cleared IS NULL"
        values: tuple[object, ...] = (suppressed, event.ratio)
        if event.what == "joined":
            query = f"{change} document = ? {where} AND json_array_length(document, '$.further') < ?"
            values += (document, event.id, len(event.document["further"]))
        elif event.what == "grown":
            query = f"{change} document = ? {where} AND json_extract(document, '$.known') != ''"
            values += (document, event.id)
        elif event.what == "worsened":
            query = f"{change} document = ? {where} AND ratio < ?"
            values += (document, event.id, least_ratio(event.ratio))
        elif event.what == "ongoing":
            query = f"{change} document = ? {where} AND coalesce(json_extract(document, '$.state'), '') != 'ongoing'"
            values += (document, event.id)
            event_kind = (
                event_kind if event_kind == "raised" else ""
            )  # who was told that it is on need not be told again
        else:
            query = f"{change} cleared = ?, document = CASE WHEN sort = 'silence' THEN document ELSE ? END {where}"
            values += (event.at, document, event.id)
        cursor = write.execute(query, values).rowcount
    if cursor and event_kind and not suppressed:
        write.executemany(
            "INSERT INTO outbox VALUES (NULL, ?, ?, ?, ?, ?, 0, '', ?)",
            [(route, event.id, event_kind, document, now, now) for route in routes],
        )
    return bool(cursor)


def _suppression_words(pattern: str) -> str:
    """Why nobody is told of an alarm of a pattern."""
    return f"known: {pattern}" if pattern else ""
