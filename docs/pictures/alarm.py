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
MINUTES = 240  # shown before the alarm, and as many after it


def main() -> None:
    """Draw it: two channels and the statistic around the alarm of a bearing that slowly becomes too warm."""
    pump = make_pump()
    watch = tisat.Watch(budget="1/day").fit(pump.train)
    alarms = watch.alarms(pump.test)
    fault = next(one for one in pump.faults if one.kind == "temperature ramp")
    alarm = next(one for one in alarms if fault.start <= one.raised < fault.stop)
    rows = slice(alarm.raised - MINUTES, alarm.raised + MINUTES)
    times = pump.test.timestamps[rows]
    reason = alarm.reasons[0]
    other = "pressure" if reason.channel != "pressure" else "flow"
    figure = Figure(figsize=(9.0, 4.6), layout="constrained")
    axes = figure.subplots(3, 1, sharex=True, height_ratios=[1.6, 0.9, 1.0])
    for axis, channel in zip(axes, (reason.channel, other), strict=False):
        axis.plot(times, pump.test.values[rows, pump.test.channels.index(channel)], color=INK, linewidth=0.8)
        axis.set_ylabel(channel.replace("_", "\n"), rotation=0, ha="right", va="center", fontsize=9)
    raised = pump.test.timestamps[alarm.raised]
    axes[0].errorbar(
        [raised], [reason.expected], yerr=[3 * reason.spread], color=GREEN, marker="o", markersize=5, capsize=4
    )
    axes[0].plot([raised], [reason.seen], color=RED, marker="o", markersize=5)
    late = alarm.raised - fault.start
    axes[0].text(
        0.01,
        0.95,
        f"alarm at {str(raised)[11:16]}, {late} minutes after the bearing began to warm\nlooks like: {alarm.kind}\nwhy: {reason}",
        transform=axes[0].transAxes,
        va="top",
        color=RED,
        fontsize=9,
    )
    axes[2].plot(times, alarms.statistic[rows], color=INK, linewidth=0.9)
    axes[2].axhline(alarms.threshold, color=RED, linewidth=0.9, linestyle="--")
    axes[2].text(times[2], alarms.threshold * 1.15, "threshold for one false alarm a day", color=RED, fontsize=8)
    axes[2].set_ylabel("statistic", rotation=0, ha="right", va="center", fontsize=9)
    axes[2].xaxis.set_major_formatter(ConciseDateFormatter(axes[2].xaxis.get_major_locator()))
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
    figure.savefig(HERE / "alarm.png", dpi=110)


if __name__ == "__main__":
    main()
