"""One entity on one page: the series, each system's statistic with its threshold, alarms, missed events and false alarms.

The threshold is the highest value the statistic reached on the system's nominal rows: it saw no test row and no label. The
labels only colour the picture and sort the alarms into true and false.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tisat.benchmark.evaluation import Evaluation, statistic_of
from tisat.benchmark.frozen import Frozen
from tisat.benchmark.tables import TITLES, rule_title
from tisat.metrics import count_alarms
from tisat.report.benchmark_pictures import _pyplot, _tidy
from tisat.report.page import Picture, Section, Table, figure_to_svg, render_page

CHANNELS = 5  # channels drawn: those that move most in the test series, in units of training
PIXELS = 1500  # columns a line is thinned to: minimum and maximum of each stretch are kept
RULE = "excess"


def thin(values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Instants and values of a line with at most ``2 * PIXELS`` points that looks the same.

    Examples
    --------
    >>> x, y = thin(np.array([0.0, 5.0, 1.0]))
    >>> x.tolist(), y.tolist()
    ([0, 1, 2], [0.0, 5.0, 1.0])
    """
    if len(values) <= 2 * PIXELS:
        return np.arange(len(values)), values
    edges = np.linspace(0, len(values), PIXELS + 1).astype(np.int64)
    filled = np.where(np.isnan(values), -np.inf, values)
    low = [
        int(a + np.argmin(np.where(np.isinf(filled[a:b]), np.inf, filled[a:b]))) for a, b in itertools.pairwise(edges)
    ]
    high = [int(a + np.argmax(filled[a:b])) for a, b in itertools.pairwise(edges)]
    where = np.unique(np.array(low + high, dtype=np.int64))
    return where, values[where]


def nominal_threshold(evaluation: Evaluation, identifier: str, rule: str) -> float:
    """The highest value the rule's statistic reached on nominal rows; the next float above it is the threshold."""
    arrays = evaluation.store.arrays(identifier)
    made = evaluation.rule(rule)
    nominal = {"nominal": arrays["nominal"], "scores": arrays["nominal"]}
    if "nominal_views" in arrays:
        nominal |= {"nominal_views": arrays["nominal_views"], "views": arrays["nominal_views"]}
    top = float(np.nanmax(statistic_of(nominal, made)))
    return float(np.nextafter(max(top, 0.0), np.inf))


def _shade(axes: Any, events: npt.NDArray[np.int64]) -> None:
    for start, stop in events:
        axes.axvspan(start, stop, color="#f5b7b1", alpha=0.55, linewidth=0)


def entity_page(
    frozen: Frozen, evaluation: Evaluation, *, dataset: str, entity: str, systems: Sequence[str]
) -> str | None:
    """The page as HTML, or None where no system has this entity."""
    train, test = evaluation.experiment.sources[dataset].pair(entity)
    delta = frozen.about["delta_max"]
    runs = {}
    for name in systems:
        found, entities = evaluation.finished(name, dataset)
        if found and entity in entities:
            runs[name] = found[0].done[entity]
    if not runs:
        return None
    spread = np.nanstd(train.values, axis=0)
    moved = np.nanstd(test.values, axis=0) / np.where(spread > 0, spread, 1.0)
    channels = sorted(np.argsort(-moved)[:CHANNELS].tolist())
    rows = len(channels) + len(runs)
    figure, panels = _pyplot().subplots(
        rows, 1, figsize=(11, 0.85 * len(channels) + 1.35 * len(runs) + 0.6), sharex=True, squeeze=False
    )
    lines = panels[:, 0]
    for axes, channel in zip(lines, channels, strict=False):
        _shade(axes, test.events)
        axes.plot(*thin(test.values[:, channel].astype(np.float64)), color="#34495e", linewidth=0.7)
        axes.set_ylabel(test.channels[channel][:12], rotation=0, ha="right", va="center", fontsize=8)
        axes.set_yticks([])
        _tidy(axes)
    table = []
    for axes, (name, identifier) in zip(lines[len(channels) :], runs.items(), strict=True):
        statistic = evaluation.statistic(identifier, RULE)
        threshold = nominal_threshold(evaluation, identifier, RULE)
        counts = count_alarms(test.labels, np.nan_to_num(statistic, nan=-np.inf) >= threshold, delta_max=delta)
        _shade(axes, test.events)
        floor = max(threshold / 100, 1e-6)
        axes.plot(*thin(np.maximum(statistic, floor)), color="#2471a3", linewidth=0.8)
        axes.axhline(threshold, color="#1e8449", linewidth=0.9, linestyle="--")
        axes.set_yscale("log")
        height = max(float(np.nanmax(statistic)), threshold) * 1.6
        false = counts.false_alarms[0]
        missed = test.events[~counts.detected, 0]
        found = test.events[counts.detected, 0] + counts.delays[counts.detected]
        axes.plot(false, np.full(len(false), height), "x", color="#c0392b", markersize=5)
        axes.plot(missed, np.full(len(missed), height), "v", color="#111111", markersize=5)
        axes.plot(found, np.full(len(found), height), "^", color="#1e8449", markersize=5)
        axes.set_ylabel(name[:22], rotation=0, ha="right", va="center", fontsize=8)
        axes.tick_params(labelsize=7)
        _tidy(axes)
        table.append(
            (
                name,
                counts.n_events,
                counts.true_alarms,
                counts.n_events - counts.true_alarms,
                counts.n_false_alarms,
                counts.average_delay,
                ", ".join(map(str, missed[:8].tolist())) or "none",
            )
        )
    lines[-1].set_xlabel("instant of the test series")
    figure.tight_layout()
    spd = {(e.system, e.rule): e.spd for e in frozen.entities if e.dataset == dataset and e.entity == entity}
    rules = frozen.about["rules"]
    content: list[str | Table | Picture] = [
        Picture(
            figure_to_svg(figure),
            f"Top: the {len(channels)} channels that move most. Below: each system's statistic under the rule '{RULE}' (logarithmic), first seed; dashed: the threshold, the highest value on nominal rows. "
            "Shaded: labelled events. Green triangle: event found; black triangle: event missed; red cross: false alarm.",
        ),
        Table(
            ("system", "events", "found", "missed", "false alarms", "mean delay", "missed at"),
            table,
            caption=f"At a threshold from training data; delta_max = {delta}. A missed event has delay {delta}.",
        ),
    ]
    if spd:
        content.append(
            Table(
                ("system", *(rule_title(rule) for rule in rules)),
                [
                    (one["name"], *(spd.get((one["name"], rule), float("nan")) for rule in rules))
                    for one in frozen.about["systems"]
                    if any((one["name"], rule) in spd for rule in rules)
                ],
                caption=f"SPD of this entity under each rule, delta_max = {delta}, mean over seeds.",
            )
        )
    title = f"{TITLES[dataset]} {entity}"
    return render_page(
        title,
        [Section("Series, statistics, alarms", content)],
        lead=f"{len(test):,} instants, {test.n_channels} channels, {len(test.events)} events.",
        command=frozen.about["command"],
    )
