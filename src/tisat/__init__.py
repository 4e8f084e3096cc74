"""Time-series anomaly detection with an alarm budget, and with scores that a coin cannot win.

The flow, and the rooms it passes through::

    series (T, C)    tisat.series, tisat.datasets     where numbers come from
      -> scores      tisat.detectors                  fit, decision_function; higher = more anomalous
      -> evidence    tisat.sequential                 distance to nominal points, less its nominal level
      -> statistic   tisat.sequential                 evidence accumulated over time
      -> alarms      tisat.watch                      raised at a threshold that follows from a false-alarm budget
      -> evaluation  tisat.metrics                    each event rewarded once, each false alarm penalised once

Names are imported when they are first used, so ``import tisat`` is quick and never loads torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tisat._lazy import lazily
from tisat._version import __version__

if TYPE_CHECKING:
    from tisat import benchmark as benchmark
    from tisat import checks as checks
    from tisat import datasets as datasets
    from tisat import detectors as detectors
    from tisat import metrics as metrics
    from tisat import registry as registry
    from tisat import sequential as sequential
    from tisat import watch as watch
    from tisat.base import Detector as Detector
    from tisat.base import load as load
    from tisat.detectors import make as make
    from tisat.detectors.combine import combine as combine
    from tisat.detectors.tisat import TiSAT as TiSAT
    from tisat.metrics import spd_score as spd_score
    from tisat.pipeline import Pipeline as Pipeline
    from tisat.report.showing import show_anomalies as show_anomalies
    from tisat.sequential.alarms import Alarm as Alarm
    from tisat.sequential.alarms import Alarms as Alarms
    from tisat.sequential.alarms import raise_alarms as raise_alarms
    from tisat.series import Series as Series
    from tisat.suggestions import suggest as suggest
    from tisat.watch.fleet import Fleet as Fleet
    from tisat.watch.monitor import Monitor as Monitor
    from tisat.watch.watch import Watch as Watch

_NAMES, __getattr__, __dir__ = lazily(
    __name__,
    {
        "": ("benchmark", "checks", "datasets", "detectors", "metrics", "registry", "sequential", "watch"),
        "base": ("Detector", "load"),
        "detectors": ("make",),
        "detectors.combine": ("combine",),
        "detectors.tisat": ("TiSAT",),
        "metrics": ("spd_score",),
        "pipeline": ("Pipeline",),
        "report.showing": ("show_anomalies",),
        "sequential.alarms": ("Alarm", "Alarms", "raise_alarms"),
        "series": ("Series",),
        "suggestions": ("suggest",),
        "watch.fleet": ("Fleet",),
        "watch.monitor": ("Monitor",),
        "watch.watch": ("Watch",),
    },
)
__all__ = ["__version__", *_NAMES]
