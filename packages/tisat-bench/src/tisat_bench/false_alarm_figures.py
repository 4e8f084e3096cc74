"""The false-alarm study over data sets: fit, calibrate, count on held-out normal data, draw.

Only training splits are read: their end is held out from everything else. This module knows data sets and detectors by
name; the counting is :mod:`tisat.alarms.false_alarm_study`'s.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tisat import registry
from tisat.alarms import false_alarm_study as far
from tisat.alarms.calibration import period_interval
from tisat.alarms.decay import exact_decay, paper_decay
from tisat.errors import CalibrationWarning, SeriesError
from tisat.series import Series, as_series
from tisat.utils.extras import require
from tisat.utils.palette import ALARM, CURVES, FOUND, SOFT
from tisat.utils.progress import progress
from tisat.utils.types import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST, MOST = 1e-3, 1e2  # times the period asked for that are drawn
IDEAL_ALPHAS = (0.05, 0.1, 0.2)
IDEAL_TARGETS = (100.0, 1000.0, 10_000.0)
IDEAL_TIME_STEPS = 20_000_000
MOST_PANELS, FARTHEST = 12, 1e6  # entities drawn one by one; rows between alarms that are drawn
COLOURS = {
    "printed": "#c0392b",
    "other-root": "#e67e22",
    "exact": "#2471a3",
}


@dataclass(frozen=True)
class Curve:
    """False-alarm periods counted on one entity, with the bounds as slopes."""

    entity: str
    thresholds: Array
    periods: Array
    bounds: dict[str, float]  # method -> omega in ln(period) >= omega h


def ideal_study(*, time_steps: int = IDEAL_TIME_STEPS, random_state: int = 0) -> tuple[list[far.Promise], list[Curve]]:
    """The theorem's own model: exponential ``d^m``, independent over time.

    Periods at the exact and closed-form thresholds.
    """
    rng = np.random.default_rng(random_state)
    rule = far.ideal_rule()
    promises, curves = [], []
    for alpha in IDEAL_ALPHAS:
        evidence = far.ideal_evidence(time_steps, alpha=alpha, rng=rng)
        volume = -math.log(alpha)  # v_m d_alpha^m with v_m = lambda = 1
        normal = evidence[:5000]
        ball, largest = math.log(volume), float(normal.max()) / volume
        bounds = {
            "exact": exact_decay(q=volume),
            "printed": paper_decay(log_ball=ball, largest=largest, printed=True)[0] / volume,
            "other-root": paper_decay(log_ball=ball, largest=largest)[0] / volume,
        }
        for method, omega in bounds.items():
            for target in IDEAL_TARGETS:
                threshold = math.log(target) / omega
                alarms = far.count_alarms(rule, evidence, threshold)
                counted = (alarms, time_steps, *period_interval(alarms, time_steps))
                restarts = far.count_restarts(rule, evidence, threshold)
                who = (f"ideal, alpha {alpha:g}", "paper", "power", method, method)
                promises.append(far.Promise(*who, target, threshold, *counted, None, restarts))
        thresholds, periods = far.actual_curve(rule, evidence[:2_000_000], points=25)
        curves.append(Curve(f"ideal, alpha {alpha:g}", thresholds, periods, bounds))
    return promises, curves


def _training(data: Sequence[str], root: Path | None, entities: Sequence[str] | None) -> Iterator[tuple[str, Series]]:
    """The training splits, with the name of their set."""
    from tisat_bench import datasets

    for name in data:
        if name not in datasets.NAMES:
            series = as_series(name)
            yield series.name, series
            continue
        loaded = datasets.load(name, root)
        for entity in loaded:
            if entities is None or entity.name in entities:
                yield f"{name} {entity.name}", entity.train


def study(
    data: Sequence[str],
    *,
    root: Path | None = None,
    entities: Sequence[str] | None = None,
    detector: str = "linear-mean",
    rules: Sequence[str] = ("paper",),
    methods: Sequence[str] | None = None,
    targets: Sequence[float] | None = None,
    tail: float = 0.5,
) -> list[far.Promise]:
    """Fit on the beginning of each training split, calibrate, and count false alarms on its end.

    ``rules`` are names; ``paper:weibull`` and ``paper:log`` are the paper's with another form of evidence.
    """
    promises: list[far.Promise] = []
    for name, normal, points, scores in _scored(data, root, entities, detector, tail):
        periods = targets or [len(normal) / 3.0]
        for wanted in rules:
            rule, _, form = wanted.partition(":")
            options = {"form": form or "power"} if rule == "paper" else {}
            chosen = methods or far.METHODS[form or "power" if rule == "paper" else ""]
            promises += far.promises(
                normal, points, targets=periods, rule=rule, methods=chosen, scores=scores, entity=name, **options
            )
    return promises


def _scored(
    data: Sequence[str], root: Path | None, entities: Sequence[str] | None, detector: str, tail: float
) -> Iterator[tuple[str, Array, Array, tuple[Array, Array]]]:
    """Of each training split: its name, normal points, the points of its end, and the scores of both."""
    with progress("counting", total=None) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # the table says what came of it
        for name, series in _training(data, root, entities):
            cut = int(len(series) * (1.0 - tail))
            model = registry.resolve(detector)()
            try:
                model.fit(series[:cut])
            except SeriesError:
                continue  # shorter than the detector's warm-up: nothing to calibrate on
            points = model.points(series)[cut:]
            yield name, model.normal_, points, (model.aggregate(model.normal_), model.aggregate(points))
            bar.advance(note=name)


def held_out_curves(
    data: Sequence[str],
    *,
    root: Path | None = None,
    entities: Sequence[str] | None = None,
    detector: str = "linear-mean",
    tail: float = 0.5,
) -> list[Curve]:
    """Count the paper's rule at many thresholds on held-out normal data, with the bound of each method that has a formula.

    A method that has no solution on an entity has no bound there.
    """
    curves = []
    for name, normal, points, scores in _scored(data, root, entities, detector, tail):
        promises = far.promises(
            normal,
            points,
            targets=[len(normal) / 3.0],
            rule="paper",
            methods=tuple(COLOURS),
            scores=scores,
            form="power",
        )
        bounds = {
            one.method: math.log(one.target) / one.threshold
            for one in promises
            if one.used == one.method and 0 < one.threshold < math.inf
        }
        thresholds, periods = far.held_out_curve(normal, points, rule="paper", scores=scores, form="power")
        if len(thresholds):
            curves.append(Curve(name, thresholds, periods, bounds))
    return curves


def draw_real(curves: Sequence[Curve]) -> Figure:
    """Log period against h with the bounds: a panel an entity, or with more than 12 a panel a data set and method.

    With many entities, whose thresholds have no common scale, h is in units of its bound: the bound is the diagonal, an entity one
    line, and what lies below the diagonal came more often than promised.
    """
    if len(curves) <= MOST_PANELS:
        return draw_study(curves)
    figure_module = require("matplotlib.figure", whose="The false-alarm figure")
    sets = list(dict.fromkeys(curve.entity.partition(" ")[0] for curve in curves))
    figure: Figure = figure_module.Figure(figsize=(3.2 * len(COLOURS), 2.6 * len(sets)), layout="constrained")
    panels = figure.subplots(len(sets), len(COLOURS), squeeze=False, sharex=True, sharey=True)
    for row, name in enumerate(sets):
        own = [curve for curve in curves if curve.entity.partition(" ")[0] == name]
        for column, (method, colour) in enumerate(COLOURS.items()):
            axis, n_curves = panels[row, column], 0
            for curve in own:
                if method in curve.bounds:
                    promised = np.exp(np.minimum(curve.bounds[method] * curve.thresholds, 50.0))
                    axis.plot(promised, curve.periods, color="#3b4252", linewidth=0.7, alpha=0.5)
                    n_curves += 1
            axis.plot([1, FARTHEST], [1, FARTHEST], color=colour, linewidth=1.2, linestyle="--")
            axis.set(xscale="log", yscale="log", xlim=(1, FARTHEST), ylim=(1, FARTHEST))
            axis.set_title(f"{name}, {method}: {n_curves} of {len(own)}", fontsize=8)
            axis.tick_params(labelsize=7)
    figure.supxlabel(
        "rows between false alarms that the bound promises at h, exp(omega h); dashed: the bound", fontsize=8
    )
    figure.supylabel("rows between false alarms, counted", fontsize=8)
    return figure


def draw_study(curves: Sequence[Curve], *, columns: int = 3) -> Figure:
    """Log actual period against h, one panel an entity, with each bound that has a formula."""
    figure_module = require("matplotlib.figure", whose="The false-alarm figure")
    rows = math.ceil(len(curves) / columns)
    width = min(columns, len(curves))
    figure: Figure = figure_module.Figure(figsize=(3.2 * width, 2.6 * rows), layout="constrained")
    axes = figure.subplots(rows, width, squeeze=False).ravel()
    for axis, curve in zip(axes, curves, strict=False):
        axis.plot(curve.thresholds, curve.periods, color="#3b4252", linewidth=1.4, label="actual")
        for method, omega in curve.bounds.items():
            line = np.exp(np.minimum(omega * curve.thresholds, 50.0))
            axis.plot(
                curve.thresholds, line, color=COLOURS[method], linewidth=1.0, linestyle="--", label=f"{method}, bound"
            )
        axis.set_yscale("log")
        axis.set_ylim(1.0, 30.0 * curve.periods.max())
        # A promise beyond what was ever reached is off the page.
        axis.set_xlim(right=1.3 * float(curve.thresholds.max()))
        axis.set_title(curve.entity, fontsize=8)
        axis.tick_params(labelsize=7)
        axis.set_xlabel("threshold h", fontsize=7)
    axes[0].set_ylabel("rows between false alarms", fontsize=7)
    named = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside upper center", ncols=len(named), fontsize=7, frameon=False)
    for axis in axes[len(curves) :]:
        axis.set_visible(False)
    return figure


def _named(one: far.Promise) -> str:
    return f"{one.entity}, {one.rule}" + f":{one.form}" * (one.form not in ("", "power"))


def draw_promises(found: Sequence[far.Promise]) -> Figure:
    """A panel for each entity and rule, a row for each method: the observed period over the one asked for. Right of 1 a promise was kept."""
    figure_module = require("matplotlib.figure", whose="The false-alarm figure")
    groups: dict[str, list[far.Promise]] = {}
    for promise in found:
        groups.setdefault(_named(promise), []).append(promise)
    methods = list(dict.fromkeys(promise.method for promise in found))
    columns = min(3, len(groups))
    rows = math.ceil(len(groups) / columns)
    figure: Figure = figure_module.Figure(
        figsize=(1.2 + 3.4 * columns, rows * (0.9 + 0.28 * len(methods)) + 0.4), layout="constrained"
    )
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axis, (name, many) in zip(panels, groups.items(), strict=False):
        axis.axvline(1.0, color=SOFT, linewidth=1.0, linestyle="--")
        for promise in many:
            y = methods.index(promise.method)
            low, high, value = (
                np.clip(v / promise.target, LEAST, MOST)
                for v in (promise.low, promise.high or math.inf, promise.observed)
            )
            colour = FOUND if promise.kept else ALARM
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
