"""Every endpoint in one table: what it takes, what it gives, who may ask.

Routes and the description are made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from tisat import __version__
from tisat.errors import InputError
from tisat.io.timestamps import MUST, read_time
from tisat.utils.types import JsonDict
from tisat_serve import structs
from tisat_serve.service import Service

Name = Annotated[str, msgspec.Meta(max_length=200)]
Pattern = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Text = Annotated[str, msgspec.Meta(max_length=2000)]
Seconds = Annotated[float, msgspec.Meta(ge=-4e9, le=4.2e9)]  # in nanoseconds any two of them are less than 2**63 apart


class Nothing(msgspec.Struct):
    """No parameters."""


class Span(msgspec.Struct):
    """A stretch of time."""

    start: Seconds | None = None
    stop: Seconds | None = None


class EntitiesQuery(msgspec.Struct):
    """Which entities."""

    search: Name = ""
    status: Name = ""


class HistoryQuery(Span):
    """Which stretch of one entity, and how finely."""

    points: Annotated[int, msgspec.Meta(ge=1, le=2000)] = 400
    channels: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 8


class HeatQuery(Span):
    """Which stretch of the fleet."""

    steps: Annotated[int, msgspec.Meta(ge=1, le=400)] = 96
    group: Name = ""


Subject = Literal[
    "", "statistic", "channel", "silence"
]  # the sort of an alarm, asked for as ``about``: ``sort`` would promise an order


class RecurrencesQuery(Span):
    """Which alarms are looked at."""

    entity: Name = ""
    label: Name = ""
    sort: Subject = msgspec.field(default="", name="about")
    active: bool | None = None


class AlarmsQuery(RecurrencesQuery):
    """Which alarms, the latest first."""

    suppressed: bool | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 200
    before: Name = ""


class WhatIfQuery(Span):
    """Another threshold or another budget, for one entity or a group."""

    entity: Name = ""
    group: Name = ""
    threshold: Annotated[float, msgspec.Meta(gt=0)] | None = None
    budget: Name | None = None


class StateQuery(msgspec.Struct):
    """Which proposals."""

    state: Name = ""


class EndedQuery(msgspec.Struct):
    """Those that were ended too."""

    ended: bool = False


class Said(msgspec.Struct, forbid_unknown_fields=True):
    """Who says so, and why. The author is the token's name where there is one."""

    author: Name = ""
    reason: Text = ""


class LabelBody(Said, kw_only=True):
    """A label of an alarm."""

    word: Literal["true", "false", "expected", "new normal", "unmarked"] = msgspec.field(name="label")


class AcknowledgeBody(Said):
    """An acknowledgement of an alarm; with ``minutes`` it is snoozed."""

    minutes: Annotated[float, msgspec.Meta(gt=0, le=525_600)] | None = None


class ProposeBody(Said):
    """A proposal for an entity or a group, perhaps at another budget."""

    entity: Name = ""
    group: Name = ""
    budget: Name | None = None


class RefitBody(Said):
    """A refit of a group, perhaps at another budget."""

    group: Name = ""
    budget: Name | None = None


class PauseBody(Said, kw_only=True):
    """A maintenance window with its two switches."""

    pattern: Pattern = "*"
    start: Seconds | Name
    stop: Seconds | Name
    silent: bool = True
    unlearned: bool = True
    every: Annotated[float, msgspec.Meta(gt=0)] | None = None


class RuleBody(Said, kw_only=True):
    """A suppression rule: entities, and what is suppressed as ``CHANNEL[:up|down][:LEAST]``."""

    suppress: Pattern
    pattern: Pattern = "*"


class Done(msgspec.Struct):
    """It is done."""

    done: bool = True


class Forgotten(msgspec.Struct):
    """The entity and rows that were removed."""

    entity: str
    rows: int


class About(msgspec.Struct):
    """The service itself."""

    version: str
    groups: list[str]
    channels: dict[str, list[str]]
    entities: dict[str, int]
    rows_waiting: int
    rows_per_second: float
    store_bytes: int
    ready: bool
    problems: list[str]
    shard: str = ""


@dataclass(frozen=True)
class Endpoint:
    """One of them. ``call(service, path, query, body, author)`` runs outside the event loop."""

    method: str
    path: str
    summary: str
    scope: str
    answer: object
    call: Callable[[Service, dict[str, str], Any, Any, str], Any]
    query: type[msgspec.Struct] = Nothing
    body: object = None


def about(service: Service) -> About:
    """How the service does."""
    groups = service.engine.groups
    return About(
        version=__version__,
        groups=list(groups),
        channels={name: list(group.watch.channels) for name, group in groups.items()},
        entities=service.view.counts(),
        rows_waiting=service.waiting,
        rows_per_second=service.rate,
        store_bytes=service.engine.store.bytes,
        ready=service.ready,
        problems=service.problems,
        shard=service.engine.store.meta("shard"),
    )


def _fields(value: Any, *without: str) -> JsonDict:
    return {key: part for key, part in msgspec.structs.asdict(value).items() if key not in without}


