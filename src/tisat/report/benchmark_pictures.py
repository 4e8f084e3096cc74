"""The pictures of a benchmark report, from figures that were already made. Nothing is counted here.

Colours are one a kind of system: grey for what is in the paper, blue for what is not, red for TiSAT. Fools are dotted lines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tisat._extras import require
from tisat.benchmark.figures import Figure
from tisat.benchmark.frozen import Frozen
from tisat.benchmark.statistics import Ranks
from tisat.benchmark.tables import TITLES, rule_title
from tisat.report.page import figure_to_svg

OURS, PAPER, TISAT, FLOOR = "#2471a3", "#7f8c8d", "#c0392b", "#111111"
RULE_COLOURS = {"threshold": "#7f8c8d", "paper": "#e08e0b", "excess": "#1e8449"}
OTHER_RULE = "#5b2c6f"


def _pyplot() -> Any:
    matplotlib = require("matplotlib", whose="The report")
    matplotlib.use("Agg")
    return require("matplotlib.pyplot", whose="The report")


def _colour(frozen: Frozen, system: str) -> str:
    if system == "TiSAT":
        return TISAT
    return next((OURS if one["ours"] else PAPER for one in frozen.about["systems"] if one["name"] == system), PAPER)


def _tidy(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def intervals_picture(frozen: Frozen, *, rule: str, delta_max: int) -> str:
    """Pooled SPD of every system with its interval, one panel a data set, and the best fool as a line."""
    datasets = list(frozen.about["data"])
    shown = [f for f in frozen.figures if f.rule == rule and f.delta_max == delta_max]
    systems = [one["name"] for one in frozen.about["systems"] if any(f.system == one["name"] for f in shown)]
    cells = {(f.system, f.dataset): f for f in shown}

    def strength(system: str) -> float:
        return float(np.nanmean([cells[system, d].pooled for d in datasets if (system, d) in cells]))

    systems.sort(key=strength)
    figure, panels = _pyplot().subplots(
        1, len(datasets), figsize=(3.1 * len(datasets) + 1.4, 0.27 * len(systems) + 1.3), sharey=True, squeeze=False
    )
    for axes, dataset in zip(panels[0], datasets, strict=True):
        for y, system in enumerate(systems):
            f = cells.get((system, dataset))
            if f is None:
                continue
            hollow = f.entities < f.of
            colour = _colour(frozen, system)
            axes.plot(
                [100 * f.pooled_low, 100 * f.pooled_high],
                [y, y],
                color=colour,
                linewidth=1.6,
                alpha=0.55,
                solid_capstyle="round",
            )
            axes.plot(
                [100 * f.pooled], [y], "o", color=colour, markersize=5.5, markerfacecolor="white" if hollow else colour
            )
            axes.plot([100 * f.mean], [y], "|", color=colour, markersize=8)
        whole = [f for f in shown if f.dataset == dataset and f.entities == f.of]
        if whole:
            axes.axvline(100 * whole[0].floor, color=FLOOR, linestyle=":", linewidth=1.2)
        axes.set_title(TITLES[dataset], fontsize=11)
        axes.set_xlabel("SPD, percent")
        axes.set_xlim(0, None)
        axes.set_yticks(range(len(systems)), systems)
        axes.grid(axis="x", color="#e5e8ec", linewidth=0.8)
        axes.set_axisbelow(True)
        _tidy(axes)
    figure.tight_layout()
    return figure_to_svg(figure)


def ranks_picture(ranks: Ranks) -> str:
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
    axes.plot([low, high], [0, 0], color="#333", linewidth=1.2)
    for tick in range(1, k + 1):
        axes.plot([tick, tick], [0, 0.07], color="#333", linewidth=1)
        if k <= 15 or tick % 2 == 1:
            axes.text(tick, 0.12, str(tick), ha="center", va="bottom", fontsize=8)
    axes.plot([high, high - ranks.critical_difference], [0.52, 0.52], color="#333", linewidth=2)
    axes.text(
        high - ranks.critical_difference / 2,
        0.57,
        f"critical difference {ranks.critical_difference:.2f}",
        ha="center",
        va="bottom",
        fontsize=8,
    )
    place = dict(zip(ranks.names, ranks.ranks, strict=True))
    for level, group in enumerate(groups):
        y = -0.14 - 0.16 * level
        axes.plot(
            [place[group[0]] - 0.06, place[group[-1]] + 0.06],
            [y, y],
            color="#555",
            linewidth=3.2,
            solid_capstyle="butt",
            alpha=0.75,
        )
    base = -0.2 - 0.16 * len(groups)
    for i, (name, rank) in enumerate(zip(ranks.names, ranks.ranks, strict=True)):
        right = i < half
        y = base - 0.26 * ((i if right else k - 1 - i) + 0.5)
        edge = low - 0.12 * (high - low) if right else high + 0.12 * (high - low)
        colour = TISAT if name == "TiSAT" else "#222"
        axes.plot([rank, rank, edge], [0, y, y], color=colour, linewidth=0.8, alpha=0.7)
        axes.text(
            edge,
            y,
            f" {rank:.2f} {name}" if right else f"{name} {rank:.2f} ",
            ha="left" if right else "right",
            va="center",
            fontsize=9,
            color=colour,
        )
    return figure_to_svg(figure)


def curves_picture(
    curves: Mapping[str, Mapping[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]],
    floors: Mapping[str, float],
) -> str:
    """Precision over normalised delay, one panel a data set, one step line a system."""
    figure, panels = _pyplot().subplots(1, len(curves), figsize=(4.1 * len(curves), 3.8), sharey=True, squeeze=False)
    palette = ("#c0392b", "#2471a3", "#1e8449", "#e08e0b", "#7d3c98", "#7f8c8d", "#17202a", "#b7950b")
    names = list(dict.fromkeys(name for lines in curves.values() for name in lines))
    for axes, (dataset, lines) in zip(panels[0], curves.items(), strict=True):
        for name, (nadd, precision) in lines.items():
            axes.step(
                np.append(1.0, nadd),
                np.nan_to_num(np.append(precision[:1], precision)),
                where="pre",
                color=palette[names.index(name) % len(palette)],
                linewidth=1.4,
                label=name,
            )
        axes.axhline(floors[dataset], color=FLOOR, linestyle=":", linewidth=1.2)
        axes.set(xlim=(1, 0), ylim=(0, 1.02), xlabel="normalised delay (1 = never, 0 = at once)", title=TITLES[dataset])
        _tidy(axes)
    panels[0][0].set_ylabel("alarm precision")
    handles, labels = max((axes.get_legend_handles_labels() for axes in panels[0]), key=lambda found: len(found[1]))
    figure.legend(handles, labels, loc="lower center", ncols=min(4, len(labels)), frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.04 + 0.055 * math.ceil(len(labels) / 4), 1, 1))
    return figure_to_svg(figure)


def sweep_picture(frozen: Frozen, *, rule: str) -> str:
    """SPD against delta_max, with the best fool's, one panel a data set."""
    datasets = list(frozen.about["data"])
    figure, panels = _pyplot().subplots(
        1, len(datasets), figsize=(4.1 * len(datasets), 3.9), sharey=True, squeeze=False
    )
    palette = ("#c0392b", "#2471a3", "#1e8449", "#e08e0b", "#7d3c98", "#7f8c8d", "#17202a", "#b7950b")
    shown = [f for f in frozen.figures if f.rule == rule]
    systems = _strongest(frozen, shown, 7)
    for axes, dataset in zip(panels[0], datasets, strict=True):
        for i, system in enumerate(systems):
            points = sorted((f.delta_max, f.pooled) for f in shown if f.system == system and f.dataset == dataset)
            if points:
                colour = TISAT if system == "TiSAT" else palette[1 + i % (len(palette) - 1)]
                axes.plot(*zip(*points, strict=True), "o-", markersize=3.5, linewidth=1.3, color=colour, label=system)
        whole = sorted({(f.delta_max, f.floor) for f in shown if f.dataset == dataset and f.entities == f.of})
        if whole:
            axes.plot(*zip(*whole, strict=True), ":", color=FLOOR, linewidth=1.6, label="best fool, same rule")
        axes.set_xscale("log")
        axes.set(xlabel="delta_max, instants", title=TITLES[dataset], ylim=(0, 1))
        _tidy(axes)
    panels[0][0].set_ylabel("pooled SPD")
    handles, labels = max((axes.get_legend_handles_labels() for axes in panels[0]), key=lambda found: len(found[1]))
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.04 + 0.055 * math.ceil(len(labels) / 4), 1, 1))
    return figure_to_svg(figure)


