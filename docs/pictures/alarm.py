"""The picture of an alarm on the README and the home page: what was seen, what was expected, when the alarm came.

python docs/pictures/alarm.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure

import tisat
from tisat.datasets.synthetic import make_pump
from tisat.utils.palette import ALARM, FAULT, FOUND, INK

HERE = Path(__file__).parent
RED, GREEN, GREY = ALARM, FOUND, FAULT
BEFORE, AFTER = 150, 160  # minutes shown before and after the alarm


def main() -> None:
    """Draw it: the channel and the statistic around the alarm of a bearing that slowly becomes too warm."""
    pump = make_pump()
    watch = tisat.Watch(budget="1/day").fit(pump.train)
    alarms = watch.alarms(pump.test)
    fault = next(one for one in pump.faults if one.kind == "temperature ramp")
    alarm = next(one for one in alarms if fault.start <= one.raised < fault.stop)
    rows = slice(alarm.raised - BEFORE, alarm.raised + AFTER)
    times = pump.test.timestamps[rows]
    reason = alarm.reasons[0]
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True, height_ratios=[1.6, 1.0])
    axes[0].plot(times, pump.test.values[rows, pump.test.channels.index(reason.channel)], color=INK, linewidth=1.0)
    axes[0].set_ylabel(reason.channel.replace("_", " "), fontsize=11)
    raised = pump.test.timestamps[alarm.raised]
    axes[0].errorbar(
        [raised], [reason.expected], yerr=[3 * reason.spread], color=GREEN, marker="o", markersize=5, capsize=4
    )
    axes[0].plot([raised], [reason.seen], color=RED, marker="o", markersize=5)
    late = alarm.raised - fault.start
    words = (
        f"Alarm {late} minutes after the bearing began to warm:\nseen {reason.seen:.1f}, expected {reason.expected:.1f}"
    )
    axes[0].set_title(words, loc="left", color=RED, fontsize=13)
    axes[1].plot(times, alarms.statistic[rows], color=INK, linewidth=0.9)
    axes[1].axhline(alarms.threshold, color=RED, linewidth=0.9, linestyle="--")
    axes[1].text(times[2], alarms.threshold * 1.15, "threshold: 1 false alarm per day", color=RED, fontsize=10)
    axes[1].set_ylabel("statistic", fontsize=11)
    axes[1].xaxis.set_major_formatter(ConciseDateFormatter(axes[1].xaxis.get_major_locator()))
    stop = min(fault.stop, rows.stop) - 1
    for axis in axes:
        axis.axvspan(pump.test.timestamps[fault.start], pump.test.timestamps[stop], color=GREY, alpha=0.2, linewidth=0)
        axis.axvline(raised, color=RED, linewidth=0.9)
        axis.margins(x=0)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    print(
        f"{alarm.raised_time} {alarm.kind}: {alarm.why}; threshold {alarms.threshold:.3g}, peak {np.round(alarm.peak, 2)}"
    )
    figure.savefig(HERE / "alarm.png", dpi=220)


if __name__ == "__main__":
    main()
