"""Online: rows in, verdicts out, within a false-alarm budget; bounded memory, and a file to go on from after a crash.

Pushing rows one by one gives what the batch call gives: the points up to the rounding of a network's arithmetic, and
from the same points the same evidence, statistic and alarms to the bit, because both run the same loops.

What can happen to a row, and what is done about it:

* a missing value is carried forward for at most ``MAX_GAP`` instants, as :mod:`tisat.missing` says; beyond it the row is
  ``unusable``, its score is NaN, an alarm that was on ends, and warm-up begins again;
* a time not after the last one is ``late`` or ``duplicate``: the row is left out and nothing changes, because the
  scores that depended on it have been given;
* a jump in time of more than ``MAX_GAP`` sampling periods: the past is forgotten and warm-up begins again;
* infinity or a wrong number of values is an error, and nothing changes either.

Several entities at once are the business of :mod:`tisat.online.fleet`; a detector comes in by what it does, not by what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tisat.artefact import read_artefact, write_artefact
from tisat.errors import ParameterError, SeriesError
from tisat.missing import CarryForward
from tisat.online.plan import (
    Array,
    DetectorLike,
    Plan,
    check_fingerprint,
    fingerprint,
    plan_alarms,
    plan_from_json,
    plan_to_json,
)
from tisat.online.rowclock import RowClock, stamp_of
from tisat.sequential.alarms import Alarm, named_shares, shares_of
from tisat.sequential.calibration import Calibration
from tisat.sequential.rules import Scored


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a monitor says about one row."""

    row: int  # rows accepted before this one; -1 for a late or duplicate row
    status: str  # ok, warming up, unusable, late or duplicate
    score: float  # NaN where there is none
    evidence: float
    statistic: float
    threshold: float  # h
    active: bool  # the alarm is on
    raised: bool = False  # it was raised at this row
    cleared: bool = False  # it was on before this row and is not any more
    alarm: Alarm | None = None  # the alarm raised or cleared at this row
    time: Any = None  # as it was given

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN becomes None."""
        return {
            "row": self.row,
            "time": None
            if self.time is None
            else (self.time if isinstance(self.time, int | float) else str(self.time)),
            "status": self.status,
            "score": _known(self.score),
            "evidence": _known(self.evidence),
            "statistic": _known(self.statistic),
            "threshold": self.threshold,
            "active": self.active,
            "raised": self.raised,
            "cleared": self.cleared,
            "alarm": None if self.alarm is None else self.alarm.to_json(),
        }


def _known(value: float) -> float | None:
    return None if value != value else value


class Monitor:
    """A detector watching one entity.

    Parameters
    ----------
    detector : Detector
        Fitted.
    false_alarms : str, float, timedelta or Plan
        The budget; or a :class:`Plan`, to share one calibration among monitors.
    name : str
        The entity, as it appears in alarms.
    **options
        Of :func:`plan_alarms`.

    Examples
    --------
    >>> import tisat
    >>> detector = tisat.registry.resolve("random-guess")().fit(np.zeros((5000, 2)))
    >>> monitor = Monitor(detector, false_alarms="1/250 instants", rule="threshold")
    >>> verdict = monitor.update([1.0, 2.0], time="2026-01-01T00:00")
    >>> verdict.row, verdict.status, verdict.active
    (0, 'ok', False)
    >>> monitor.update([1.0, 2.0], time="2025-12-31T23:59").status
    'late'
    """

    def __init__(self, detector: DetectorLike, *, false_alarms: Any, name: str = "", **options: Any) -> None:
        if isinstance(false_alarms, Plan):
            if options:
                raise ParameterError(
                    f"The options of a monitor must be part of its plan. Got {', '.join(options)} besides it."
                )
            self.plan = false_alarms
        else:
            self.plan = plan_alarms(detector, false_alarms=false_alarms, **options)
        self.detector = detector
        self.name = name
        self.rows = 0  # accepted
        self.refused = 0  # late or duplicate
        self._channels = detector.channels_
        self._index = {channel: c for c, channel in enumerate(detector.channels_)}
        self._stream = detector._stream()
        self._carry = CarryForward(len(self._channels))
        self._clock = RowClock(self.plan.period)
        self._run = self.plan.rule.start(threshold=self.plan.calibration.threshold)
        self.no_point = np.full(detector.nominal_.shape[1], np.nan)
        self._since_onset = np.zeros(detector.nominal_.shape[1])  # contributions of each coordinate
        self._onset = 0  # the present onset estimate, and its time
        self._onset_time: str | float | None = None
        self._last_stamp: str | float | None = None  # time of the last row
        self._alarm: Alarm | None = None  # the one that is on

    def __repr__(self) -> str:
        return f"Monitor({self.detector!r}, false_alarms={self.calibration.budget!r}, rule={self.plan.rule!r}, name={self.name!r})"

    @property
    def calibration(self) -> Calibration:
        """The threshold, the budget behind it and how it was kept on held-out nominal data."""
        return self.plan.calibration

    @property
    def alarm(self) -> Alarm | None:
        """The alarm that is on, if one is."""
        return self._alarm

    def update(self, row: Any, time: Any = None) -> Verdict:
        """The verdict on the next row.

        Parameters
        ----------
        row : sequence of C numbers, or mapping from channel to number
            NaN, None or an absent channel is a missing value.
        time : date or number of seconds, optional
        """
        status, filled = self.take(self.check_row(row), time)
        return self.judge(None if filled is None else self.push(filled), status, time)

    # ------------------------------------------------------------------ the three steps of an update, for a fleet

    def take(self, values: Array, time: Any) -> tuple[str, Array | None]:
        """Read the time of a checked row and fill its holes; None where there is nothing to push."""
        if time is not None:
            moment = self._clock.advance(time)
            if moment in ("late", "duplicate"):
                return moment, None
            if moment == "gap":
                self._stream.reset()
        filled = self._carry(values)
        if np.isnan(filled).any():
            self._stream.reset()
            return "unusable", None
        return "ok", filled

    def push(self, filled: Array) -> Array:
        """The point ``(m,)`` of a row without holes."""
        return self._stream.push(filled)

    def window(self, filled: Array) -> Array | str | None:
        """Instead of :meth:`push`: the window to ask the detector about, None while it fills, a word if there is none."""
        gather = getattr(self._stream, "window", None)
        found: Array | str | None = "no windows" if gather is None else gather(filled)
        return found

    def point(self, answer: Array) -> Array:
        """The point ``(m,)`` of the row given to :meth:`window`, from the detector's answer."""
        found: Array = self._stream.point(answer)  # type: ignore[attr-defined]  # streams with windows have it
        return found

    def judge(self, point: Array | None, status: str, time: Any) -> Verdict:
        """The verdict on a point; None where there is none."""
        if status in ("late", "duplicate"):
            return self._refuse(status, time)
        return self._judge(self.no_point if point is None else point, status, time)

    def check_row(self, row: Any) -> Array:
        """A row as ``(C,)`` floats; an error where it cannot be one, and nothing has changed."""
        if isinstance(row, Mapping):
            values = np.full(len(self._channels), np.nan)
            for channel, value in row.items():
                if channel not in self._index:
                    raise SeriesError(
                        f"The row must have channels among {', '.join(self._channels)}. Got {channel!r} instead."
                    )
                try:
                    values[self._index[channel]] = np.nan if value is None else value
                except (TypeError, ValueError):
                    raise SeriesError(
                        f"The value of channel {channel!r} must be a number. Got {value!r} instead."
                    ) from None
        else:
            try:
                values = np.array(row, dtype=np.float64)
            except (TypeError, ValueError):
                raise SeriesError(f"The row must be {len(self._channels)} numbers. Got {row!r} instead.") from None
            if values.shape != (len(self._channels),):
                raise SeriesError(
                    f"The row must have the {len(self._channels)} channels the detector was fitted on. Got shape {values.shape} instead."
                )
        if np.isinf(values).any():
            channel = int(np.argmax(np.isinf(values)))
            raise SeriesError(
                f"The row must be finite or NaN (missing). Got {values[channel]} in channel {self._channels[channel]!r} instead."
            )
        return values

    def _refuse(self, status: str, time: Any) -> Verdict:
        self.refused += 1
        nothing = float("nan")
        return Verdict(
            -1, status, nothing, nothing, nothing, self.calibration.threshold, self._alarm is not None, time=time
        )

    def _judge(self, point: Array, status: str, time: Any) -> Verdict:
        now = self.rows
        self.rows = now + 1
        score = float(self.detector.aggregate(point[None])[0])
        evidence, statistic, active, onset = self._run.update(Scored.of(point[None], [score]))
        if score != score and status == "ok":
            status = "warming up"
        before = self._alarm
        self._trace_onset(now, onset, active=active, point=point if status == "ok" else None, time=time)
        raised = active and before is None
        cleared = before is not None and not active
        changed = None
        if raised:
            changed = self._alarm = self._raise(now, onset, statistic, time)
        elif cleared:
            assert before is not None
            changed = replace(before, cleared=now, cleared_time=stamp_of(time))
            self._alarm = None
        elif before is not None and statistic > before.peak:
            self._alarm = replace(before, peak=statistic)
        return Verdict(
            now,
            status,
            score,
            evidence,
            statistic,
            self.plan.calibration.threshold,
            active,
            raised,
            cleared,
            changed,
            time,
        )

    def _trace_onset(self, now: int, onset: int, *, active: bool, point: Array | None, time: Any) -> None:
        """Keep the time of the onset estimate and add up what each channel contributed since."""
        stamp = stamp_of(time)
        if onset == now:
            self._onset_time = stamp
        elif onset != self._onset:  # the statistic started again after the alarm of the row before
            self._onset_time = self._last_stamp
        if self.detector.points_are_channels:
            if onset != self._onset or (onset == now and not active):
                self._since_onset[:] = 0.0
            if point is not None and (active or onset < now):
                self._since_onset += self._run.contribution(point)
        self._onset, self._last_stamp = onset, stamp

    def _raise(self, now: int, onset: int, statistic: float, time: Any) -> Alarm:
        shares: dict[str, float] = {}
        if self.detector.points_are_channels:
            shares = named_shares(shares_of(self._since_onset), self._channels)
        return Alarm(
            raised=now,
            onset=onset,
            cleared=None,
            peak=statistic,
            threshold=self.calibration.threshold,
            rule=self.plan.rule.name,
            budget=self.calibration.budget,
            channels=shares,
            raised_time=stamp_of(time),
            onset_time=self._onset_time,
            series=self.name,
        )

    # ------------------------------------------------------------------ going on after a crash

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Everything that changes from row to row, as plain values and arrays."""
        document = {
            "rows": self.rows,
            "refused": self.refused,
            "dates": self._clock.dates,
            "last_time": self._clock.last,
            "onset": self._onset,
            "onset_time": self._onset_time,
            "last_stamp": self._last_stamp,
            "alarm": None if self._alarm is None else self._alarm.to_json(),
        }
        parts = {"carry": self._carry.state(), "stream": self._stream.state(), "run": self._run.state()}
        tensors = {
            f"{part}.{name}": np.asarray(array) for part, arrays in parts.items() for name, array in arrays.items()
        }
        return document, tensors | {"since_onset": self._since_onset.copy()}

    def set_state(self, document: Mapping[str, Any], tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what :meth:`state` returned."""
        self.rows = document["rows"]
        self.refused = document["refused"]
        self._clock.dates, self._clock.last = document["dates"], document["last_time"]
        self._onset, self._onset_time = document["onset"], document["onset_time"]
        self._last_stamp = document["last_stamp"]
        self._alarm = None
        if document["alarm"] is not None:  # a file keeps no order of names: largest share first, as they were
            shares = sorted(document["alarm"]["channels"].items(), key=lambda item: (-item[1], self._index[item[0]]))
            self._alarm = Alarm(**{**document["alarm"], "channels": dict(shares)})
        self._since_onset[:] = tensors["since_onset"]
        for part, target in (("carry.", self._carry), ("stream.", self._stream), ("run.", self._run)):
            target.restore({name.removeprefix(part): array for name, array in tensors.items() if name.startswith(part)})

    def snapshot(self, path: str | Path, *, note: Mapping[str, Any] | None = None) -> None:
        """Write what is needed to go on to one file, whole or not at all; ``note`` is kept with it."""
        document, tensors = self.state()
        header = {
            "kind": "monitor",
            "detector": fingerprint(self.detector),
            "plan": plan_to_json(self.plan),
            "name": self.name,
            "state": document,
            "note": dict(note or {}),
        }
        write_artefact(path, header, tensors)

    @classmethod
    def restore(cls, detector: DetectorLike, path: str | Path) -> Monitor:
        """The monitor that :meth:`snapshot` wrote, with the detector it watched with; it goes on with identical verdicts."""
        return cls.restore_with_note(detector, path)[0]

    @classmethod
    def restore_with_note(cls, detector: DetectorLike, path: str | Path) -> tuple[Monitor, dict[str, Any]]:
        """Like :meth:`restore`, with the note kept in the file."""
        header, tensors = read_artefact(path)
        check_fingerprint(header, detector, path, kind="monitor")
        monitor = cls(detector, false_alarms=plan_from_json(header["plan"], detector), name=header["name"])
        monitor.set_state(header["state"], tensors)
        return monitor, header["note"]
