"""Types of the HTTP interface, shared by its description and the read side."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tisat.utils.types import JsonDict

MOST_CHANNELS = msgspec.Meta(max_length=20_000)  # of a row


class Row(msgspec.Struct, forbid_unknown_fields=True):
    """One row of one entity. Text in ``values``: a word that the model was told stands for a missing value. ``time``: a date, or seconds, milli-, micro- or nanoseconds since 1970; now unless given."""

    entity: str
    values: Annotated[list[float | str | None], MOST_CHANNELS] | Annotated[dict[str, float | str | None], MOST_CHANNELS]
    time: str | int | float | None = None
    group: str = ""

    def __post_init__(self) -> None:
        self.entity = self.entity.strip()  # a name with a space at its end is no other entity


class Outcome(msgspec.Struct, omit_defaults=True):
    """The outcome of a row; ``ratio`` is statistic / threshold."""

    entity: str
    status: str  # ok, warming up, unusable, late, duplicate, unconfirmed, refused or held
    time: float | None = None  # seconds since 1970, or on the entity's own clock
    score: float | None = None
    statistic: float | None = None
    threshold: float | None = None
    ratio: float | None = None
    active: bool = False
    raised: bool = False
    cleared: bool = False
    alarm: str | None = None  # id of the alarm raised or cleared here
    reason: str = ""


class Outcomes(msgspec.Struct):
    """The answer to rows: one outcome each, in their order, after all of them are on the disk."""

    outcomes: list[Outcome]
    taken: int
    refused: int


class EntityInfo(msgspec.Struct):
    """An entity now."""

    name: str
    group: str
    status: str  # alarm, ok, warming up, unusable, silent, waiting (no row yet)
    ratio: float | None
    statistic: float | None
    threshold: float
    time: float | None  # of the last row, by its own clock
    received: float  # when it came, seconds since 1970
    rows: int
    judged: int
    late: int
    refused: int
    alarm: str | None  # id of the alarm that is on
    silent_channels: list[str]
    paused: bool  # a maintenance window is on
    trouble: str  # what somebody should know of how its rows come in


class ChannelHistory(msgspec.Struct):
    """One channel over time: mean, least and largest of each step, and what was expected at its last row."""

    name: str
    attribution: float  # share of the evidence in the alarms of the stretch, 0 where there were none
    values: list[float | None]
    low: list[float | None]
    high: list[float | None]
    expected: list[float | None]
    spread: list[float | None]


class Pause(msgspec.Struct):
    """A maintenance window with its two switches. ``every``: repeated after so many seconds."""

    id: int
    pattern: str
    start: float
    stop: float
    silent: bool  # alarms are not sent
    unlearned: bool  # rows do not enter proposals and refits
    author: str
    reason: str
    every: float | None = None
    ended: float | None = None
    note: str = ""  # where no entity fits the pattern now


class Label(msgspec.Struct):
    """A label of an alarm."""

    id: int
    alarm: str
    word: str  # true, false, expected, new normal
    author: str
    reason: str
    at: float


class Acknowledgement(msgspec.Struct):
    """Who is on an alarm; ``until``: it is snoozed, and Alertmanager is told of it again from then on."""

    id: int
    alarm: str
    author: str
    reason: str
    at: float
    until: float | None


class ReasonInfo(msgspec.Struct):
    """The contribution of one channel to an alarm, in the user's units."""

    channel: str
    share: float
    seen: float | None
    expected: float | None
    spread: float | None
    words: str = ""


class AlarmInfo(msgspec.Struct):
    """An alarm, in a list."""

    id: str
    entity: str
    group: str
    sort: str  # statistic; or about the data: silence (no rows), channel (one says nothing)
    raised: float
    onset: float
    cleared: float | None
    ratio: float  # largest statistic / threshold so far; 0 for alarms about the data
    kind: str
    why: str
    channels: list[str]  # the most contributing first
    budget: str
    label: str  # the last one given, or "unmarked"
    suppressed: str  # why nobody was told; empty: it was sent
    pause: int | None  # the maintenance window it fell into
    severity: str = (
        ""  # minor, major or critical: by the largest statistic / threshold so far; a silent entity is major
    )
    state: str = ""  # raised, ongoing (still different), back, new normal, merged or cleared
    incident: str = ""  # the id of the first alarm of those that began together
    known: str = ""  # the accepted pattern it is of: nobody is called
    ongoing_since: float | None = None  # when the statistic fell while its channels were still different
    acknowledged: str = ""  # who is on it
    accepted: str = ""  # who accepted it, of an alarm asked for by itself: it is or will be the new normal
    snoozed: float | None = None  # nobody is told again until then, seconds since 1970


class IncidentInfo(msgspec.Struct):
    """Alarms that began together over entities."""

    id: str  # of the alarm that was raised first
    onset: float
    raised: float
    cleared: float | None  # None: one of them is on or ongoing
    entity: str  # that moved first: its alarm was raised first
    channel: str  # of it, that moved first
    entities: list[str]  # in the order in which they moved
    channels: list[str]
    severity: str  # the highest; critical where several entities are silent
    state: str
    label: str  # of all its alarms, or "mixed"
    words: str
    alarms: list[AlarmInfo]


class RecurrenceInfo(msgspec.Struct):
    """Alarms of an entity that are alike, as one."""

    entity: str
    kind: str
    channel: str
    count: int
    first: float  # when the first of them was raised
    rhythm: str  # "nightly at 02:00"; empty where there is none
    words: str  # "12th time, nightly at 02:00 since 3 March"; empty for fewer than three
    last: AlarmInfo
    alarms: list[str]  # ids, the latest first


