"""Where accumulation hurts and where it helps: four entities, three alarm rules, one budget.

    python docs/pictures/alarm_rules.py --data DIR        writes docs/pictures/alarm-rules.png and prints the counts

The detector is linear-mean on the telemetry value (SMAP) or all channels (SMD 2-3), fitted on train; thresholds by ``auto`` for one
false alarm in 1000 rows. Counted as everywhere (tisat.metrics.count_alarms, delta_max 100): a lasting alarm is raised again
every 100 rows.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tisat.alarms import make_rule
from tisat.detectors import make
from tisat.errors import CalibrationWarning
from tisat.metrics import count_alarms
from tisat.utils.palette import ALARM, FOUND, INK, MISSED
from tisat_bench.datasets import load

CASES = (("smd", "machine-2-3"), ("smap", "A-5"), ("smap", "F-3"), ("smap", "A-8"))
RULES = (("threshold", {}), ("paper", {"end": "recovery"}), ("excess", {}))
LOW, HIGH = 1e-3, 1e4  # what is drawn of evidence / threshold
BUDGET, DELTA_MAX = "1/1000 rows", 100


def main():
    """Draw, and say the counts as rows of a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=None)
    parser.add_argument("--out", default=str(Path(__file__).with_name("alarm-rules.png")))
    options = parser.parse_args()
    warnings.simplefilter("ignore", CalibrationWarning)
    figure = Figure(figsize=(12, 9.5), layout="constrained")
    axes = figure.subplots(len(CASES), len(RULES), sharex="row", sharey="row")
    for row, (name, entity) in enumerate(CASES):
        chosen = load(name, options.data, entities=[entity])[entity]
        detector = make("linear-mean").fit(chosen.train)
        series = chosen.test
        for axis, (rule, settings) in zip(axes[row], RULES, strict=True):
            alarms = detector.alarms(series, false_alarms=BUDGET, rule=make_rule(rule, **settings))
            counts = count_alarms(series.labels, alarms.active, delta_max=DELTA_MAX)
            hit, false = counts.true_alarms, counts.n_false_alarms
            share = alarms.active.mean()
            sys.stdout.write(f"| {name} {entity} | {rule} | {hit} of {len(series.events)} | {false} | {share:.1%} |\n")
            for (start, stop), found in zip(series.events, counts.detected, strict=True):
                axis.axvspan(start, stop, color=FOUND if found else MISSED, alpha=0.3, linewidth=1.0)
            levels = np.clip(alarms.statistic / alarms.threshold, LOW, HIGH)
            axis.plot(levels, color=INK, linewidth=0.7)
            axis.axhline(1.0, color=ALARM, linewidth=1.0, linestyle="--")
            axis.fill_between(
                np.arange(len(levels)), LOW / 4, LOW, where=alarms.active, color=ALARM, linewidth=0, step="post"
            )
            axis.set_yscale("log")
            axis.set_ylim(LOW / 4, HIGH * 30)
            axis.set_yticks([0.01, 1.0, 100.0, 10_000.0], ["0.01", "1", "100", "10,000"])
            axis.minorticks_off()
            told = f"{hit} of {len(series.events)} found, {false} false alarm{'s' * (false != 1)}"
            axis.annotate(
                told, (0.02, 0.94), xycoords="axes fraction", va="top", fontsize=10, color=INK, fontweight="bold"
            )
            axis.tick_params(labelsize=9)
            axis.margins(x=0)
            axis.spines[["top", "right"]].set_visible(False)
            if row == 0:
                axis.set_title(f"rule: {rule}", fontsize=12)
        axes[row, 0].set_ylabel(f"{name} {entity}\nevidence / threshold", fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel("row of the test series", fontsize=10)
    figure.suptitle(
        "Dashed: the threshold. Red strip: an alarm is on. Green: labelled faults found, grey: missed.", fontsize=11
    )
    figure.savefig(options.out, dpi=180)


if __name__ == "__main__":
    main()
