"""Every score of an evaluation on stretches with one event each, drawn again and again: what its intervals are made of.

The areas and SPD have a quick way (:mod:`tisat.metrics.comparison`): weights in place of rows. The others are computed anew for each draw, so they get
fewer draws. Cutting between events changes some scores: a buffer of VUS and PATE would reach across a cut, and an alarm that is on across one is two
alarms, of which each touches fewer events. Draws are multiplied by the value of the whole series over that of the stretches, so that an interval is
about the same quantity as its estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tisat.metrics.evaluation import default_buffer, fixed_metrics, free_metrics, pooled_and_mean
from tisat.metrics.pooling import drawn
from tisat.metrics.windows import Delay, Windows
from tisat.utils.progress import progress
from tisat.utils.types import Array, Stamps

MOST, LEAST = 100, 40  # draws
WORK = 4_000_000  # rows looked at in all draws, where that leaves LEAST of them
QUICK = ("AUC-ROC", "AUC-PR")


def draws_of(
    labels: Sequence[Any],
    scores: Sequence[Array],
    stamps: Sequence[Any] | None,
    windows: Sequence[Windows],
    weights: Array,
    values: Mapping[str, float],
    *,
    delta_max: Delay,
    max_buffer: int,
    threshold: float | None,
    whose: str = "",
) -> dict[str, Array]:
    """The value of each score in each draw; NaN where a draw has none.

    Parameters
    ----------
    labels, scores, stamps, windows : sequences
        Of the stretches.
    weights : array of shape (B, n)
        How often each stretch is drawn.
    values : mapping of a score to a float
        Of the whole series.
    delta_max, max_buffer, threshold
        As in :func:`tisat.metrics.evaluate`.
    whose : str
        What the progress calls these scores.
    """
    rows = sum(map(len, labels))
    count = max(1, min(len(weights) // 10, MOST, max(LEAST, WORK // max(rows, 1))))
    picks = [np.repeat(np.arange(len(labels)), weight.astype(np.int64)).tolist() for weight in weights[:count]]
    known = np.array([not np.isnan(one).all() for one in scores])
    unknown = weights[:count] @ known == 0  # a draw without any score
    given = free_metrics([*labels], delta_max=delta_max, timestamps=stamps, max_buffer=max_buffer)
    jobs = [(name, metric, [*scores], unknown) for name, metric in given.items() if name not in QUICK]
    if threshold is not None:
        masks = [(one >= threshold).astype(np.float64) for one in scores]
        fixed = fixed_metrics([*labels], windows)
        jobs += [(name, metric, masks, np.zeros_like(unknown)) for name, metric in fixed.items()]
    draws: dict[str, Array] = {}
    with progress(" ".join(("intervals", whose)).strip(), total=count * len(jobs), lines=True) as bar:

        def drawn_picks() -> Iterator[list[int]]:
            for pick in picks:
                yield pick
                bar.advance()

        with drawn(drawn_picks):
            for name, metric, of, undefined in jobs:
                result = metric(of)
                each = [pooled_and_mean(one)[0] for one in getattr(result, "per_series", ()) or (result,)]
                values_drawn = np.where(undefined, np.nan, np.resize(each, count))  # one stretch is drawn as it is
                draws[name] = of_whole(values_drawn, values[name], pooled_and_mean(result)[0])
    return draws


def of_whole(draws: Array, value: float, of_stretches: float) -> Array:
    """The draws of a score between 0 and 1 on stretches as draws of its value on the whole series.

    Examples
    --------
    >>> of_whole(np.array([0.4, 0.5, 0.6]), 0.25, 0.5).tolist()
    [0.2, 0.25, 0.3]
    """
    if value > 0 and of_stretches > 0:
        return np.minimum(draws * (value / of_stretches), max(value, 1.0))
    return draws + (value - of_stretches)


def values_of(
    labels: list[Any],
    scores: list[Array],
    stamps: Stamps,
    windows: Sequence[Windows],
    *,
    delta_max: Delay,
    threshold: float | None,
) -> tuple[dict[str, float], int]:
    """The value of each score on the whole series, as an evaluation has it, and the buffer of VUS and PATE."""
    buffer = default_buffer(windows)
    given = free_metrics(labels, delta_max=delta_max, timestamps=stamps, max_buffer=buffer)
    values = {name: pooled_and_mean(metric(scores))[0] for name, metric in given.items() if name not in QUICK}
    if threshold is not None:
        masks = [(one >= threshold).astype(np.float64) for one in scores]
        values |= {name: pooled_and_mean(metric(masks))[0] for name, metric in fixed_metrics(labels, windows).items()}
    return values, buffer
