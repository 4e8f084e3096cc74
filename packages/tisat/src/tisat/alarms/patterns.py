"""Derive patterns of known alarms from labels, with their consequences.

An alarm has a **fingerprint**: its kind, the operating mode (the last switch before it), the channels of its reasons with their
shares and signs, the time of the day, and whether it was a working day, a Saturday or a Sunday. Labels ``false`` and ``expected``
propose patterns, one for each kind, mode and sort of day; in another mode, or on a Saturday, an alarm must look more alike, on a Sunday
or after a switch the other way it is another. Alarms labelled ``true`` say what a pattern would hide. An alarm that an accepted
pattern matches is **known**: it is counted and stays in every table, and nobody is called. It is not known any more where further
channels join it, where it is ongoing, or from the row on at which it is clearly stronger or longer than every labelled alarm of the
pattern: that is not what people saw. This module knows alarms, not detectors.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tisat.errors import ArtefactError
from tisat.utils.types import JsonDict

if TYPE_CHECKING:
    from tisat.alarms.alarms import Alarm

ALIKE = 0.4  # cosine between the shares of an alarm and of a labelled one, in the same mode
ALIKE_WITHOUT_MODE = 0.6  # where no mode is known
ALIKE_ELSEWHERE = 0.7  # in another mode, or on another sort of day
COVERED = 0.6  # of the shares of a labelled alarm that lie on channels of an alarm it knows: one channel alone is another fault
LEADING = 0.3  # of the share of its first channel that the labelled alarm must have there
STRONGER = 1.75  # times the strongest labelled alarm, and
LONGER = 2.5  # times the longest: a known alarm is at most so strong and so long
MOST_EXAMPLES = 50  # labelled alarms kept in a pattern
TOGETHER = 60  # minutes of the day that two alarms of one time are apart at most
FEWEST = 2  # alarms at one time of the day that make it part of a pattern
WITHOUT_SIGN = ("stuck", "restless", "rhythm")  # kinds whose values have no direction
PROPOSING = ("false", "expected")
DAY = 24 * 60
SHOWN = 3  # channels in words
DAYS = {5: "Saturday", 6: "Sunday"}
WORDS = {1: "up", -1: "down", 0: ""}


Shares = tuple[tuple[str, int, float], ...]  # channel, sign (0 where there is none) and share, largest first


@dataclass(frozen=True)
class Fingerprint:
    """The features of an alarm that patterns compare."""

    kind: str
    mode: str  # empty where unknown
    channels: Shares
    minute: int | None = None  # of the day, local; None without a clock
    day: str = ""  # working day, Saturday or Sunday; empty without a clock

    @property
    def leader(self) -> tuple[str, int] | None:
        """The first channel and its sign; None where no channel is known."""
        return self.channels[0][:2] if self.channels else None

    @classmethod
    def of(cls, alarm: Alarm) -> Fingerprint:
        """The fingerprint of an alarm, from what was known when it was raised."""
        channels = []
        for reason in alarm.reasons:
            sign = 0
            if alarm.kind not in WITHOUT_SIGN and reason.seen is not None and reason.expected is not None:
                sign = 1 if reason.seen > reason.expected else -1
            channels.append((reason.channel, sign, float(reason.share)))
        moment = moment_of(alarm.raised_time)
        if moment is None:
            return cls(alarm.kind, alarm.mode, tuple(channels))
        day = DAYS.get(moment.weekday(), "working day")
        return cls(alarm.kind, alarm.mode, tuple(channels), moment.hour * 60 + moment.minute, day)


def share_similarity(first: Shares, second: Shares) -> float:
    """The cosine of the angle between the shares of two fingerprints: 1 alike, 0 nothing in common.

    Examples
    --------
    >>> round(share_similarity((("flow", 1, 0.6), ("load", 1, 0.8)), (("flow", 1, 1.0),)), 3)
    0.6
    """
    there = {(channel, sign): share for channel, sign, share in second}
    both = sum(share * there.get((channel, sign), 0.0) for channel, sign, share in first)
    sizes = math.hypot(*(share for *_, share in first)) * math.hypot(*there.values())
    return both / sizes if sizes else 0.0


def _covered(labelled: Shares, found: Shares) -> float:
    """The part of a labelled alarm's shares that lies on channels, with their signs, of another alarm."""
    there = {(channel, sign) for channel, sign, _ in found}
    return sum(share for channel, sign, share in labelled if (channel, sign) in there) / max(
        sum(share for *_, share in labelled), 1e-9
    )


def moment_of(stamp: str | float | None) -> datetime.datetime | None:
    """Read a timestamp as alarms carry it; None where it is no date."""
    if not isinstance(stamp, str):
        return None
    try:
        return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00"))
    except ValueError:
        return None


def time_apart(first: int, second: int) -> int:
    """Minutes between two times of the day."""
    return min((first - second) % DAY, (second - first) % DAY)


