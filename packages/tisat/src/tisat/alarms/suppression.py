"""Alarms one does not want to be woken by: a channel, a direction, a least change in units. They are marked, never dropped.

``"flow:up"``: flow above what was expected is harmless. ``"bearing_temp:2.5"``: a difference of less than 2.5 units is not worth an alarm. ``"flow:up:3"``: both, a rise
of less than 3. ``"door"``: the channel alone is never a reason. An alarm is suppressed where **every** channel with a large share of the evidence is covered.
This module knows reasons, not detectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tisat.alarms.explanation import Reason
from tisat.errors import ParameterError

if TYPE_CHECKING:
    from tisat.alarms.alarms import Alarm

LARGE = 0.25  # share of the evidence from which on a channel must be covered
DIRECTIONS = ("up", "down")


@dataclass(frozen=True)
class Suppression:
    """What one does not want to hear of."""

    channel: str
    direction: str = ""  # up, down, or either
    least: float | None = None  # a difference from the expected value below this is covered, in the channel's units

    @classmethod
    def parse(cls, text: str, *, channels: Sequence[str] | None = None) -> Suppression:
        """From ``"channel[:up|down][:least]"``.

        Examples
        --------
        >>> Suppression.parse("flow:up:3")
        Suppression(channel='flow', direction='up', least=3.0)
        >>> Suppression.parse("bearing_temp:2,5").least
        2.5
        """
        channel, *more = (part.strip() for part in text.rsplit(":", text.count(":")) if part.strip())
        direction, least = "", None
        for part in more:
            if part.lower() in DIRECTIONS and not direction:
                direction = part.lower()
                continue
            try:
                least = float(part.replace(",", "."))
            except ValueError:
                least = -1.0
            if not 0 < least < float("inf"):
                raise ParameterError(
                    f"--suppress must be CHANNEL, CHANNEL:up, CHANNEL:down or CHANNEL:up:2.5 (a change in its units). Got {text!r} instead."
                )
        if channels is not None and channel not in channels:
            raise ParameterError(
                f"--suppress must name a channel of the model: {', '.join(channels)}. Got {channel!r} instead."
            )
        return cls(channel, direction, least)

    def __str__(self) -> str:
        least = "" if self.least is None else f" by less than {self.least:g}"
        return f"{self.channel}{' ' + self.direction if self.direction else ''}{least}"

    def covers(self, reason: Reason) -> bool:
        """Whether a reason is one that was not to be heard of; what cannot be compared is not covered."""
        if reason.channel != self.channel:
            return False
        if not self.direction and self.least is None:
            return True
        if reason.seen is None or reason.expected is None:
            return False
        change = reason.seen - reason.expected
        if self.direction and (change > 0) != (self.direction == "up"):
            return False
        return self.least is None or abs(change) < self.least


def suppressed_by(alarm: Alarm, rules: Sequence[Suppression]) -> str:
    """Why an alarm is suppressed, in words; empty where it is not."""
    main = [reason for place, reason in enumerate(alarm.reasons) if place == 0 or reason.share >= LARGE]
    found = [next((rule for rule in rules if rule.covers(reason)), None) for reason in main]
    if not found or any(rule is None for rule in found):
        return ""
    return "; ".join(dict.fromkeys(map(str, found)))
