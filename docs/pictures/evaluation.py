"""The pictures of docs/which-score.md and docs/5-evaluation.md, and the table of the four trivial baselines.

    python docs/pictures/evaluation.py --data DIR

DIR holds the data sets (only their label files are read). Writes three PNG files beside this script and prints the table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from tisat import metrics
from tisat.events import events_from_labels
from tisat.metrics.evaluation import baseline_scores
from tisat.metrics.windows import all_windows
from tisat.utils.palette import ALARM, BASELINE, EXPECTED, FAULT, FOUND
from tisat_bench import datasets

HERE = Path(__file__).parent
BLUE, GREY, SHADE, RED, GREEN = EXPECTED, BASELINE, FAULT, ALARM, FOUND
DELTA_MAX, P = 100, 0.01
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})


def _save(figure: Any, name: str) -> None:
    figure.savefig(HERE / name, dpi=200, bbox_inches="tight", metadata={"Software": "tisat"})
    plt.close(figure)


def inflation(labels: np.ndarray, start: int, stop: int) -> None:
    """Figure 1 of the paper on real labels: a random baseline, plainly counted and point-adjusted."""
    y = labels[start:stop]
    alarms = np.random.default_rng(4).random(len(y)) < P
    adjusted = alarms.copy()
    for a, b in events_from_labels(y):
        adjusted[a:b] |= alarms[a:b].any()
    figure, axes = plt.subplots(3, 1, figsize=(8.4, 3.9), sharex=True, gridspec_kw={"hspace": 0.75})
    for ax in axes:
        for a, b in events_from_labels(y):
            ax.axvspan(a, b, color=SHADE, alpha=0.45, linewidth=0)
        ax.set(ylim=(0, 1), xlim=(0, len(y)))
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
    axes[0].vlines(np.flatnonzero(alarms), 0, 0.8, color="black", linewidth=0.8)
    axes[0].set_title(
        f"the random baseline: an alarm at each row with probability {P}; labelled events in grey-blue", loc="left"
    )
    for ax, marked, name in ((axes[1], alarms, "row by row"), (axes[2], adjusted, "point-adjusted")):
        tp, fp = int((marked & y).sum()), int((marked & ~y).sum())
        precision, recall = tp / max(tp + fp, 1), tp / int(y.sum())
        f1 = 2 * precision * recall / (precision + recall)
        ax.vlines(np.flatnonzero(marked & y), 0, 0.8, color=GREEN, linewidth=0.8)
        ax.vlines(np.flatnonzero(marked & ~y), 0, 0.8, color=RED, linewidth=0.8)
        ax.set_title(
            f"{name}: {tp:,} true positives (green), {fp} false (red): precision {precision:.2f}, recall {recall:.2f}, F1 {f1:.2f}",
            loc="left",
        )
    axes[2].set_xlabel("row of the SWaT attack log")
    _save(figure, "point-adjustment.png")


def timeline() -> None:
    """What SPD counts at one threshold."""
    y = np.zeros(120, dtype=int)
    for a, b in ((20, 45), (58, 62), (72, 96)):
        y[a:b] = 1
    delta = 16
    active = np.zeros(120, dtype=bool)
    active[5:8] = active[25:40] = active[91:95] = True
    active[100:120] = True
    windows = all_windows(y, delta, whose="picture")[0]
    counts = metrics.count_alarms(y, active, delta_max=delta)
    figure, ax = plt.subplots(figsize=(10, 2.9))
    for (a, b), stop in zip(windows.events, windows.stops, strict=True):
        ax.axvspan(a, b, ymin=0.30, ymax=0.50, color=SHADE, alpha=0.8, linewidth=0)
        ax.axvspan(a, stop, ymin=0.52, ymax=0.62, color=GREEN, alpha=0.35, linewidth=0)
        ax.plot([a, a], [0.52, 0.66], color=GREEN, linewidth=1.2)
    for a, b in events_from_labels(active):
        ax.axvspan(a, b, ymin=0.08, ymax=0.28, color=BLUE, alpha=0.55, linewidth=0)
    for t in counts.false_alarms[0]:
        ax.plot(t + 0.4, 0.18, "v", color=RED, markersize=8)
    ax.plot(25.4, 0.18, "^", color=GREEN, markersize=8)

    def note(x: float, text: str, to: tuple[float, float], height: float) -> None:
        ax.annotate(
            text,
            to,
            (x, height),
            fontsize=8,
            ha="center",
            va="bottom",
            arrowprops={"arrowstyle": "-", "color": "0.4", "linewidth": 0.7},
        )

    note(7, "raised outside\nevery window:\none false alarm", (5.5, 0.28), 0.72)
    note(31, "first active row of\nthe window: detected once,\ndelay 5 (lasting costs nothing)", (25.5, 0.28), 0.72)
    note(59, "no alarm: missed,\ndelay = delta_max\n(window cut by next onset)", (60, 0.62), 0.72)
    note(87, "raised in the event,\nafter its window: counts\nneither way; missed", (92, 0.28), 0.72)
    note(110, "lasts longer than\ndelta_max: raised\nagain, charged again", (116.5, 0.28), 0.72)
    for height, text in ((0.40, "labels"), (0.57, "windows"), (0.18, "alarm")):
        ax.text(-1, height, text, ha="right", va="center")
    ax.set(xlim=(0, 120), ylim=(0, 1.05), xlabel=f"row (delta_max = {delta})")
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_title(str(counts), fontsize=8, loc="left", color="0.35")
    _save(figure, "what-spd-counts.png")


def baselines(labels: list[np.ndarray], n_simulations: int) -> None:
    """Every metric on the four trivial baselines, on the same real labels."""
    windows = all_windows(labels, DELTA_MAX, whose="picture")
    draws = baseline_scores(windows, n_simulations=n_simulations, rng=np.random.default_rng(0))
    rate = {"random": P, "random, rolling maximum": P}

    def at_threshold(metric: Callable[..., Any]) -> Callable[[str, list[np.ndarray]], float]:
        def run(baseline: str, s: list[np.ndarray]) -> float:
            level = (
                float(np.quantile(np.concatenate(s), 1 - rate[baseline]))
                if baseline in rate
                else float(np.concatenate(s).max())
            )
            return float(metric(labels, s, threshold=level).f1)

        return run

    table: dict[str, Callable[[str, list[np.ndarray]], float]] = {
        "SPD": lambda _, s: float(metrics.spd_score(labels, s, delta_max=DELTA_MAX)),
        "event F1 (oracle)": lambda _, s: metrics.best_event_f1(labels, s, delta_max=DELTA_MAX).f1,
        "VUS-PR": lambda _, s: float(metrics.vus_pr(labels, s, max_buffer=DELTA_MAX)),  # of 2025
        "instance F1 (oracle)": lambda _, s: metrics.best_instance_f1(labels, s).f1,
        "PA%K area (oracle)": lambda _, s: float(metrics.pa_k_auc(labels, s)),
        "range-based F1": at_threshold(metrics.range_precision_recall),
        "affiliation F1": at_threshold(metrics.affiliation_precision_recall),
        "adjusted F1 (oracle)": lambda _, s: metrics.best_adjusted_f1(labels, s).f1,
    }
    found = {
        name: {baseline: float(np.mean([metric(baseline, s) for s in draws[baseline]])) for baseline in draws}
        for name, metric in table.items()
    }
    print(f"| score | {' | '.join(draws)} |\n|---|{'---|' * len(draws)}")
    for name, values in found.items():
        best = max(values, key=lambda baseline: values[baseline])
        print(
            f"| {name} | "
            + " | ".join(f"**{v:.3f}**" if baseline == best else f"{v:.3f}" for baseline, v in values.items())
            + " |"
        )
    figure, ax = plt.subplots(figsize=(7.6, 3.4))
    height = np.arange(len(found))[::-1]
    for (baseline, marker), colour in zip(
        {"random": "o", "random, rolling maximum": "D", "always on": "s", "on/off": "^"}.items(),
        (BLUE, GREEN, GREY, RED),
        strict=True,
    ):
        ax.scatter(
            [values[baseline] for values in found.values()],
            height,
            marker=marker,
            s=48,
            label=baseline,
            color=colour,
            alpha=0.85,
        )
    ax.hlines(height, 0, 1, color="0.9", zorder=0)
    ax.set_yticks(height, list(found))
    ax.set(xlim=(-0.02, 1.02), xlabel="what the trivial baseline scores")
    ax.legend(frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
    _save(figure, "four-baselines.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--simulations", type=int, default=3)
    arguments = parser.parse_args()
    inflation(next(iter(datasets.labels("swat", arguments.data).values())), 0, 12_000)
    timeline()
    baselines(list(datasets.labels("smd", arguments.data).values()), arguments.simulations)
