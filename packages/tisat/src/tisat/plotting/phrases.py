"""Words and pictures that several pages share: what each term means, and the curve whose area is SPD."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.metrics import SPDCurve
from tisat.plotting.charts import Group, curves

TERMS = {
    "SPD": "Sequence Precision Delay: the area under alarm precision against delay, over all thresholds. Each fault is rewarded once, the more the sooner; "
    "each false alarm is penalised once. 1 is perfect.",
    "baseline score": "What the best trivial baseline gets on the same labels. A trivial baseline has not looked at the data: its scores are random, or random and held for a while, or its alarm "
    "is always on, or goes on and off.",
    "chance-corrected": "The score on a scale on which the best trivial baseline has 0 and a perfect detector 1. Below 0 is worse than the trivial baseline.",
    "point-adjusted F1 (oracle)": "The score most papers report. One alarm anywhere in a fault counts as if all of it had been found, and the threshold is "
    "chosen by looking at the labels (an oracle). Random guessing does well under it, so it is shown and not used.",
    "oracle": "The threshold was chosen by looking at the labels, which nobody has when it matters: an upper limit, not a result.",
    "excess rule": "Evidence adds up over time instead of being scored row by row; an alarm is raised when the sum reaches the threshold of your budget.",
    "alarm rule": "How scores become alarms: row by row against a threshold, or added up over time.",
    "delta_max": "The longest delay, in rows or in time, after which an alarm still counts as having found a fault.",
    "pooled": "All series together, with one threshold for all of them: what a plant with one setting would see.",
    "per-series mean": "Each series with a threshold of its own, then the mean. It is kinder, and no single setting reaches it.",
    "interval": "Where the value would lie with other events of the same kind, 95 times of 100 (bootstrap). Intervals that overlap much: the order may be chance.",
    "random_baseline": "An alarm at random, which has looked at nothing.",
}


def terms_of(*names: str) -> tuple[tuple[str, str], ...]:
    """Some of the terms with what they mean, in this order."""
    return tuple((name, TERMS[name]) for name in names)


def curve_group(drawn: Sequence[tuple[str, str, SPDCurve]], *, caption: str) -> Group:
    """Precision against delay, one step line for each curve: the area below it is its SPD. Trivial baselines have areas, so they have no line here."""
    lines = [
        (f"{label} (area {float(curve.score):.3f})", look, *steps_of(curve.nadd, curve.precision))
        for label, look, curve in drawn
    ]
    panel = curves("Alarm precision against delay", lines, look="steps", range=[0, 1.02], ylabel="alarm precision")
    return Group([], [panel], axis=DELAY_AXIS, caption=caption, switches=False)


DELAY_AXIS = {"label": "delay: 1 = never found, 0 = at once", "reverse": True, "range": [0.0, 1.0]}


def steps_of(
    nadd: np.typing.NDArray[np.float64], precision: np.typing.NDArray[np.float64]
) -> tuple[np.typing.NDArray[np.float64], np.typing.NDArray[np.float64]]:
    """Places in ascending order and the height that holds from each to the next, from points by descending threshold."""
    if not len(nadd):
        return nadd, precision
    x, first = np.unique(np.append(1.0, nadd), return_index=True)
    return x, np.nan_to_num(np.append(precision[:1], precision))[first]
