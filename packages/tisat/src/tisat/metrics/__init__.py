"""Alarms and events in, evaluation out: each event rewarded once, each false alarm penalised once.

Start with :func:`spd_score`, and read it beside :func:`baselines`. Every function takes one series or a list of series; results
name what is ``pooled`` and what is a ``per_series_mean``. Numpy in, plain values out; no detector is known here.
"""

from tisat.metrics.affiliation import affiliation_precision_recall
from tisat.metrics.alarm_counts import (
    AlarmCounts,
    alarm_precision,
    average_detection_delay,
    count_alarms,
    count_at_threshold,
    count_raises,
    detection_delay,
)
from tisat.metrics.alarm_evaluation import AlarmEvaluation, evaluate_alarms
from tisat.metrics.auc import auc_pr, auc_roc
from tisat.metrics.audit import Audit, audit
from tisat.metrics.baselines import Baselines, baselines, chance_corrected
from tisat.metrics.curve import SPDCurve, spd_curve, spd_curve_of_active, spd_curve_of_raises
from tisat.metrics.evaluation import Evaluation, evaluate
from tisat.metrics.event_f1 import best_event_f1
from tisat.metrics.instance import PrecisionRecall, best_instance_f1, instance_precision_recall
from tisat.metrics.nab import nab_score
from tisat.metrics.pa_k import best_pa_k_f1, pa_k_auc, pa_k_precision_recall
from tisat.metrics.pate import pate
from tisat.metrics.point_adjust import adjusted_precision_recall, best_adjusted_f1
from tisat.metrics.pooling import Score
from tisat.metrics.random_guess import best_random_guess, random_guess, random_guess_simulated
from tisat.metrics.range_based import range_precision_recall
from tisat.metrics.spd import spd_score, spd_score_of_active, spd_score_of_raises
from tisat.metrics.vus import vus_pr, vus_roc

__all__ = [
    "AlarmCounts",
    "AlarmEvaluation",
    "Audit",
    "Baselines",
    "Evaluation",
    "PrecisionRecall",
    "SPDCurve",
    "Score",
    "adjusted_precision_recall",
    "affiliation_precision_recall",
    "alarm_precision",
    "auc_pr",
    "auc_roc",
    "audit",
    "average_detection_delay",
    "baselines",
    "best_adjusted_f1",
    "best_event_f1",
    "best_instance_f1",
    "best_pa_k_f1",
    "best_random_guess",
    "chance_corrected",
    "count_alarms",
    "count_at_threshold",
    "count_raises",
    "detection_delay",
    "evaluate",
    "evaluate_alarms",
    "instance_precision_recall",
    "nab_score",
    "pa_k_auc",
    "pa_k_precision_recall",
    "pate",
    "random_guess",
    "random_guess_simulated",
    "range_precision_recall",
    "spd_curve",
    "spd_curve_of_active",
    "spd_curve_of_raises",
    "spd_score",
    "spd_score_of_active",
    "spd_score_of_raises",
    "vus_pr",
    "vus_roc",
]
