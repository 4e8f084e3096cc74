"""Where accumulation hurts and where it helps: four entities, three alarm rules, one budget.

    python docs/pictures/alarm_rules.py --data DIR        writes docs/pictures/alarm-rules.png and prints the counts

The detector is linear-mean on the telemetry value (SMAP) or all channels (SMD 2-3), fitted on train; thresholds by ``auto`` for one
false alarm in 1000 instants. Counted as everywhere (tisat.metrics.count_alarms, delta_max 100): a lasting alarm is raised again
every 100 instants.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tisat.datasets import load
from tisat.detectors import make
from tisat.errors import CalibrationWarning
from tisat.metrics import count_alarms

CASES = (("smd", "machine-2-3"), ("smap", "A-5"), ("smap", "F-3"), ("smap", "A-8"))
RULES = (("threshold", {}), ("paper", {"end": "recovery"}), ("excess", {}))
BUDGET, DELTA_MAX = "1/1000 instants", 100


def main():
    """Draw, and say the counts as rows of a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=None)
    parser.add_argument("--out", default=str(Path(__file__).with_name("alarm-rules.png")))
    options = parser.parse_args()
    warnings.simplefilter("ignore", CalibrationWarning)
    figure = Figure(figsize=(11, 8), layout="constrained")
    axes = figure.subplots(len(CASES), len(RULES), sharex="row")
    for row, (name, entity) in enumerate(CASES):
        chosen = load(name, options.data, entities=[entity])[entity]
        detector = make("linear-mean").fit(chosen.train)
        series = chosen.test
        for axis, (rule, settings) in zip(axes[row], RULES, strict=True):
            alarms = detector.alarms(series, false_alarms=BUDGET, rule=rule, **settings)
            counts = count_alarms(series.labels, alarms.active, delta_max=DELTA_MAX)
            hit, false = counts.true_alarms, counts.n_false_alarms
            share = alarms.active.mean()
            sys.stdout.write(f"| {name} {entity} | {rule} | {hit} of {len(series.events)} | {false} | {share:.1%} |\n")
            for start, stop in series.events:
                axis.axvspan(start, stop, color="#7f8fa6", alpha=0.35, linewidth=0)
            axis.plot(
                np.minimum(alarms.statistic, 1e6 * alarms.threshold) / alarms.threshold, color="#3b4252", linewidth=0.6
            )
            axis.axhline(1.0, color="#c0392b", linewidth=0.7, linestyle="--")
            axis.plot(np.where(alarms.active, 1.0, np.nan), color="#c0392b", linewidth=2.5)
            axis.set_yscale("symlog", linthresh=1.0)
            axis.set_title(
                f"{name} {entity}, {rule}: {hit} of {len(series.events)} events, {false} false alarms", fontsize=8
            )
            axis.tick_params(labelsize=6)
            axis.margins(x=0)
    figure.supylabel("statistic / threshold", fontsize=8)
    figure.savefig(options.out, dpi=75)


if __name__ == "__main__":
    main()
