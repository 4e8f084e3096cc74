"""The audit as a page: the verdict in words, every score beside its floor, the curve, the sweep, and where alarms went wrong.

It draws what :func:`tisat.metrics.audit` found and computes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tisat._extras import require
from tisat.metrics.audit import Audit
from tisat.report.page import Picture, Section, Table, figure_to_svg, render_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCORE, FOOL, EVENT, ALARM = "#1f6fb2", "#8a8f98", "#f2c14e", "#c8413b"  # ours, the fools, labels, false alarms
TIMELINES = 6  # series drawn
LISTED = 200  # rows of a list on the page
INK = 2000  # points of a drawn series: its running maxima, so that no peak is lost


def _figure(width: float, height: float) -> tuple[Any, Any]:
    pyplot = require("matplotlib.pyplot", whose="The audit page")
    figure, axes = pyplot.subplots(figsize=(width, height))
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _curve_picture(audit: Audit) -> Picture:
    figure, axes = _figure(5.5, 3.8)
    audit.evaluation.curve.plot(axes)
    return Picture(
        figure_to_svg(figure),
        "Precision against delay over all thresholds; SPD is the shaded area. Grey: the fools' SPD.",
    )


def _score_picture(audit: Audit) -> Picture:
    rows = [row for row in audit.evaluation.rows if np.isfinite(row.pooled)]
    figure, axes = _figure(7, 0.36 * len(rows) + 1)
    height = np.arange(len(rows))[::-1]
    for y, row in zip(height, rows, strict=True):
        axes.plot([row.floor, row.pooled], [y, y], color="0.8", linewidth=3, zorder=1)
    axes.scatter(
        [row.floor for row in rows], height, color=FOOL, marker="|", s=160, linewidths=2.5, label="best fool", zorder=2
    )
    axes.scatter([row.pooled for row in rows], height, color=SCORE, s=45, label="these scores", zorder=3)
    axes.set_yticks(height, [row.name for row in rows])
    axes.set(xlim=(-0.02, 1.02), xlabel="score, pooled")
    axes.legend(loc="lower right", frameon=False, fontsize="small", bbox_to_anchor=(1, 1), ncols=2)
    return Picture(
        figure_to_svg(figure),
        "Every score beside what the best fool gets under it. What counts is the distance, not the height.",
    )


def _sweep_picture(audit: Audit) -> Picture:
    figure, axes = _figure(5.5, 3.2)
    where = np.arange(len(audit.sweep))
    axes.plot(where, [p.pooled for p in audit.sweep], "o-", color=SCORE, label="pooled")
    if audit.evaluation.n_series > 1:
        axes.plot(
            where, [p.per_series_mean for p in audit.sweep], "o--", color=SCORE, alpha=0.55, label="per-series mean"
        )
    axes.plot(where, [p.floor for p in audit.sweep], "s-", color=FOOL, label="best fool, pooled")
    axes.set_xticks(where, [str(p.delta_max) for p in audit.sweep])
    axes.set(ylim=(0, 1), xlabel="delta_max", ylabel="SPD")
    axes.legend(frameon=False, fontsize="small")
    return Picture(
        figure_to_svg(figure),
        "A longer tolerable delay raises SPD and its floor alike: choose it by need, not by the number it gives.",
    )


def _series_picture(audit: Audit, names: Sequence[str]) -> Picture:
    score = audit.evaluation.spd
    pairs = sorted(
        ((value, name) for value, name in zip(score.per_series, names, strict=True) if np.isfinite(value)), reverse=True
    )
    figure, axes = _figure(7, 3)
    axes.bar(range(len(pairs)), [value for value, _ in pairs], color=SCORE, alpha=0.75)
    axes.axhline(float(score), color="black", linewidth=1, label=f"pooled {float(score):.3f}")
    axes.axhline(
        score.per_series_mean, color="black", linewidth=1, linestyle="--", label=f"mean {score.per_series_mean:.3f}"
    )
    axes.set_xticks(
        range(len(pairs)), [name for _, name in pairs], rotation=90, fontsize="x-small" if len(pairs) < 40 else 4
    )
    axes.set(ylim=(0, 1), ylabel="SPD")
    axes.legend(frameon=False, fontsize="small")
    return Picture(figure_to_svg(figure), "SPD of each series with its own threshold, and of all with one.")


def _thin(scores: npt.NDArray[np.float64]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """At most ``INK`` points of the scores: the largest of each block."""
    block = max(-(-len(scores) // INK), 1)
    padded = np.append(scores, np.full(-len(scores) % block, np.nan)).reshape(-1, block)
    known = ~np.isnan(padded).all(axis=1)
    highest = np.full(len(padded), np.nan)
    highest[known] = np.nanmax(padded[known], axis=1)
    return np.arange(len(padded)) * float(block), highest


def _timeline(axes: Axes, audit: Audit, name: str, scores: npt.NDArray[np.float64]) -> None:
    where, highest = _thin(scores)
    axes.plot(where, highest, color=SCORE, linewidth=0.7)
    axes.axhline(audit.threshold, color="black", linewidth=0.8, linestyle="--")
    top = np.nanmax(np.append(highest, audit.threshold))
    for event in audit.events:
        if event.series == name:
            axes.axvspan(event.start, event.stop, color=EVENT, alpha=0.6 if event.detected else 0.25, linewidth=0)
            if not event.detected:
                axes.plot((event.start + event.stop) / 2, top, "x", color="black", markersize=4)
    alarms = [alarm.instant for alarm in audit.false_alarms if alarm.series == name]
    axes.plot(alarms, np.full(len(alarms), audit.threshold), "v", color=ALARM, markersize=4)
    axes.set_title(f"{name}: {len(alarms)} false alarm{'s' * (len(alarms) != 1)}", loc="left", fontsize="small")
    axes.set_xlim(0, len(scores))


def _timelines(audit: Audit, names: Sequence[str], scores: Sequence[npt.NDArray[np.float64]]) -> Picture:
    pyplot = require("matplotlib.pyplot", whose="The audit page")
    trouble = dict.fromkeys(names, 0)
    for name in [*(event.series for event in audit.missed), *(alarm.series for alarm in audit.false_alarms)]:
        trouble[name] += 1
    chosen = sorted(names, key=lambda name: -trouble[name])[:TIMELINES]
    figure, grid = pyplot.subplots(
        len(chosen), 1, figsize=(9, 1.5 * len(chosen) + 0.4), squeeze=False, layout="constrained"
    )
    by_name = dict(zip(names, scores, strict=True))
    for axes, name in zip(grid[:, 0], chosen, strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        _timeline(axes, audit, name, by_name[name])
    grid[-1, 0].set_xlabel("instant")
    caption = (
        "Scores, threshold (dashed), labelled events (yellow; pale, with a cross, where missed) and false alarms (red)."
    )
    if len(chosen) < len(names):
        caption += f" The {len(chosen)} series with most misses and false alarms, of {len(names)}."
    return Picture(figure_to_svg(figure), caption)


def _lists(audit: Audit) -> list[str | Table | Picture]:
    missed = [(event.series, event.time, event.start, event.stop) for event in audit.missed]
    false = [(alarm.series, alarm.time, alarm.instant) for alarm in audit.false_alarms]
    content: list[str | Table | Picture] = []
    for what, columns, rows in (
        ("events missed", ("series", "time", "start", "stop"), missed),
        ("false alarms", ("series", "time", "instant"), false),
    ):
        more = f"; the first {LISTED} are shown, the JSON has all" if len(rows) > LISTED else ""
        content.append(f"{len(rows)} {what}{more}.")
        if rows:
            content.append(Table(columns, rows[:LISTED]))
    return content


def audit_page(
    audit: Audit, *, names: Sequence[str], scores: Sequence[npt.NDArray[np.float64]], command: str = ""
) -> str:
    """The page as text: self-contained HTML.

    Parameters
    ----------
    audit : Audit
    names, scores
        Those the audit was made from, for the timelines.
    command : str
        Printed at the foot.
    """
    evaluation = audit.evaluation
    rows = [(r.name, r.fool, r.pooled, r.per_series_mean, r.floor, r.corrected) for r in evaluation.rows]
    table = Table(
        ("score", "best fool", "pooled", "per-series mean", "floor", "chance-corrected"),
        rows,
        caption="oracle: the threshold was chosen with the labels. Chance-corrected: 0 is the best fool, 1 is perfect.",
        strong=(0,),
    )
    floors = Table(
        ("fool", "pooled", "per-series mean"),
        [(name, float(score), score.per_series_mean) for name, score in evaluation.curve.floors.named.items()],
        caption=f"SPD of each fool on these labels at delta_max {evaluation.curve.delta_max}.",
    )
    coin = Table(
        ("coin", "precision", "recall", "F1"),
        [
            ("p = 0.01", audit.coin.precision, audit.coin.recall, audit.coin.f1),
            (
                f"p = {audit.best_coin_probability:.3g}, the best",
                audit.best_coin.precision,
                audit.best_coin.recall,
                audit.best_coin.f1,
            ),
        ],
        caption="Point-adjusted scores of an alarm at random on these labels, by closed form.",
    )
    sweep = Table(
        ("delta_max", "best fool", "pooled", "per-series mean", "floor", "chance-corrected"),
        [(str(p.delta_max), p.fool, p.pooled, p.per_series_mean, p.floor, p.corrected) for p in audit.sweep],
    )
    beware = [(row.name, row.warning) for row in evaluation.rows if row.warning]
    sections = [
        Section("Verdict", list(audit.verdict)),
        Section("Every score beside its floor", [_score_picture(audit), table]),
        Section("Before you quote one of them", [Table(("score", "beware"), beware)]),
        Section("Precision against delay", [_curve_picture(audit), floors]),
        Section("How SPD moves with delta_max", [_sweep_picture(audit), sweep]),
        Section("What a coin gets under point adjustment", [coin]),
    ]
    if evaluation.n_series > 1:
        sections.append(Section("Pooled against per-series mean", [_series_picture(audit, names)]))
    where = f"Where alarms went wrong, threshold {audit.threshold:.6g} ({audit.threshold_source})"
    sections.append(Section(where, [_timelines(audit, names, scores), *_lists(audit)]))
    lead = (
        f"{evaluation.n_series} series, {evaluation.n_instants:,} instants, {evaluation.n_events} events, "
        f"delta_max {evaluation.curve.delta_max}."
    )
    return render_page("What these scores are worth", sections, lead=lead, command=command)
