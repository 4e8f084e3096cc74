"""Promised and kept, as a picture: for each entity and method, how long it took from one false alarm to the next beside what was asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tisat._extras import require
from tisat._palette import ALARM, CURVES, FOUND, SOFT
from tisat.sequential.far import Promise

LEAST, MOST = 1e-3, 1e2  # times the period asked for that are drawn


def draw_promises(found: Sequence[Promise]) -> Any:
    """A panel for each entity and rule, a row for each method: the realised period over the one asked for. Right of 1 a promise was kept."""
    figure_module = require("matplotlib.figure", whose="The false-alarm figure")
    groups: dict[str, list[Promise]] = {}
    for one in found:
        groups.setdefault(f"{one.entity}, {one.rule}" + f":{one.form}" * (one.form not in ("", "power")), []).append(
            one
        )
    methods = list(dict.fromkeys(one.method for one in found))
    columns = min(3, len(groups))
    rows = math.ceil(len(groups) / columns)
    figure = figure_module.Figure(
        figsize=(1.2 + 3.4 * columns, rows * (0.9 + 0.28 * len(methods)) + 0.4), layout="constrained"
    )
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axis, (name, many) in zip(panels, groups.items(), strict=False):
        axis.axvline(1.0, color=SOFT, linewidth=1.0, linestyle="--")
        for one in many:
            y = methods.index(one.method)
            low, high, value = (
                np.clip(v / one.target, LEAST, MOST) for v in (one.low, one.high or math.inf, one.realised)
            )
            colour = FOUND if one.kept else ALARM
            axis.plot([low, high], [y, y], color=colour, linewidth=2.5, alpha=0.4, solid_capstyle="butt")
            axis.plot([value], [y], marker=">" if value >= MOST else "o", color=colour, markersize=6, clip_on=False)
        axis.set_title(name, fontsize=10)
        axis.set_xscale("log")
        axis.set_xlim(LEAST, MOST)
        axis.set_xticks([0.001, 0.01, 0.1, 1.0, 10.0, 100.0], ["1/1000", "1/100", "1/10", "1", "10", "100"])
        axis.minorticks_off()
        axis.set_yticks(range(len(methods)), methods, fontsize=9)
        axis.set_ylim(len(methods) - 0.5, -0.5)
        axis.tick_params(labelsize=9)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color=CURVES[5], alpha=0.15)
    for axis in panels[len(groups) :]:
        axis.set_visible(False)
    figure.supxlabel("time between false alarms, in units of what was asked for: green was kept, red broken; bar: 95 % interval", fontsize=10)  # fmt: skip
    return figure