def _strongest(frozen: Frozen, shown: Sequence[Figure], number: int) -> list[str]:
    """TiSAT, the coin, and those with the highest mean of pooled SPD at the headline delta."""
    headline = [f for f in shown if f.delta_max == frozen.about["delta_max"]]
    strength: dict[str, list[float]] = {}
    for f in headline:
        strength.setdefault(f.system, []).append(f.pooled)
    ordered = sorted(strength, key=lambda name: -float(np.mean(strength[name])))
    fixed = [name for name in ("TiSAT", "Random Guess") if name in strength]
    return fixed + [name for name in ordered if name not in fixed][: number - len(fixed)]


def pooled_mean_picture(frozen: Frozen, *, delta_max: int) -> str:
    """Pooled against per-entity mean, every system under every rule."""
    figure, axes = _pyplot().subplots(figsize=(6.2, 4.6))
    markers = dict(zip(frozen.about["data"], ("o", "s", "^", "D", "v"), strict=False))
    for f in frozen.figures:
        if f.delta_max == delta_max and f.entities == f.of:
            axes.plot(
                f.mean,
                f.pooled,
                markers[f.dataset],
                color=RULE_COLOURS.get(f.rule, OTHER_RULE),
                markersize=5,
                alpha=0.75,
            )
    top = max((max(f.mean, f.pooled) for f in frozen.figures), default=1.0) * 1.05
    axes.plot([0, top], [0, top], color="#999", linewidth=1, linestyle="--")
    for dataset, marker in markers.items():
        axes.plot([], [], marker, color="#555", label=TITLES[dataset])
    for rule in frozen.about["rules"]:
        axes.plot([], [], "s", color=RULE_COLOURS.get(rule, OTHER_RULE), label=rule_title(rule))
    axes.set(
        xlim=(0, top),
        ylim=(0, top),
        xlabel="per-entity mean SPD (a threshold for each entity)",
        ylabel="pooled SPD (one threshold for all)",
    )
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    _tidy(axes)
    figure.tight_layout()
    return figure_to_svg(figure)