@dataclass(frozen=True)
class Pattern:
    """A kind of known alarm: one labelled alarm, or several similar ones."""

    kind: str
    mode: str
    day: str
    minute: int | None  # of the day it happens at; None: at any time
    examples: tuple[Shares, ...]  # of the labelled alarms
    strongest: float | None = None  # most times its threshold that a known alarm reaches; None: no limit
    longest: float | None = None  # most rows that a known alarm is on

    def matches(self, alarm: Alarm, *, now: int | None = None) -> bool:
        """Whether an alarm is of this kind: led by a channel of one of the examples and near it, nearer where mode or day differ.

        Of one that is still on, ``now`` is the row after the last known one.
        """
        if self._exceeded(alarm, now):
            return False
        fingerprint = Fingerprint.of(alarm)
        if fingerprint.kind != self.kind or not fingerprint.channels or not self._possible(fingerprint):
            return False
        if self.minute is not None and (
            fingerprint.minute is None or time_apart(fingerprint.minute, self.minute) > TOGETHER
        ):
            return False
        least = ALIKE if self.mode else ALIKE_WITHOUT_MODE
        if (fingerprint.mode, fingerprint.day) != (self.mode, self.day):
            least = ALIKE_ELSEWHERE
        channel, sign, share = fingerprint.channels[0]
        return any(
            {(name, way): part for name, way, part in one}.get((channel, sign), 0.0) >= LEADING * share
            and share_similarity(fingerprint.channels, one) >= least
            and _covered(one, fingerprint.channels) >= COVERED
            for one in self.examples
        )

    def _exceeded(self, alarm: Alarm, now: int | None) -> bool:
        """Whether an alarm is stronger or longer than this pattern allows."""
        if self.strongest is not None and alarm.peak > self.strongest * alarm.threshold:
            return True
        rows = _rows_on(alarm, now)
        return self.longest is not None and rows is not None and rows > self.longest

    def _possible(self, found: Fingerprint) -> bool:
        """Whether mode and day do not speak against it: a Sunday is no other day, and a switch the other way is another mode."""
        same_switch = self.mode.rpartition(" ")[0] == found.mode.rpartition(" ")[0]
        return (found.day == "Sunday") == (self.day == "Sunday") and (found.mode == self.mode or not same_switch)

    def __str__(self) -> str:
        when = "" if self.minute is None else f" at about {self.minute // 60:02d}:{self.minute % 60:02d}"
        if self.day:
            when += " on Sundays" if self.day == "Sunday" else ", not on Sundays"
        ways: dict[str, list[str]] = {}  # of all labelled alarms: a pattern of two directions names both
        for one in self.examples:
            for channel, sign, _ in one[:SHOWN]:
                ways.setdefault(channel, [])
                ways[channel] += [WORDS[sign]] * (WORDS[sign] not in ways[channel])
        named = [f"{name} {' or '.join(way)}".strip() for name, way in list(ways.items())[:SHOWN]]
        limits = [
            "" if self.strongest is None else f"{self.strongest:.1f} x h",
            "" if self.longest is None else f"{self.longest:.0f} rows",
        ]
        most = " and ".join(filter(None, limits))
        seen = [f"on a {self.day}" if self.day else "", f"after {self.mode}" if self.mode else ""]
        first = " ".join(filter(None, seen))
        return f"{self.kind}{when}: {', '.join(named)}{most and f', up to {most}'}{first and f' (labelled {first})'}"

    def to_json(self) -> JsonDict:
        """Plain values."""
        return {**vars(self), "examples": [[list(one) for one in example] for example in self.examples]}

    @classmethod
    def from_json(cls, document: object) -> Pattern:
        """Back from :meth:`to_json`, which may come from a file: what is no pattern is refused."""
        refusal = ArtefactError(
            "A pattern must have a kind, a mode, a day, a minute, and examples of channels with signs and shares; its limits must not be negative."
        )
        if not isinstance(document, Mapping):
            raise refusal
        try:
            texts = [document[name] for name in ("kind", "mode", "day")]
            examples = tuple(
                tuple((str(name), int(sign), float(share)) for name, sign, share in example)
                for example in document["examples"]
            )
            minute = document["minute"]
        except (KeyError, TypeError, ValueError):
            raise refusal from None
        timed = minute is None or (type(minute) is int and 0 <= minute < DAY)
        shares = [(sign, share) for example in examples for _, sign, share in example]
        limits = document.get("strongest"), document.get("longest")
        timed &= all(limit is None or (type(limit) in (int, float) and 0 <= limit < math.inf) for limit in limits)
        good = timed and all(isinstance(text, str) for text in texts) and 0 < len(examples) <= MOST_EXAMPLES
        if not good or not all(sign in WORDS and 0 <= share <= 1.000001 for sign, share in shares):
            raise refusal
        return cls(texts[0], texts[1], texts[2], minute, examples, *limits)


