"""From what the views say to one point a row: scores, contributing channels, expected values.

How loud a view is, is on a logarithmic scale, as in the excess rule. This module knows the list of views; it does not know the
detector.
"""

from __future__ import annotations

import math

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism import VIEWS
from tisat.utils.compiled import compiled
from tisat.utils.types import Flags, Integers

UNIT = 0.2  # summed excess that counts as one unit in attribution, as in the excess rule
QUIET = 1e-3  # what a view below its level says in attribution
BLAMING = ("error", "joint", "activity", "rhythm")  # views that know which channel it is
OTHERS, RELATIONS = np.array([list(VIEWS).index(name) for name in BLAMING]), list(VIEWS).index("relations")
SLOW = [v for v, view in enumerate(VIEWS.values()) if view.slow]
STEADY = 0.995  # share of unseen rows a slow view must be steady on
LEVEL = 3.0  # spreads from what the others say at which a lively channel is at another level
ACTIVITY, ACTIVITY_OF_MODES = (
    list(VIEWS).index("activity"),
    len(VIEWS),
)  # the latter comes after the views and the mode view
SMALLEST = 0.01  # a score that counts: 20 make a UNIT


def exponents(normal: Array) -> Array:
    """How much of its word each view keeps ``(V,)``, from its scores ``(N, V)`` of rows the model has not seen.

    Examples
    --------
    >>> steady, restless = np.zeros(1000), np.linspace(0.0, 10.0, 1000)
    >>> exponents(np.stack([restless] * 4 + [steady, restless], axis=1)).round(2).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 0.14]
    """
    weights = np.ones(normal.shape[1])
    for v, view in enumerate(VIEWS.values()):
        known = normal[~np.isnan(normal[:, v]), v]
        if view.slow and len(known):
            reached = np.log1p(max(float(np.quantile(known, STEADY)), 0.0) / SMALLEST)
            weights[v] = 1.0 / max(reached, 1.0)
    return weights


def compressed(scores: Array, kept: Array) -> Array:
    """Scores ``(T, V)`` with what lies above the level 0 raised to the powers ``kept``, in units of SMALLEST."""
    out = scores.copy()
    restless = [v for v in SLOW if kept[v] != 1.0]
    if restless:  # SLOW views are neighbours: a slice, which takes less time than a list for one row
        noisy = out[:, restless[0] : restless[-1] + 1]
        less = np.maximum(noisy, 0.0)
        less /= SMALLEST
        np.log1p(less, out=less)
        less *= kept[restless[0] : restless[-1] + 1]
        np.expm1(less, out=less)
        less *= SMALLEST
        np.minimum(noisy, 0.0, out=noisy)
        noisy += less  # one of them is 0
    return out


def total(views: Array) -> Array:
    """Scores ``(T,)`` of views ``(T, V)``: the sum of ``log(1 + height)``, the height being 1 at the normal level; NaN without any."""
    heights = np.maximum(views + 1.0, 0.0)
    sums = np.add.reduce(np.log1p(heights), axis=1)
    if not math.isnan(np.add.reduce(sums)):  # every view of every row is known
        return np.asarray(sums)
    known = ~np.isnan(heights)
    sums = np.where(known, np.log1p(np.where(known, heights, 0.0)), 0.0).sum(axis=1)
    return np.where(known.any(axis=1), sums, np.nan)


@compiled()
def fuse(
    parts: Array,  # (n, V, C): contributions
    unknown: Flags,  # (n, V, C): which of them rest on filled values; (0, 0, 0): none
    usual: Array,  # (V, C): what each channel adds on average, in the place of what is not known
    levels: Array,  # (V, 2)
    kept: Array,  # (V,)
    seen: Array,  # (n, C): scaled values, NaN where missing
    errors: Array,  # (n, C): from the forecast
    aside: Array,  # (n, C): from what the other channels say
    lively: Array,  # (n, C): logarithm of the activity over the usual one
    others: Integers,  # views that know which channel it is
    relations: int,  # the view that is heard only beyond those
    room: Array,  # (3, V)
    points: Array,  # (n, V + 2 C + 1)
) -> None:  # pragma: no cover - compiled
    """Scores, attribution, expected values and the activity of the leading channel of each row; its level, where that says more."""
    n, views, channels = parts.shape
    height, loud, whole = room[0], room[1], room[2]
    for i in range(n):
        for v in range(views):
            total, positive, count = 0.0, 0.0, 0
            for c in range(channels):
                if len(unknown) == 0 or not unknown[i, v, c]:
                    total += parts[i, v, c]
                    positive += max(parts[i, v, c], 0.0)
                    count += 1
                else:
                    total += usual[v, c]
            whole[v] = positive
            score = (total / channels - levels[v, 1]) / (levels[v, 1] - levels[v, 0]) if count else np.nan
            points[i, v] = score
            if kept[v] < 1.0 and score > 0.0:
                score = SMALLEST * np.expm1(kept[v] * np.log1p(score / SMALLEST))
            height[v] = -1.0 if np.isnan(score) else max(score, -1.0)
            loud[v] = np.log1p(max(height[v], 0.0) / UNIT) + QUIET * np.log1p(height[v] + 1.0)
        beyond = loud[relations]
        for v in others:
            beyond -= loud[v]
        loudest = 0
        for v in range(views):
            if height[v] > height[loudest]:
                loudest = v
        leading = 0
        for c in range(channels):
            attribution = 0.0
            if not np.isnan(seen[i, c]):
                for v in others:
                    if whole[v] > 0.0 and (len(unknown) == 0 or not unknown[i, v, c]):
                        attribution += loud[v] / whole[v] * max(parts[i, v, c], 0.0)
                if beyond > 0.0 and whole[relations] > 0.0 and (len(unknown) == 0 or not unknown[i, relations, c]):
                    attribution += beyond / whole[relations] * max(parts[i, relations, c], 0.0)
            points[i, views + c] = attribution
            if attribution > points[i, views + leading]:
                leading = c
        livelier = lively[i, leading]
        active = loudest == ACTIVITY or loudest == relations + 1 > ACTIVITY_OF_MODES
        if active and livelier > 0.0 and parts[i, relations, leading] >= LEVEL**2:
            livelier, loudest = 0.0, relations  # one step of a level is a lively step, too
        for c in range(channels):
            points[i, views + channels + c] = seen[i, c] - (aside[i, c] if loudest == relations else errors[i, c])
        points[i, views + 2 * channels] = livelier