class PatternInfo(msgspec.Struct):
    """A pattern of alarms that people know; alarms of it are raised and counted, and nobody is called."""

    id: int
    group: str
    words: str
    known: int  # alarms that were known by it
    author: str
    reason: str
    at: float
    ended: float | None = None


class FurtherInfo(msgspec.Struct):
    """Channels that joined an alarm while it was on."""

    at: int  # row
    time: str | float | None
    kind: str
    reasons: list[ReasonInfo]


class AlarmPage(msgspec.Struct):
    """An alarm with everything a person needs to decide."""

    alarm: AlarmInfo
    reasons: list[ReasonInfo]
    further: list[FurtherInfo]
    shares: dict[str, float]
    threshold: float
    statistic: float
    rule: str
    labels: list[Label]
    similar: list[AlarmInfo]  # earlier ones of the same entity with the same first channel
    together: list[AlarmInfo]  # the other alarms of its incident
    recurrence: str  # "12th time, nightly at 02:00 since 3 March"; empty where it does not recur
    sentences: list[str]


class History(msgspec.Struct):
    """A stretch of one entity, in steps."""

    entity: str
    group: str
    start: float
    stop: float
    step: float  # seconds
    rows: int
    times: list[float]  # first moment of each step
    ratio: list[float | None]  # largest statistic / threshold in the step
    statistic: list[float | None]
    threshold: list[float | None]
    status: list[str]  # of the worst row: alarm, ok, warming up, unusable, none
    channels: list[ChannelHistory]  # the most contributing first
    alarms: list[AlarmInfo]
    pauses: list[Pause]


class HeatMap(msgspec.Struct):
    """Entities x time. ``ratio`` is None where there is none; ``state`` says why: calm and alarm have a ratio."""

    start: float
    stop: float
    step: float
    times: list[float]
    entities: list[str]
    groups: list[str]
    status: list[str]  # of each entity now
    ratio: list[list[float | None]]
    state: list[str]  # a word of letters each: c calm, a alarm, u unusable, w warming up, - nothing came


class ShardInfo(msgspec.Struct):
    """One of several services that share a fleet, as another sees it."""

    address: str  # empty: the one that was asked
    shard: str  # such as 2/8, where it is one of a fixed number
    up: bool
    why: str  # it is down
    heard: float | None  # when it last answered
    counts: dict[str, int]  # entities by status
    rows_per_second: float
    problems: list[str]
    entities: list[EntityInfo]  # where it is down: those it had when it last answered
    alarms: list[AlarmInfo]  # that are on


class LedgerLine(msgspec.Struct):
    """The budget of one entity, of a group or of all: what was allowed and what was raised."""

    name: str
    rows: int  # rows judged
    allowed: float  # false alarms the budget allows in so many
    raised: int  # statistical alarms, suppressed ones too
    true: int
    false: int
    expected: int
    new_normal: int
    unmarked: int
    suppressed: int
    raised_low: float  # exact 95 % Poisson interval of the number raised
    raised_high: float
    false_low: float  # of the number marked false
    false_high: float
    over: bool  # even the low end of those marked false is above what is allowed
    doubt: bool  # false and unmarked together are: nobody has looked yet


class Ledger(msgspec.Struct):
    """What the budget was and what became of it."""

    start: float | None
    stop: float | None
    fleet: LedgerLine
    groups: list[LedgerLine]
    entities: list[LedgerLine]
    budgets: list[GroupBudget]


class GroupBudget(msgspec.Struct):
    """What a group's threshold stands on."""

    group: str
    budget: str  # as it was said, per entity
    threshold: float
    asked: float  # rows between two false alarms of one entity
    supported: float  # the rarest the training data can support
    extrapolated: float  # how much rarer than that was asked
    period: float | None  # seconds
    entities: int
    rule: str
    sentences: list[str]


class WhatIfAlarm(msgspec.Struct):
    """An alarm there would have been, and what it is in the book."""

    entity: str
    raised: float
    cleared: float | None
    was: str | None  # id of the alarm it overlaps
    label: str
    delay: float | None  # seconds later than it was raised; negative: earlier


class WhatIf(msgspec.Struct):
    """What another threshold would have done, from stored statistics: exact where ``exact``."""

    threshold: float
    budget: str | None
    exact: bool
    rows: int
    allowed: float
    before: int  # alarms there were
    alarms: list[WhatIfAlarm]
    avoided: list[str]  # ids that would not have been raised
    lost_true: int
    avoided_false: int
    sentences: list[str]


class Shadow(msgspec.Struct):
    """What a refit that waits says of the rows that came after it was made.

    It raises nothing.
    """

    proposal: int
    since: float
    rows: int
    in_force: int  # alarms of the model in force
    shadow: int  # alarms there would have been
    both: int  # of these, alarms that overlap one of the model in force
    alarms: list[WhatIfAlarm]
    sentences: list[str]


class ProposalInfo(msgspec.Struct):
    """Another threshold, another model (``kind`` refit) or a known pattern (``kind`` pattern), with its consequences; in force only once somebody takes it."""

    id: int
    group: str
    entity: str | None  # None: for the whole group
    state: str  # open, taken, left, reverted
    at: float
    author: str
    reason: str
    threshold_before: float
    threshold_after: float
    budget: str
    sentences: list[str]
    loses_true: bool
    document: JsonDict
    kind: str = "threshold"


class RuleInfo(msgspec.Struct):
    """A suppression rule: what nobody is told of, as ``tisat alarm --suppress`` has it."""

    id: int
    pattern: str  # of entities
    suppress: str
    author: str
    reason: str
    ended: float | None = None
    note: str = ""  # where no entity fits the pattern now
