"""Scores -> evidence -> statistic -> alarms, at a threshold that follows from a false-alarm budget.

Works for any score: a user's own enters as a point with one dimension. Nothing here knows detectors or torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tisat.sequential.alarms import Alarm as Alarm
    from tisat.sequential.alarms import Alarms as Alarms
    from tisat.sequential.alarms import raise_alarms as raise_alarms
    from tisat.sequential.budget import Budget as Budget
    from tisat.sequential.calibration import Calibration as Calibration
    from tisat.sequential.calibration import calibrate as calibrate
    from tisat.sequential.cusum import CompressedSum as CompressedSum
    from tisat.sequential.cusum import Cusum as Cusum
    from tisat.sequential.cusum import WindowSum as WindowSum
    from tisat.sequential.evidence import KNNEvidence as KNNEvidence
    from tisat.sequential.neighbours import Neighbours as Neighbours
    from tisat.sequential.record import EpisodeRecord as EpisodeRecord
    from tisat.sequential.record import Proposal as Proposal
    from tisat.sequential.record import propose as propose
    from tisat.sequential.rules import AlarmRule as AlarmRule
    from tisat.sequential.rules import DriftRule as DriftRule
    from tisat.sequential.rules import ExcessRule as ExcessRule
    from tisat.sequential.rules import PaperRule as PaperRule
    from tisat.sequential.rules import ThresholdRule as ThresholdRule
    from tisat.sequential.rules import make_rule as make_rule

# name -> module; imported when first used, because the compiled loops take a moment to load
_NAMES = {
    "Alarm": "alarms",
    "AlarmRule": "rules",
    "Alarms": "alarms",
    "Budget": "budget",
    "Calibration": "calibration",
    "CompressedSum": "cusum",
    "Cusum": "cusum",
    "EpisodeRecord": "record",
    "DriftRule": "rules",
    "ExcessRule": "rules",
    "KNNEvidence": "evidence",
    "Neighbours": "neighbours",
    "PaperRule": "rules",
    "Proposal": "record",
    "ThresholdRule": "rules",
    "WindowSum": "cusum",
    "calibrate": "calibration",
    "make_rule": "rules",
    "propose": "record",
    "raise_alarms": "alarms",
}

__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'tisat.sequential' has no attribute {name!r}")
    value = getattr(import_module(f"tisat.sequential.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
