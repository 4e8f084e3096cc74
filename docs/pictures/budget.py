"""Three pictures of docs/4-alarms.md: what a budget means, what data can support, what a label does.

python docs/pictures/budget.py
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tisat.alarms import EpisodeRecord, propose
from tisat.datasets.synthetic import make_pump
from tisat.detectors import make
from tisat.errors import CalibrationWarning
from tisat.utils.palette import ALARM, EXPECTED, FOUND, INK, LINE, SOFT
from tisat.watch.watch import Watch

HERE = Path(__file__).parent
BLUE, RED, GREEN, GREY = EXPECTED, ALARM, FOUND, LINE
DAY = 1440


def axes(height: float = 3.2):
    """A figure and its axes, without a box."""
    figure = Figure(figsize=(8.0, height), layout="constrained")
    axis = figure.subplots()
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    return figure, axis


def main() -> None:
    """Draw all three."""
    warnings.simplefilter("ignore", CalibrationWarning)
    pump = make_pump()
    watch = Watch(make("linear-last").fit(pump.train), budget="1/day").calibrate()
    known = watch.calibration
    statistic = watch.alarms(pump.train).statistic
    days = np.arange(len(statistic)) / DAY

    figure, axis = axes()
    axis.plot(days, statistic, color=INK, linewidth=0.8)
    for budget, colour in (("1/8h", GREEN), ("1/day", BLUE), ("1/week", RED)):
        h = known.recalibrated(budget).threshold
        above = np.nan_to_num(statistic, nan=-1.0) >= h
        raised = np.flatnonzero(above & ~np.append(False, above[:-1]))
        axis.axhline(h, color=colour, linewidth=1.2)
        axis.plot(days[raised], np.full(len(raised), h), "o", color=colour, markersize=4)
        axis.text(7.02, h, f"{budget}: {len(raised)} alarms", color=colour, va="center", fontsize=9)
    axis.set_xlim(0, 7)
    axis.set_xlabel("days of normal data")
    axis.set_ylabel("statistic")
    figure.savefig(HERE / "budget-means.png", dpi=260)

    figure, axis = axes(3.6)
    normal = known.normal
    periods = np.geomspace(100, 525_600, 120)
    h = np.array([normal.threshold(period) for period in periods])
    axis.axvspan(normal.supported, periods[-1], color=GREY, linewidth=0)
    inside = periods <= normal.supported
    axis.plot(periods[inside], h[inside], color=BLUE, linewidth=2.2)
    axis.plot(periods[~inside], h[~inside], color=BLUE, linewidth=2.2, linestyle="--")
    levels = normal.pooled
    axis.plot(normal.length / (np.arange(len(levels)) + 1.0), levels, ".", color=INK, markersize=5)
    axis.text(normal.supported * 1.1, 0.25, "extrapolated: nobody has seen such an alarm", fontsize=9, color=SOFT)
    axis.text(110, 0.25, "supported: counted", fontsize=9, color=SOFT)
    for budget in ("1/8h", "1/day", "1/week", "1/month", "1/year"):
        one = known.recalibrated(budget)
        axis.annotate(budget, (one.target, one.threshold), (0, 7), textcoords="offset points", ha="center", fontsize=9)
    axis.set_xscale("log")
    axis.set_ylim(0, h[-1] * 1.15)
    axis.set_xlabel("rows (minutes) between two false alarms")
    axis.set_ylabel("threshold")
    figure.savefig(HERE / "budget-supported.png", dpi=260)

    figure, axis = axes()
    rng = np.random.default_rng(0)
    known = known.recalibrated("1/week")
    record = EpisodeRecord.beside(known)
    rows = np.zeros(20 * DAY)
    starts = np.sort(rng.choice(np.arange(1, 19), 10, replace=False)) * DAY + 300
    peaks = known.threshold * np.array([1.05, 1.9, 1.1, 1.3, 1.15, 1.25, 1.6, 1.2, 1.08, 1.12])
    for start, peak in zip(starts, peaks, strict=True):
        rows[start : start + 30] = peak
    for value in rows:
        record.step(value)
    labels = ["true" if peak > 1.5 * known.threshold else "false" for peak in peaks]
    for start, label in zip(starts, labels, strict=True):
        record.label(int(start), label)
    proposal = propose(known, record)
    days = np.arange(len(rows)) / DAY
    axis.plot(days, rows, color=INK, linewidth=0.8)
    for start, peak, label in zip(starts, peaks, labels, strict=True):
        axis.text(start / DAY, peak + 0.1, label, ha="center", fontsize=9, color=GREEN if label == "true" else RED)
    for one, name, colour in ((proposal.before, "in use", BLUE), (proposal.after, "proposed", RED)):
        axis.axhline(one.threshold, color=colour, linewidth=1.3)
        axis.text(20.1, one.threshold, name, color=colour, va="center", fontsize=9)
    axis.set_xlim(0, 20)
    axis.set_ylim(0, peaks.max() * 1.15)
    axis.set_xlabel("days of operation")
    axis.set_ylabel("statistic")
    figure.savefig(HERE / "budget-label.png", dpi=260)


if __name__ == "__main__":
    main()
