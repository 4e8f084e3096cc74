"""The message about an alarm, the same for every sink."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import msgspec

from tisat.utils.types import JsonDict
from tisat_serve.alarms.alarm_log import severity_of_all
from tisat_serve.sinks.moments import say_moment
from tisat_serve.structs import AlarmPage
from tisat_serve.views.fleet_view import FleetView


class Message(msgspec.Struct):
    """An alarm raised, joined by further channels, worsened in severity, or cleared, for people and machines outside."""

    event: str  # raised, joined, worsened or cleared
    key: str  # the same message sent twice has the same key
    id: str
    entity: str
    group: str
    sort: str
    kind: str
    raised: str
    onset: str
    cleared: str | None
    ratio: float
    threshold: float
    budget: str
    why: str
    reasons: list[JsonDict]
    shares: dict[str, float]
    url: str
    title: str
    text: str
    severity: str = ""  # minor, major or critical: how far beyond the threshold it went so far
    state: str = ""  # raised, ongoing, back, new normal or cleared
    incident: str = ""  # the same for alarms that began together
    recurrence: str = ""  # "12th time, nightly at 02:00 since 3 March", where it is
    alarms: list[
        dict[str, str]
    ] = []  # where several began together: each with its id, entity, kind, severity, state, why and url


def message_of(view: FleetView, alarm: str, event: str, base: str, then: str = "") -> Message:
    """Make the message about a logged alarm, as the document ``then`` of the event has it."""
    page: AlarmPage = view.alarm(alarm, event=then)
    page_alarm = page.alarm
    over = "was accepted as the new normal" if page_alarm.state == "new normal" else "is over"
    ending = {
        "cleared": over,
        "joined": "alarm, joined by further channels",
        "worsened": "alarm, worse than before",
    }.get(event, "alarm")
    moments = {at: getattr(page_alarm, at) for at in ("raised", "onset", "cleared")}
    document = {
        **{at: None if moment is None else say_moment(moment) for at, moment in moments.items()},
        "event": event,
        "key": f"{alarm}:{event}"
        + {"joined": f":{len(page.further)}", "worsened": f":{page_alarm.severity}"}.get(event, ""),
        "threshold": page.threshold,
        "recurrence": page.recurrence,
        "reasons": msgspec.to_builtins(page.reasons),
        "shares": dict(list(page.shares.items())[:10]),
        "url": f"{base}/alarm/{alarm}",
        "title": f"{page_alarm.entity}: {'' if event == 'cleared' else page_alarm.severity + ' '}{page_alarm.kind or page_alarm.sort} {ending}",
        "text": " ".join(page.sentences),
    }
    return msgspec.convert({**msgspec.structs.asdict(page_alarm), **document}, Message)


NAMED = 4  # entities that a title names


def message_of_all(view: FleetView, alarms: list[str], event: str, base: str, documents: Sequence[str] = ()) -> Message:
    """One message about alarms that began together, as severe as the worst and on while one is; that of the first where it is alone."""
    messages = [
        message_of(view, alarm, event, base, then) for alarm, then in zip_longest(alarms, documents, fillvalue="")
    ]
    first = messages[0]
    if len(messages) == 1:
        return first
    names = list(dict.fromkeys(one.entity for one in messages))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    kinds = list(dict.fromkeys(one.kind or one.sort for one in messages))
    strongest = max(messages, key=lambda one: one.ratio)
    on = next((one for one in messages if one.cleared is None), first)
    return msgspec.structs.replace(
        first,
        ratio=strongest.ratio,
        severity=severity_of_all(messages),
        state=on.state,
        cleared=on.cleared,
        key=f"{first.id}:{event}:{len(messages)}",
        title=f"{len(names)} entities together: {', '.join(kinds)} {'is over' if event == 'cleared' else 'alarm'} on {', '.join(names[:NAMED])}{more}",
        text="\n".join(f"{one.entity}: {one.text} {one.url}" for one in messages),
        alarms=[
            {name: getattr(one, name) for name in ("id", "entity", "kind", "severity", "state", "why", "url")}
            for one in messages
        ],
    )
