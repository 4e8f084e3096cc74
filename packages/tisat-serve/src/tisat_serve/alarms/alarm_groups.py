"""Alarms that belong together: those that began together over entities (incidents), and those that come again (recurrences)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tisat.alarms import Alarm, recurring
from tisat.errors import NotFoundError
from tisat.utils.types import JsonDict
from tisat_serve.alarms.alarm_log import severity_of_all
from tisat_serve.sinks.moments import say_moment
from tisat_serve.structs import AlarmInfo, IncidentInfo, RecurrenceInfo

if TYPE_CHECKING:
    from tisat_serve.views.fleet_view import FleetView

MOST_LOOKED_AT = 2000  # alarms that recurrences are sought in
NAMED = 4  # entities in words


def incidents(view: FleetView, *, limit: int = 100, **chosen: object) -> list[IncidentInfo]:
    """Incidents with an alarm that fits, the latest first.

    ``chosen`` as in :meth:`FleetView.alarms`.
    """
    found = view.alarms(**chosen, limit=20 * limit)
    names = list(dict.fromkeys(one.incident for one in found))[:limit]
    members: dict[str, list[AlarmInfo]] = {name: [] for name in names}
    for start in range(0, len(names), 500):
        for one in view.alarms_of(names[start : start + 500]):
            members[one.incident].append(one)
    return [_incident(name, alarms) for name, alarms in members.items()]


def incident(view: FleetView, number: str) -> IncidentInfo:
    """One incident by its id, which is that of the first alarm raised."""
    found = view.alarms_of([number])
    if not found:
        raise NotFoundError(f"No incident has the id {number[:64]!r}.")
    return _incident(number, found)


def _incident(number: str, alarms: list[AlarmInfo]) -> IncidentInfo:
    alarms = sorted(
        alarms, key=lambda one: (one.raised, one.id != number, one.onset, one.id)
    )  # an onset is an estimate
    first = alarms[0]
    entities = list(dict.fromkeys(one.entity for one in alarms))
    channel = first.channels[0] if first.channels else ""
    moved = f"{first.entity}{f' ({channel})' if channel else ''}"
    same = list(
        dict.fromkeys(one.entity for one in alarms if one.raised == first.raised and one.entity != first.entity)
    )
    later = [name for name in entities[1:] if name not in same]
    words = f"{moved} and {_named(same)} moved together" if same else f"{moved} moved first" if later else moved
    words += f", then {_named(later)}" if later else ""
    over = [one.cleared for one in alarms if one.cleared is not None]
    states = [one.state for one in alarms]
    labels = sorted({one.label for one in alarms})
    return IncidentInfo(
        id=number,
        onset=min(one.onset for one in alarms),
        raised=first.raised,
        cleared=max(over) if len(over) == len(alarms) else None,
        entity=first.entity,
        channel=channel,
        entities=entities,
        channels=list(dict.fromkeys(name for one in alarms for name in one.channels[:1])),
        severity=severity_of_all(alarms),
        state=next((word for word in ("raised", "ongoing") if word in states), states[-1]),
        label=labels[0] if len(labels) == 1 else "mixed",
        words=words,
        alarms=alarms,
    )


def _named(entities: list[str]) -> str:
    """The first of some entities, and how many more there are."""
    more = f" and {len(entities) - NAMED + 1} more" if len(entities) >= NAMED else ""
    return ", ".join(entities[: NAMED - 1]) + more


def recurrences(view: FleetView, **chosen: Any) -> list[RecurrenceInfo]:
    """Alarms of an entity that are alike as one each, the latest first.

    ``chosen`` as in :meth:`FleetView.alarms`.
    """
    infos, statistic_alarms = {}, []
    for record in view.records(**chosen, limit=MOST_LOOKED_AT):
        info = view.info(record)
        alarm = _alarm(info, json.loads(record["document"]))
        infos[id(alarm)] = info
        statistic_alarms.append(alarm)
    infos_out = []
    for recurrence in recurring(statistic_alarms):
        alarms = [infos[id(alarm)] for alarm in reversed(recurrence.alarms)]
        last = alarms[0]
        channel = last.channels[0] if last.channels else ""
        first = alarms[-1].raised
        infos_out.append(
            RecurrenceInfo(
                last.entity,
                last.kind,
                channel,
                len(alarms),
                first,
                recurrence.rhythm,
                recurrence.words,
                last,
                [a.id for a in alarms],
            )
        )
    return infos_out


def _alarm(info: AlarmInfo, document: JsonDict) -> Alarm:
    """An alarm of the book as the library knows it.

    One about the data has only its moment, kind and channel.
    """
    if info.sort == "statistic":
        return Alarm.from_json(document)
    return Alarm(
        raised=0, onset=0, cleared=None, peak=0.0, threshold=0.0, rule="", budget="",
        channels=dict.fromkeys(info.channels, 1.0), raised_time=say_moment(info.raised), series=info.entity, kind=info.kind,
    )  # fmt: skip
