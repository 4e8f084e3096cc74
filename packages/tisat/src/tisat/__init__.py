"""Time-series anomaly detection with a false-alarm budget.

Implements the metric SPD and the detector TiSAT of *Reward Once, Penalize Once* (Doshi, Abudalou, Yilmaz, 2022), and more.
The flow and its packages::

    series (T, C)    tisat.series, tisat.io           rows from files, frames and arrays
      -> scores      tisat.detectors                  fit, decision_function; higher = more anomalous
      -> evidence    tisat.alarms                     scores measured against those of normal data
      -> statistic   tisat.alarms                     evidence accumulated over time
      -> alarms      tisat.watch                      raised at a threshold that follows from the false-alarm budget
      -> evaluation  tisat.metrics                    each event rewarded once, each false alarm penalised once

Names are imported on first use, so ``import tisat`` is quick and never loads torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tisat.utils.lazy import lazily

if TYPE_CHECKING:
    from tisat import alarms as alarms
    from tisat import datasets as datasets
    from tisat import detectors as detectors
    from tisat import metrics as metrics
    from tisat import registry as registry
    from tisat import testing as testing
    from tisat import watch as watch
    from tisat.alarms.alarms import Alarm as Alarm
    from tisat.alarms.alarms import Alarms as Alarms
    from tisat.alarms.from_scores import raise_alarms as raise_alarms
    from tisat.detectors import make as make
    from tisat.detectors.base import Detector as Detector
    from tisat.detectors.combine import combine as combine
    from tisat.detectors.compared import compare as compare
    from tisat.detectors.loading import load as load
    from tisat.detectors.pipeline import Pipeline as Pipeline
    from tisat.detectors.suggestions import suggest as suggest
    from tisat.detectors.tisat import TiSAT as TiSAT
    from tisat.metrics import spd_score as spd_score
    from tisat.plotting.notebook import show_anomalies as show_anomalies
    from tisat.series import Series as Series
    from tisat.watch.fleet import Fleet as Fleet
    from tisat.watch.monitor import Monitor as Monitor
    from tisat.watch.scan import scan as scan
    from tisat.watch.walk_forward import backtest as backtest
    from tisat.watch.watch import Watch as Watch

__version__ = "1.0.0"

_NAMES, __getattr__, __dir__ = lazily(
    __name__,
    {
        "": ("alarms", "datasets", "detectors", "metrics", "registry", "testing", "watch"),
        "alarms.alarms": ("Alarm", "Alarms"),
        "alarms.from_scores": ("raise_alarms",),
        "detectors": ("make",),
        "detectors.base": ("Detector",),
        "detectors.loading": ("load",),
        "detectors.combine": ("combine",),
        "detectors.compared": ("compare",),
        "detectors.pipeline": ("Pipeline",),
        "detectors.suggestions": ("suggest",),
        "detectors.tisat": ("TiSAT",),
        "metrics": ("spd_score",),
        "plotting.notebook": ("show_anomalies",),
        "series": ("Series",),
        "watch.fleet": ("Fleet",),
        "watch.monitor": ("Monitor",),
        "watch.scan": ("scan",),
        "watch.walk_forward": ("backtest",),
        "watch.watch": ("Watch",),
    },
)
__all__ = ["__version__", *_NAMES]
