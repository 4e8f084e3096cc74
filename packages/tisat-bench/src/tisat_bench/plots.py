"""The pictures of a benchmark report, from figures that were already made.

Nothing is counted here.

One colour for each kind of system: red for the reference, blue for those the experiment marks as ours, grey for the others. What trivial baselines get is a grey bar or a dotted line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tisat.metrics.statistics import Ranks, fewest_units
from tisat.plotting.charts import Group, curves, scatter
from tisat.plotting.page import Dot, Dots, figure_to_svg
from tisat.plotting.phrases import DELAY_AXIS, steps_of
from tisat.utils import palette as _palette
from tisat.utils.extras import require
from tisat.utils.types import Array
from tisat_bench.captions import GUESS, rule_title
from tisat_bench.figures import Figure
from tisat_bench.frozen import Frozen

OURS, OTHERS, REFERENCE = "curve", "soft", "alarm"  # colours of the palette, by name


def _pyplot() -> Any:
    matplotlib = require("matplotlib", whose="The report")
    matplotlib.use("Agg")
    return require("matplotlib.pyplot", whose="The report")


def _colour(frozen: Frozen, system: str) -> str:
    if system == frozen.about["reference"]:
        return REFERENCE
    return next((OURS if one["ours"] else OTHERS for one in frozen.about["systems"] if one["name"] == system), OTHERS)


def interval_dots(frozen: Frozen, *, rule: str, delta_max: int) -> list[Dots]:
    """Pooled SPD of every system with its interval beside the best trivial baseline, one picture for each data set, the best on top."""
    shown = [f for f in frozen.figures if f.rule == rule and f.delta_max == delta_max]
    pictures = []
    for dataset in frozen.about["data"]:
        here = sorted((f for f in shown if f.dataset == dataset), key=lambda f: -f.pooled)
        if not here:
            continue
        baseline_score = next((f.baseline_score for f in here if f.entities == f.of), math.nan)
        ends = {
            f.system: (f.pooled_low, f.pooled_high) if f.entities >= fewest_units() else (math.nan, math.nan)
            for f in here
        }
        top = max([high for _, high in ends.values() if math.isfinite(high)] + [f.pooled for f in here] + [0.01])
        rows = [
            Dot(f.system, f.pooled, baseline_score=baseline_score, low=ends[f.system][0], high=ends[f.system][1], tick=f.mean, tone=_colour(frozen, f.system), hollow=f.entities < f.of)
            for f in here
        ]  # fmt: skip
        pictures.append(Dots(frozen.titles[dataset], rows, top=math.ceil(10 * top) / 10))
    return pictures


def ranks_picture(ranks: Ranks, *, reference: str) -> str:
    """Mean ranks on a line, with a bar over systems that are not told apart (Demsar's critical-difference diagram)."""
    k = len(ranks.names)
    half = math.ceil(k / 2)
    groups = ranks.groups()
    height = 1.1 + 0.16 * len(groups) + 0.26 * half
    figure, axes = _pyplot().subplots(figsize=(8.2, height))
    low, high = 1.0, float(k)
    margin = 0.45 * (high - low)
    axes.set_xlim(high + margin, low - margin)  # best on the right
    axes.set_ylim(-(0.5 + 0.16 * len(groups) + 0.26 * half), 0.75)
    axes.axis("off")
    above = {"ha": "center", "va": "bottom", "fontsize": 8}
    bar = {"color": _palette.SOFT, "linewidth": 3.2, "solid_capstyle": "butt", "alpha": 0.75}
    axes.plot([low, high], [0, 0], color=_palette.INK, linewidth=1.2)
    for tick in range(1, k + 1):
        axes.plot([tick, tick], [0, 0.07], color=_palette.INK, linewidth=1)
        if k <= 15 or tick % 2 == 1:
            axes.text(tick, 0.12, str(tick), **above)
    apart = ranks.critical_difference
    axes.plot([high, high - apart], [0.52, 0.52], color=_palette.INK, linewidth=2)
    axes.text(high - apart / 2, 0.57, f"critical difference {apart:.2f}", **above)
    place = dict(zip(ranks.names, ranks.ranks, strict=True))
    for level, group in enumerate(groups):
        y = -0.14 - 0.16 * level
        axes.plot([place[group[0]] - 0.06, place[group[-1]] + 0.06], [y, y], **bar)
    base = -0.2 - 0.16 * len(groups)
    for i, (name, rank) in enumerate(zip(ranks.names, ranks.ranks, strict=True)):
        right = i < half
        y = base - 0.26 * ((i if right else k - 1 - i) + 0.5)
        edge = low - 0.12 * (high - low) if right else high + 0.12 * (high - low)
        colour = _palette.ALARM if name == reference else _palette.INK
        axes.plot([rank, rank, edge], [0, y, y], color=colour, linewidth=0.8, alpha=0.7)
        side, said = ("left", f" {rank:.2f} {name}") if right else ("right", f"{name} {rank:.2f} ")
        axes.text(edge, y, said, ha=side, va="center", fontsize=9, color=colour)
    return figure_to_svg(figure)


def curves_group(
    frozen: Frozen,
    drawn: Mapping[str, Mapping[str, tuple[Array, Array]]],
    baselines: Mapping[str, float],
) -> Group:
    """Precision over normalised delay, one panel for each data set, one step line for each system. A trivial baseline's SPD is an area: it is in the heading."""
    names = list(dict.fromkeys(name for lines in drawn.values() for name in lines))
    panels = [
        curves(
            f"{frozen.titles[dataset]} (the best trivial baseline has an area of {baselines[dataset]:.3f})",
            [(name, f"c{names.index(name) % 8}", *steps_of(*points)) for name, points in lines.items()],
            look="steps",
            range=[0, 1.02],
            ylabel="alarm precision",
        )
        for dataset, lines in drawn.items()
    ]
    return Group([], panels, axis=DELAY_AXIS)


def sweep_group(frozen: Frozen, *, rule: str) -> Group:
    """SPD against delta_max, with the best trivial baseline's, one panel for each data set."""
    figures = [f for f in frozen.figures if f.rule == rule]
    systems = strongest(frozen, figures, 7)
    panels = []
    for dataset in frozen.about["data"]:
        lines = []
        for i, system in enumerate(systems):
            points = sorted((f.delta_max, f.pooled) for f in figures if f.system == system and f.dataset == dataset)
            lines.append((system, f"c{i % 8}", [p[0] for p in points], [p[1] for p in points]))
        whole = sorted(
            {(f.delta_max, f.baseline_score) for f in figures if f.dataset == dataset and f.entities == f.of}
        )
        lines.append(("best trivial baseline, same rule", "baseline", [p[0] for p in whole], [p[1] for p in whole]))
        panels.append(curves(frozen.titles[dataset], lines, range=[0, 1], ylabel="pooled SPD"))
    ticks = sorted({f.delta_max for f in figures})
    return Group([], panels, axis={"label": "delta_max, rows", "log": True, "ticks": ticks})


def strongest(frozen: Frozen, shown: Sequence[Figure], number: int) -> list[str]:
    """The reference, the random baseline, and those with the highest mean of pooled SPD at the headline delta."""
    headline = [f for f in shown if f.delta_max == frozen.about["delta_max"]]
    strength: dict[str, list[float]] = {}
    for f in headline:
        strength.setdefault(f.system, []).append(f.pooled)
    ordered = sorted(strength, key=lambda name: -float(np.mean(strength[name])))
    fixed = [name for name in (frozen.about["reference"], GUESS) if name in strength]
    return fixed + [name for name in ordered if name not in fixed][: number - len(fixed)]


def pooled_mean_group(frozen: Frozen, *, delta_max: int) -> Group:
    """Pooled against per-entity mean, every system under every rule."""
    whole = [f for f in frozen.figures if f.delta_max == delta_max and f.entities == f.of]
    points = [
        (
            rule_title(rule),
            f"c{i % 8}",
            [(f.mean, f.pooled, f"{f.system}, {frozen.titles[f.dataset]}") for f in whole if f.rule == rule],
        )
        for i, rule in enumerate(frozen.about["rules"])
    ]
    panel = scatter("One point for each system, data set and rule", points, ylabel="pooled SPD (one threshold for all)")
    top = max((max(f.mean, f.pooled) for f in whole), default=1.0)
    panel["lines"].append({"label": "equal", "look": "baseline", "x": [0.0, top], "values": [0.0, top]})
    return Group([], [panel], axis={"label": "per-entity mean SPD (a threshold for each entity)"}, switches=False)


def cost_group(frozen: Frozen, *, rule: str, delta_max: int) -> Group:
    """SPD over seconds: one point for each system, mean of the data sets it has in full."""
    datasets = list(frozen.about["data"])
    by_system: dict[str, list[Figure]] = {}
    for f in frozen.figures:
        if f.rule == rule and f.delta_max == delta_max and f.entities == f.of and not math.isnan(f.seconds):
            by_system.setdefault(f.system, []).append(f)
    complete = {name: many for name, many in by_system.items() if len(many) == len(datasets) and name != GUESS}
    kinds = {REFERENCE: frozen.about["reference"], OURS: "ours", OTHERS: "others"}
    points = [
        (
            title,
            colour,
            [
                (max(sum(f.seconds for f in many), 0.1), 100 * float(np.mean([f.pooled for f in many])), name)
                for name, many in complete.items()
                if _colour(frozen, name) == colour
            ],
        )
        for colour, title in kinds.items()
    ]
    panel = scatter("Cost against quality", points, ylabel="pooled SPD, percent, mean of the data sets")
    axis = {"label": "seconds to fit and score every entity of every data set, one thread", "log": True}
    return Group([], [panel], axis=axis, switches=False)
