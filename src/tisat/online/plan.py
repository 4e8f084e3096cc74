"""Between a fitted detector and its alarms: the rule, its threshold for a budget, and how both are kept.

A detector comes in here by what it does, not by what it is: this module does not import :mod:`tisat.base`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tisat.errors import ArtefactError
from tisat.reading.durations import seconds_of
from tisat.sequential.alarms import Alarms, alarms_of
from tisat.sequential.budget import Budget
from tisat.sequential.calibration import Calibration, calibrate
from tisat.sequential.rules import DEFAULT_RULE, AlarmRule, Scored, make_rule
from tisat.series import Series

Array: TypeAlias = npt.NDArray[np.float64]


class StreamLike(Protocol):
    """The part of :class:`tisat.base.Stream` a monitor uses."""

    def push(self, row: Array) -> Array:
        """The point of the next row; NaN while warming up."""
        ...

    def reset(self) -> None:
        """Forget the past."""
        ...

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything needed to go on."""
        ...

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from ``state``."""
        ...


class DetectorLike(Protocol):
    """The part of :class:`tisat.base.Detector` a monitor uses."""

    points_are_channels: ClassVar[bool]
    channels_: tuple[str, ...]
    nominal_: Array
    trained_on_: dict[str, Any]

    def _stream(self) -> StreamLike: ...
    def aggregate(self, points: Array) -> Array:
        """Scores of points."""
        ...

    def _answers(self, windows: Array) -> Array: ...


@dataclass(frozen=True)
class Plan:
    """A fitted rule, its calibrated threshold and the sampling period: all a monitor needs besides the detector."""

    rule: AlarmRule
    calibration: Calibration
    period: float | None  # seconds


def plan_alarms(
    detector: DetectorLike,
    *,
    false_alarms: Any,
    rule: str | AlarmRule = DEFAULT_RULE,
    method: str = "auto",
    period: Any = None,
    random_state: int = 0,
    **options: Any,
) -> Plan:
    """Fit an alarm rule to the detector's nominal points and find the threshold that keeps the budget.

    Parameters
    ----------
    detector : Detector
        Fitted.
    false_alarms : str, float or timedelta
        The budget: ``"1/day"``, ``"1/1000 instants"``, a rate per instant: see :class:`tisat.sequential.Budget`.
    rule : str or AlarmRule
        ``excess``, ``threshold`` or ``paper``; ``options`` are the rule's own.
    method : str
        ``auto``, ``bootstrap``, ``empirical``, ``weibull``, ``exact`` or ``paper``.
    period : float, str or timedelta, optional
        The sampling period; that of the training data unless given.
    random_state : int
        Seed of the resampling.
    """
    known = detector.trained_on_.get("period_seconds") if period is None else seconds_of(period, whose="monitor")
    made = make_rule(rule, **options)
    calibration = calibrate(
        made,
        detector.nominal_,
        Budget.parse(false_alarms, period=known),
        scores=detector.aggregate(detector.nominal_),
        method=method,
        random_state=random_state,
    )
    return Plan(made, calibration, known)


def alarms_of_series(
    detector: DetectorLike, series: Series, points: Array, *, false_alarms: Any, period: Any = None, **options: Any
) -> Alarms:
    """The alarms of a series whose points ``(T, m)`` are given; options as :func:`plan_alarms`."""
    plan = plan_alarms(
        detector, false_alarms=false_alarms, period=series.period if period is None else period, **options
    )
    return alarms_of(
        Scored.of(points, detector.aggregate(points)),
        rule=plan.rule,
        calibration=plan.calibration,
        channels=detector.channels_ if detector.points_are_channels else (),
        timestamps=series.timestamps,
        name=series.name,
    )


def fingerprint(detector: DetectorLike) -> str:
    """Tells a detector from another: its class, its channels and the nominal points it keeps."""
    digest = hashlib.sha256(f"{type(detector).__qualname__}:{detector.channels_}".encode())
    digest.update(np.ascontiguousarray(detector.nominal_).tobytes())
    return digest.hexdigest()


def check_fingerprint(header: Mapping[str, Any], detector: DetectorLike, path: str | Path, *, kind: str) -> None:
    """Refuse a snapshot of something else or of another detector."""
    if header.get("kind") != kind:
        raise ArtefactError(f"The state file {str(path)!r} must hold a {kind}. Got {header.get('kind')!r} instead.")
    if header["detector"] != fingerprint(detector):
        raise ArtefactError(
            f"The state file {str(path)!r} must belong to this detector. It was written with another one."
        )


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """A plan as plain values: the rule's options, not what it learned, which follows from the detector."""
    return {
        "rule": plan.rule.name,
        "options": plan.rule.params(),
        "calibration": plan.calibration.to_json(),
        "period": plan.period,
    }


def plan_from_json(document: Mapping[str, Any], detector: DetectorLike) -> Plan:
    """The plan back, its rule fitted again to the detector's nominal points."""
    rule = make_rule(document["rule"], **document["options"])
    rule.fit(detector.nominal_, scores=detector.aggregate(detector.nominal_))
    return Plan(rule, Calibration.from_json(document["calibration"]), document["period"])