def cost_picture(frozen: Frozen, *, rule: str, delta_max: int) -> str:
    """SPD over seconds: one point a system, mean of the data sets it has in full."""
    datasets = list(frozen.about["data"])
    found: dict[str, list[Figure]] = {}
    for f in frozen.figures:
        if f.rule == rule and f.delta_max == delta_max and f.entities == f.of:
            found.setdefault(f.system, []).append(f)
    complete = {name: many for name, many in found.items() if len(many) == len(datasets) and name != "Random Guess"}
    figure, axes = _pyplot().subplots(figsize=(7.4, 4.6))
    placed = sorted(
        (
            (max(sum(f.seconds for f in many), 0.1), float(np.mean([f.pooled for f in many])), name)
            for name, many in complete.items()
        ),
        key=lambda p: p[1],
    )
    labels: list[tuple[float, float, float]] = []  # left and right end in decades, height
    for seconds, spd, name in placed:
        colour = _colour(frozen, name)
        axes.plot(seconds, 100 * spd, "o", color=colour, markersize=6)
        left, y = float(np.log10(seconds * 1.15)), 100 * spd
        right = left + 0.05 * len(name)
        while any(left < other[1] and other[0] < right and abs(y - other[2]) < 1.1 for other in labels):
            y += 0.3  # labels do not overlap
        labels.append((left, right, y))
        axes.annotate(name, (seconds, 100 * spd), xytext=(seconds * 1.15, y), fontsize=8.5, color=colour, va="center")
    axes.set_xscale("log")
    if placed:
        axes.set_xlim(min(p[0] for p in placed) / 1.5, max(p[0] for p in placed) * 9)
    axes.set(
        xlabel="seconds to fit and score every entity of every data set, one thread",
        ylabel="pooled SPD, percent, mean of the data sets",
    )
    axes.grid(color="#e5e8ec", linewidth=0.8)
    axes.set_axisbelow(True)
    _tidy(axes)
    figure.tight_layout()
    return figure_to_svg(figure)
