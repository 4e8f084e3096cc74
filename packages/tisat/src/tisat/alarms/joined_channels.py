"""Find channels that join an alarm while it is on.

An alarm stays on while its statistic is high, and a second fault that begins meanwhile raises nothing. It is named
instead: the detector is asked for its reasons, and channels with a large share that the alarm has not named yet are
added to it. It is asked

* at each row with evidence, where that is cheap; then a channel must be far from where it is expected at this row, and what
  says so must be of this row alone, or nearly all of the evidence;
* where the statistic climbs by half the threshold within :data:`BACK` rows. The statistic is held, so that a second
  fault that is weaker than the first does not show in it.

A broken correlation with a channel that the alarm names is the fault of that one, or its end, and no other: it joins only
where the statistic climbs and the other has the larger share.

The alarm stays one alarm, and the budget counts it once. A fault that returns on a channel already named adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tisat.alarms.explanation import Explanation, Reason, reason_from_json, reason_to_json
from tisat.alarms.sentences import Habits, joining
from tisat.utils.stage import Folded, State, Stateful
from tisat.utils.types import Integers, JsonDict, JsonMap

BACK = 20  # rows a climb may take, and between two looks
CLIMB = 0.5  # of the threshold
LARGE = 0.3  # share of the evidence from which a channel is worth naming
MOST = 0.75  # share from which a broken correlation is named without a climb
FAR = 5.0  # spreads from where it is expected
BROKEN = "broken correlation"
OF_MANY_ROWS = ("pattern", BROKEN)  # kinds that still speak of a fault that has ended, on its partners


@dataclass(frozen=True)
class Further:
    """Channels that joined an alarm while it was on."""

    at: int  # row
    time: str | float | None  # its timestamp, where there is one
    kind: str  # what it looks like
    reasons: tuple[Reason, ...]

    def to_json(self) -> JsonDict:
        """Plain values."""
        return {
            "at": self.at,
            "time": self.time,
            "kind": self.kind,
            "reasons": [reason_to_json(one) for one in self.reasons],
        }

    @classmethod
    def from_json(cls, document: JsonMap) -> Further:
        """Back from :meth:`to_json`."""
        return cls(**{**document, "reasons": tuple(map(reason_from_json, document["reasons"]))})

    @property
    def why(self) -> str:
        """The reasons as one sentence."""
        return "; ".join(map(str, self.reasons))


class Climb(Stateful, Folded[float, bool]):
    """Says where the statistic of an alarm that is on climbs again.

    Examples
    --------
    >>> climb = Climb()
    >>> rows = [5.0] * 30 + [6.0, 9.0, 9.0]
    >>> [row for row, statistic in enumerate(rows) if climb.step(statistic, threshold=4.0)]
    [31]
    """

    _kept = ("recent", "seen")

    def __init__(self) -> None:
        self._recent = np.zeros(BACK)
        self._seen = np.zeros(1, dtype=np.int64)

    def begin(self) -> None:
        """An alarm was raised."""
        self._seen[0] = 0

    def step(self, statistic: float, /, *, threshold: float = 0.0) -> bool:
        """Check whether the alarm's next row is one to look at."""
        rows_seen = int(self._seen[0])
        if rows_seen >= BACK and statistic - self._recent.min() >= CLIMB * threshold > 0:
            self._seen[0] = 0
            return True
        self._recent[rows_seen % BACK] = statistic
        self._seen[0] = rows_seen + 1
        return False

    def restore(self, state: State, /) -> None:
        """Continue from what :meth:`state` returned."""
        super().restore(state)
        self._seen[:] = max(int(self._seen[0]), 0)


def _far_now(one: Reason) -> bool:
    if one.seen is None or one.expected is None or not one.spread:
        return False
    return abs(one.seen - one.expected) >= FAR * one.spread


def _of_named(one: Reason, named: set[str], why: Explanation, names: Sequence[str], *, climbed: bool) -> bool:
    """Whether a broken correlation may be the fault of a channel named already: of one that is compared with it, or it with that one."""
    place = {name: c for c, name in enumerate(names)}
    c, partners = place[one.channel], why.partners
    related = [
        j for j in map(place.get, named) if j is not None and partners and (j in partners[c] or c in partners[j])
    ]
    return bool(related) and (not climbed or one.share <= max(float(why.channels[j]) for j in related))


def newly_named(
    why: Explanation, names: Sequence[str], named: set[str], still: Integers | None, habits: Habits, *, climbed: bool
) -> tuple[Reason, ...]:
    """The reasons of channels with a large share that are not among those named, and not just as expected.

    Where the statistic has not ``climbed``, of channels that are far from it at this very row.
    """
    chosen = [one for one in why.reasons(names) if one.share >= LARGE and one.channel not in named]
    if not climbed or why.kind == BROKEN:
        chosen = list(filter(_far_now, chosen))
    if why.kind == BROKEN:
        chosen = [one for one in chosen if not _of_named(one, named, why, names, climbed=climbed)]
    if not climbed and why.kind in OF_MANY_ROWS:
        chosen = [one for one in chosen if why.kind == BROKEN and one.share >= MOST]
    return joining(chosen, why, names, np.zeros(len(names), dtype=np.int64) if still is None else still, habits)