@dataclass(frozen=True)
class PatternProposal:
    """A pattern with what it would have avoided and hidden in the alarms on record."""

    pattern: Pattern
    labelled: int  # alarms labelled false or expected that it was made from
    avoided: int  # alarms labelled false or expected that would be known by it
    hidden: int  # alarms labelled true that it matches
    unlabelled: int  # alarms nobody labelled that it matches

    @property
    def safe(self) -> bool:
        """Whether it hides no alarm that was labelled true."""
        return self.hidden == 0

    @property
    def words(self) -> str:
        """The proposal as a sentence."""
        hidden = f"It would have hidden {self.hidden} true alarm{'s' * (self.hidden != 1)}"
        return (
            f"{self.pattern}. It would have avoided {self.avoided} false or expected alarm{'s' * (self.avoided != 1)}. {hidden}, "
            f"and {self.unlabelled} that nobody labelled."
        )

    def to_json(self) -> JsonDict:
        """Plain values."""
        return {**vars(self), "pattern": self.pattern.to_json(), "words": self.words}


def propose_patterns(alarms: Sequence[Alarm], labels: Mapping[int, str]) -> tuple[PatternProposal, ...]:
    """Patterns of the alarms labelled false or expected that would have avoided one, those that avoid most first.

    Parameters
    ----------
    alarms : sequence of Alarm
        On record, labelled or not.
    labels : mapping from int to str
        What alarms were, by the row of their raise.
    """
    groups: dict[tuple[str, str, str], list[Fingerprint]] = {}
    members: dict[tuple[str, str, str], list[Alarm]] = {}
    for alarm in alarms:
        if labels.get(alarm.raised) in PROPOSING and alarm.reasons:
            found = Fingerprint.of(alarm)
            groups.setdefault((found.kind, found.mode, found.day), []).append(found)
            members.setdefault((found.kind, found.mode, found.day), []).append(alarm)
    proposals = []
    for (kind, mode, day), group in groups.items():
        alike = [
            one for others in groups.values() for one in others if one.kind == kind and one.leader == group[0].leader
        ]
        minute = _common_minute(group) if len(group) >= FEWEST else _common_minute(alike)
        examples = tuple(one.channels for one in group[-MOST_EXAMPLES:])
        pattern = Pattern(kind, mode, day, minute, examples, *_limits(members[kind, mode, day]))
        matched = [labels.get(one.raised, "unlabelled") for one in alarms if pattern.matches(one)]
        avoided = sum(labels.get(one.raised) in PROPOSING and bool(known_by(one, [pattern])) for one in alarms)
        counts = (avoided, matched.count("true"), matched.count("unlabelled"))
        if avoided:  # of each of the others more became: somebody would be called as before
            proposals.append(PatternProposal(pattern, len(group), *counts))
    return tuple(sorted(proposals, key=lambda one: (-one.avoided, str(one.pattern))))


def _rows_on(alarm: Alarm, now: int | None = None) -> int | None:
    """Rows that an alarm was on; None where it is still on and ``now`` is not known."""
    end = now if alarm.cleared is None else alarm.cleared
    return None if end is None else end - alarm.raised


def _limits(labelled: Sequence[Alarm]) -> tuple[float | None, int | None]:
    """How strong and how long an alarm of a pattern may be, from the labelled ones."""
    strengths = [one.peak / one.threshold for one in labelled if one.threshold > 0]
    lengths = [rows for one in labelled if (rows := _rows_on(one)) is not None]
    return (
        STRONGER * max(strengths) if strengths else None,
        math.ceil(LONGER * max(lengths)) if lengths else None,
    )


def _common_minute(group: Sequence[Fingerprint]) -> int | None:
    """The time of the day of a group whose alarms are all near it.

    None where there are few, or they are not.
    """
    minutes = [one.minute for one in group if one.minute is not None]
    if len(minutes) < max(FEWEST, len(group)):
        return None
    middle = min(minutes, key=lambda here: sum(time_apart(here, there) for there in minutes))
    return middle if all(time_apart(middle, there) <= TOGETHER // 2 for there in minutes) else None


def known_by(alarm: Alarm, patterns: Sequence[Pattern], *, now: int | None = None) -> str:
    """The pattern that an alarm is known by, in words.

    Empty where it is not, or where more became of it.
    """
    if alarm.further or alarm.ongoing_since is not None:
        return ""
    return next((str(one) for one in patterns if one.matches(alarm, now=now)), "")


def demoted(alarm: Alarm, patterns: Sequence[Pattern], *, now: int | None = None) -> Alarm:
    """The alarm, marked where a pattern knows it; ``now`` is the row after the last known one."""
    return replace(alarm, known=known_by(alarm, patterns, now=now)) if patterns or alarm.known else alarm
