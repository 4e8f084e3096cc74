"""Scores -> evidence -> statistic -> alarms, at a threshold that follows from a false-alarm budget.

Works for any score: a user's own enters as a point with one dimension. Nothing here knows detectors or torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tisat._lazy import lazily

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

# Imported when first used, because the compiled loops take a moment to load.
__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "alarms": ("Alarm", "Alarms", "raise_alarms"),
        "budget": ("Budget",),
        "calibration": ("Calibration", "calibrate"),
        "cusum": ("CompressedSum", "Cusum", "WindowSum"),
        "evidence": ("KNNEvidence",),
        "neighbours": ("Neighbours",),
        "record": ("EpisodeRecord", "Proposal", "propose"),
        "rules": ("AlarmRule", "DriftRule", "ExcessRule", "PaperRule", "ThresholdRule", "make_rule"),
    },
)