def _author(body: Said, author: str) -> str:
    """Who says so: a token's name cannot be disguised, somebody on this machine may say who they are."""
    if author not in ("local", ""):
        return f"{body.author} ({author})" if body.author and body.author != author else author
    return body.author or "local"


def _seconds(time: float | str, name: str) -> float:
    """The seconds of a time, which may be a date as those of rows are."""
    if not isinstance(time, str):
        return time
    try:
        moment = read_time(time)
    except InputError:
        raise InputError(f"The '{name}' of a window must be {MUST}. Got {time[:60]!r} instead.") from None
    return msgspec.convert(moment.value * 1e-9 if moment.dates else float(moment.value), Seconds)


def _number(path: dict[str, str]) -> int:
    if not path["number"].isdigit() or len(path["number"]) > 15:
        raise InputError(f"The number in the address must be a whole number. Got {path['number'][:40]!r} instead.")
    return int(path["number"])


A = "/api/v1"
ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", f"{A}/about", "The service: version, groups, channels, load.", "read", About, lambda s, p, q, b, a: about(s)),
    Endpoint("GET", f"{A}/entities", "Entities with their status, the highest ratio first.", "read", list[structs.EntityInfo],
             lambda s, p, q, b, a: s.view.entities(search=q.search, status=q.status), EntitiesQuery),
    Endpoint("GET", f"{A}/entities/{{name:path}}/history", "A stretch of one entity: values, expectation, statistic.", "read", structs.History,
             lambda s, p, q, b, a: s.view.history(p["name"], **_fields(q)), HistoryQuery),
    Endpoint("POST", f"{A}/entities/{{name:path}}/forget", "Forget an entity: state, history, alarms and labels.", "admin", Forgotten,
             lambda s, p, q, b, a: Forgotten(p["name"], s.feedback.forget(p["name"], author=_author(b, a), reason=b.reason)), body=Said),
    Endpoint("GET", f"{A}/entities/{{name:path}}", "One entity.", "read", structs.EntityInfo, lambda s, p, q, b, a: s.view.entity(p["name"])),
    Endpoint("GET", f"{A}/heatmap", "Entities x time: the largest statistic / threshold of each cell.", "read", structs.HeatMap,
             lambda s, p, q, b, a: s.view.heat_map(**_fields(q)), HeatQuery),
    Endpoint("GET", f"{A}/alarms", "Alarms, the latest first.", "read", list[structs.AlarmInfo],
             lambda s, p, q, b, a: s.view.alarms(**_fields(q)), AlarmsQuery),
    Endpoint("GET", f"{A}/alarms/{{id}}", "One alarm with everything.", "read", structs.AlarmPage, lambda s, p, q, b, a: s.view.alarm(p["id"])),
    Endpoint("POST", f"{A}/alarms/{{id}}/label", "Say what an alarm was: true, false, expected, new normal, unmarked.", "label", structs.Label,
             lambda s, p, q, b, a: s.feedback.label(p["id"], b.word, author=_author(b, a), reason=b.reason), body=LabelBody),
    Endpoint("POST", f"{A}/alarms/{{id}}/acknowledge", "Say that somebody is on an alarm, or snooze it for some minutes.", "label", structs.Acknowledgement,
             lambda s, p, q, b, a: s.feedback.acknowledge(p["id"], author=_author(b, a), reason=b.reason, minutes=b.minutes), body=AcknowledgeBody),
    Endpoint("POST", f"{A}/alarms/{{id}}/accept", "Take the level of an alarm's channels for the new normal: an ongoing alarm is over, one that is on when its statistic falls.", "label", structs.AlarmInfo,
             lambda s, p, q, b, a: s.feedback.accept(p["id"], author=_author(b, a), reason=b.reason), body=Said),
    Endpoint("GET", f"{A}/incidents", "Alarms that began together over entities, the latest first, with what moved first.", "read", list[structs.IncidentInfo],
             lambda s, p, q, b, a: s.view.incidents(**_fields(q)), AlarmsQuery),
    Endpoint("GET", f"{A}/incidents/{{id}}", "One incident.", "read", structs.IncidentInfo, lambda s, p, q, b, a: s.view.incident(p["id"])),
    Endpoint("POST", f"{A}/incidents/{{id}}/label", "Say what all alarms of an incident were.", "label", list[structs.Label],
             lambda s, p, q, b, a: s.feedback.label_incident(p["id"], b.word, author=_author(b, a), reason=b.reason), body=LabelBody),
    Endpoint("POST", f"{A}/incidents/{{id}}/acknowledge", "Say that somebody is on all alarms of an incident.", "label", list[structs.Acknowledgement],
             lambda s, p, q, b, a: s.feedback.acknowledge_incident(p["id"], author=_author(b, a), reason=b.reason, minutes=b.minutes), body=AcknowledgeBody),
    Endpoint("GET", f"{A}/recurrences", "Alarms that are alike as one line each: how often, and at which times.", "read", list[structs.RecurrenceInfo],
             lambda s, p, q, b, a: s.view.recurrences(**_fields(q)), RecurrencesQuery),
    Endpoint("GET", f"{A}/patterns", "Patterns of alarms that people know: raised and counted, nobody is called.", "read", list[structs.PatternInfo],
             lambda s, p, q, b, a: s.view.patterns(ended=q.ended), EndedQuery),
    Endpoint("POST", f"{A}/patterns/{{number}}/end", "End a known pattern.", "admin", Done,
             lambda s, p, q, b, a: Done(s.feedback.end("patterns", _number(p), author=_author(b, a), reason=b.reason)), body=Said),
    Endpoint("GET", f"{A}/labels", "Labels, the latest first.", "read", list[structs.Label], lambda s, p, q, b, a: s.view.labels()),
    Endpoint("GET", f"{A}/ledger", "The budget: allowed, raised, true, false, unmarked, with 95 % intervals.", "read", structs.Ledger,
             lambda s, p, q, b, a: s.view.ledger(**_fields(q)), Span),
    Endpoint("GET", f"{A}/whatif", "What another threshold or budget would have done.", "read", structs.WhatIf,
             lambda s, p, q, b, a: s.view.what_if(**_fields(q)), WhatIfQuery),
    Endpoint("GET", f"{A}/proposals", "Proposals, the latest first.", "read", list[structs.ProposalInfo],
             lambda s, p, q, b, a: s.view.proposals(state=q.state), StateQuery),
    Endpoint("POST", f"{A}/proposals", "Make a proposal from what was seen and labelled. Nothing changes by it.", "admin", structs.ProposalInfo,
             lambda s, p, q, b, a: s.feedback.propose(entity=b.entity, group=b.group, budget=b.budget, author=_author(b, a), reason=b.reason), body=ProposeBody),
    Endpoint("POST", f"{A}/refits", "Fit a group's model again on kept history without what people marked, as a proposal. Nothing changes by it.", "admin",
             structs.ProposalInfo, lambda s, p, q, b, a: s.feedback.refit(group=b.group, budget=b.budget, author=_author(b, a), reason=b.reason), body=RefitBody),
    Endpoint("GET", f"{A}/proposals/{{number}}/shadow", "What a refit that waits says of the rows that came since; it raises nothing.", "read",
             structs.Shadow, lambda s, p, q, b, a: s.feedback.refits.shadow(_number(p))),
    Endpoint("GET", f"{A}/proposals/{{number}}", "One proposal.", "read", structs.ProposalInfo, lambda s, p, q, b, a: s.view.proposal(_number(p))),
    Endpoint("POST", f"{A}/proposals/{{number}}/take", "Put a proposal in force.", "admin", structs.ProposalInfo,
             lambda s, p, q, b, a: s.feedback.decide(_number(p), take=True, author=_author(b, a), reason=b.reason), body=Said),
    Endpoint("POST", f"{A}/proposals/{{number}}/leave", "Leave a proposal.", "admin", structs.ProposalInfo,
             lambda s, p, q, b, a: s.feedback.decide(_number(p), take=False, author=_author(b, a), reason=b.reason), body=Said),
    Endpoint("POST", f"{A}/proposals/{{number}}/revert", "Go back to the threshold before it.", "admin", structs.ProposalInfo,
             lambda s, p, q, b, a: s.feedback.revert(_number(p), author=_author(b, a), reason=b.reason), body=Said),
    Endpoint("GET", f"{A}/pauses", "Maintenance windows.", "read", list[structs.Pause], lambda s, p, q, b, a: s.view.pauses(ended=q.ended), EndedQuery),
    Endpoint("POST", f"{A}/pauses", "Begin a maintenance window: do not send, do not learn.", "admin", structs.Pause,
             lambda s, p, q, b, a: s.feedback.pause(author=_author(b, a), start=_seconds(b.start, "start"), stop=_seconds(b.stop, "stop"), **_fields(b, "author", "start", "stop")), body=PauseBody),
    Endpoint("POST", f"{A}/pauses/{{number}}/end", "End a maintenance window.", "admin", Done,
             lambda s, p, q, b, a: Done(s.feedback.end("pauses", _number(p), author=_author(b, a), reason=b.reason)), body=Said),
    Endpoint("GET", f"{A}/rules", "Suppression rules.", "read", list[structs.RuleInfo], lambda s, p, q, b, a: s.view.rules(ended=q.ended), EndedQuery),
    Endpoint("POST", f"{A}/rules", "Hold messages back of alarms about a channel, a direction or a small change; alarms stay visible.", "admin", structs.RuleInfo,
             lambda s, p, q, b, a: s.feedback.rule(author=_author(b, a), **_fields(b, "author")), body=RuleBody),
    Endpoint("POST", f"{A}/rules/{{number}}/end", "End a suppression rule.", "admin", Done,
             lambda s, p, q, b, a: Done(s.feedback.end("rules", _number(p), author=_author(b, a), reason=b.reason)), body=Said),
    Endpoint("GET", f"{A}/shards", "This service and its peers: which answer, what they watch, which alarms are on.", "read", list[structs.ShardInfo],
             lambda s, p, q, b, a: s.peers.shards()),
    Endpoint("GET", f"{A}/journal", "Who changed what, the latest first.", "read", list[JsonDict], lambda s, p, q, b, a: s.view.journal()),
)  # fmt: skip
