"""Mark alarms to be suppressed: by channel, direction or least change.

One grammar, for ``tisat alarm --suppress`` and for the rules of ``tisat serve``: ``CHANNEL[:up|down][:LEAST]``. It says **what is
suppressed**, so ``up`` is a rise that nobody wants to hear of.

============== =====================================================================================
``flow:up``    flow above what was expected
``temp:2.5``   a difference of less than 2.5 units from what was expected, either way
``temp:5%``    a difference of less than 5 % of what was expected
``flow:up:3``  a rise of less than 3
``door``       the channel, whatever it does
``pump_*:up``  a rise of any channel of this pattern
============== =====================================================================================

An alarm is suppressed where **every** channel with a large share of the evidence is covered. This module knows reasons, not detectors.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tisat.alarms.explanation import Reason
from tisat.errors import ParameterError
from tisat.utils.near_names import meant
from tisat.utils.stage import Folded, Stateless

if TYPE_CHECKING:
    from tisat.alarms.alarms import Alarm

LARGE = 0.25  # share of the evidence from which on a channel must be covered
DIRECTIONS = ("up", "down")
GRAMMAR = (
    "CHANNEL, CHANNEL:up, CHANNEL:down, CHANNEL:2.5 (a smaller change, in its units), CHANNEL:5% or CHANNEL:up:2.5"
)


@dataclass(frozen=True)
class Suppression:
    """One suppression rule."""

    channel: str  # a name or a pattern such as pump_*
    direction: str = ""  # up, down, or either
    least: float | None = None  # a smaller difference from the expected value is covered, in the channel's units
    relative: float | None = None  # the same as a share of the expected value

    @classmethod
    def parse(cls, text: str, *, channels: Sequence[str] | None = None) -> Suppression:
        """From ``"CHANNEL[:up|down][:LEAST]"``.

        Parameters
        ----------
        text : str
        channels : sequence of str, optional
            Those of the model: one of them must be meant.

        Raises
        ------
        ParameterError
            Where the text is not of the grammar, or names no channel of the model.

        Examples
        --------
        >>> Suppression.parse("flow:up:3")
        Suppression(channel='flow', direction='up', least=3.0, relative=None)
        >>> Suppression.parse("bearing_temp:2,5").least, Suppression.parse("temp:5%").relative
        (2.5, 0.05)
        """
        channel, *more = (part.strip() for part in text.split(":"))
        qualifiers = dict(map(_qualifier, more))
        known = "" not in qualifiers and len(qualifiers) == len(more) and not {"least", "relative"} <= set(qualifiers)
        if not channel or not known or (channel == "*" and not qualifiers):
            raise ParameterError(
                f"What is suppressed must be {GRAMMAR}. Got {text[:200]!r} instead.", parameter="suppress"
            )
        if channels is not None and not fnmatch.filter(channels, channel) and channel not in channels:
            raise ParameterError(
                f"What is suppressed must name a channel of the model: {', '.join(channels)}. Got {channel!r} instead.{meant(channel, channels)}",
                parameter="suppress",
            )
        return cls(channel, **qualifiers)  # type: ignore[arg-type]

    @property
    def text(self) -> str:
        """The same in the grammar.

        Examples
        --------
        >>> [Suppression.parse(text).text for text in ("flow:up:3", "temp:5%", "door")]
        ['flow:up:3', 'temp:5%', 'door']
        """
        share = None if self.relative is None else f"{100 * self.relative:.15g}%"
        least = None if self.least is None else f"{self.least:.15g}"
        return ":".join(part for part in (self.channel, self.direction, least, share) if part)

    def __str__(self) -> str:
        least = "" if self.least is None else f" by less than {self.least:g}"
        least = f" by less than {100 * self.relative:g} %" if self.relative is not None else least
        return f"{self.channel}{' ' + self.direction if self.direction else ''}{least}"

    def covers(self, reason: Reason) -> bool:
        """Check whether a reason is covered; one that cannot be compared is not."""
        if reason.channel != self.channel and not fnmatch.fnmatchcase(reason.channel, self.channel):
            return False
        if not self.direction and self.least is None and self.relative is None:
            return True
        if reason.seen is None or reason.expected is None:
            return False
        change = reason.seen - reason.expected
        if self.direction and (change == 0 or (change > 0) != (self.direction == "up")):
            return False
        if self.relative is not None and abs(change) >= self.relative * abs(reason.expected):
            return False
        return self.least is None or abs(change) < self.least


def _qualifier(part: str) -> tuple[str, str | float]:
    """Parse a part of a suppression to the name of its field and a value."""
    word = part.lower()
    if word in DIRECTIONS:
        return "direction", word
    number, share = word.removesuffix("%").replace(",", "."), word.endswith("%")
    try:
        value = float(number)
    except ValueError:
        return "", 0.0
    if not 0 < value < float("inf"):
        return "", 0.0
    return ("relative", value / 100.0) if share else ("least", value)


def covered(reasons: Sequence[Reason], rules: Sequence[Suppression]) -> list[Suppression]:
    """The rules by which an alarm with these reasons is suppressed.

    Empty where it is not.
    """
    main = [reason for place, reason in enumerate(reasons) if place == 0 or reason.share >= LARGE]
    found = [next((rule for rule in rules if rule.covers(reason)), None) for reason in main]
    used = [rule for rule in dict.fromkeys(found) if rule is not None]
    return [] if None in found else used


def suppressed_by(alarm: Alarm, rules: Sequence[Suppression]) -> str:
    """Why an alarm is suppressed, in words; empty where it is not."""
    return "; ".join(map(str, covered(alarm.reasons, rules)))


class Suppressor(Stateless, Folded["Alarm", "Alarm"]):
    """Mark alarms that the rules cover.

    Parameters
    ----------
    rules : sequence of Suppression
    """

    def __init__(self, rules: Sequence[Suppression]) -> None:
        self._rules = tuple(rules)

    def step(self, alarm: Alarm, /) -> Alarm:
        """Return the alarm with the reason it is suppressed for, empty where it is not."""
        return replace(alarm, suppressed=suppressed_by(alarm, self._rules))
