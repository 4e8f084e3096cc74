"""What a monitor says about one row."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tisat.alarms.alarms import Alarm
from tisat.gap_filling import Silence
from tisat.utils.types import JsonDict


@dataclass(frozen=True, slots=True)
class RowResult:
    """What a monitor says about one row.

    Examples
    --------
    >>> import numpy as np
    >>> from tisat import Watch
    >>> rng = np.random.default_rng(0)
    >>> watch = Watch("mahalanobis", budget="1/100 rows").fit(rng.normal(size=(2000, 2)))
    >>> result = watch.monitor().update([0.0, 0.0])
    >>> result.raised, result.status
    (False, 'warming up')
    """

    row: int  # rows accepted before this one; -1 for a row that was left out
    status: str  # ok, warming up, unusable, late, duplicate, unconfirmed or refused
    score: float = float("nan")  # NaN where there is none
    evidence: float = float("nan")  # what the row adds
    statistic: float = float("nan")  # evidence of the last rows
    threshold: float = float("nan")  # h
    active: bool = False  # the alarm is on
    raised: bool = False  # it was raised at this row
    cleared: bool = False  # it was on before this row and is not any more
    alarm: Alarm | None = None  # the alarm that was raised, cleared, joined, or outgrew its pattern at this row
    time: object = None  # as it was given
    silences: tuple[Silence, ...] = ()  # channels that fell silent at this row, or came back
    reason: str = ""  # why a row was refused; a gap before it
    entity: str = ""  # whose row it is
    state: str = "calm"  # raised, ongoing or calm: of the entity after this row
    ended: tuple[Alarm, ...] = ()  # alarms that were ongoing and are back, or the new normal, at this row

    def to_json(self) -> JsonDict:
        """Plain values; NaN becomes None."""
        return {
            "row": self.row if self.row >= 0 else None,
            "time": self.time if self.time is None or isinstance(self.time, int | float) else str(self.time),
            "status": self.status,
            "score": _finite_or_none(self.score),
            "evidence": _finite_or_none(self.evidence),
            "statistic": _finite_or_none(self.statistic),
            "threshold": _finite_or_none(self.threshold),
            "active": self.active,
            "raised": self.raised,
            "cleared": self.cleared,
            "alarm": None if self.alarm is None else self.alarm.to_json(),
            "state": self.state,
            **({"ended": [one.to_json() for one in self.ended]} if self.ended else {}),
            **({"data": [one.to_json() for one in self.silences]} if self.silences else {}),
            **({"reason": self.reason} if self.reason else {}),
        }


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
