"""Scores -> evidence -> statistic -> alarms, at a threshold that follows from a false-alarm budget.

Works for any score: a user's own enters as a point with one dimension. Nothing here knows detectors or torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tisat.utils.lazy import lazily

if TYPE_CHECKING:
    from tisat.alarms.alarms import Alarm as Alarm
    from tisat.alarms.alarms import Alarms as Alarms
    from tisat.alarms.budget import Budget as Budget
    from tisat.alarms.calibration import Calibration as Calibration
    from tisat.alarms.calibration import calibrate as calibrate
    from tisat.alarms.cusum import CompressedSum as CompressedSum
    from tisat.alarms.cusum import Cusum as Cusum
    from tisat.alarms.cusum import WindowSum as WindowSum
    from tisat.alarms.episode_log import EpisodeRecord as EpisodeRecord
    from tisat.alarms.episode_log import Proposal as Proposal
    from tisat.alarms.episode_log import propose as propose
    from tisat.alarms.evidence import KNNEvidence as KNNEvidence
    from tisat.alarms.from_scores import raise_alarms as raise_alarms
    from tisat.alarms.neighbours import Neighbours as Neighbours
    from tisat.alarms.recurrence import Recurrence as Recurrence
    from tisat.alarms.recurrence import recurring as recurring
    from tisat.alarms.rules import AlarmRule as AlarmRule
    from tisat.alarms.rules import DriftRule as DriftRule
    from tisat.alarms.rules import ExcessRule as ExcessRule
    from tisat.alarms.rules import PaperRule as PaperRule
    from tisat.alarms.rules import ThresholdRule as ThresholdRule
    from tisat.alarms.rules import make_rule as make_rule

# Imported when first used, because the compiled loops take a moment to load.
__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "alarms": ("Alarm", "Alarms"),
        "from_scores": ("raise_alarms",),
        "budget": ("Budget",),
        "calibration": ("Calibration", "calibrate"),
        "cusum": ("CompressedSum", "Cusum", "WindowSum"),
        "evidence": ("KNNEvidence",),
        "neighbours": ("Neighbours",),
        "episode_log": ("EpisodeRecord", "Proposal", "propose"),
        "recurrence": ("Recurrence", "recurring"),
        "rules": ("AlarmRule", "DriftRule", "ExcessRule", "PaperRule", "ThresholdRule", "make_rule"),
    },
)
