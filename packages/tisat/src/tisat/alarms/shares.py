"""Shares of channels in an alarm: from contributions to names, and the reasons that go with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tisat.alarms.explanation import Explanation, Reason
from tisat.alarms.sentences import Habits, worded
from tisat.utils.types import Array, Integers


def known_or_zero(values: Array) -> Array:
    """The values, 0 where they are not known (numpy's ``nan_to_num`` takes longer than the rest of a row's sums)."""
    return np.where(values == values, values, 0.0)


def shares_between(contributions: Array) -> Array:
    """Shares ``(m,)`` of contributions ``(n, m)``, added up row after row as a monitor does; equal if all are 0."""
    total = np.zeros(contributions.shape[1])
    for row in contributions:
        total += known_or_zero(row)
    return shares_of(total)


def shares_of(total: Array) -> Array:
    """Contributions ``(m,)`` as shares that add up to 1."""
    whole = float(total.sum())
    return total / whole if whole > 0 else np.full(len(total), 1.0 / len(total))


def named_shares(shares: Array, channels: Sequence[str]) -> dict[str, float]:
    """Channel -> share, largest first; ties in the order of the channels."""
    order = np.argsort(-shares, kind="stable")
    return {channels[c]: float(shares[c]) for c in order}


def explained(
    why: Explanation, shares: dict[str, float], channels: Sequence[str], still: Integers, habits: Habits
) -> tuple[str, dict[str, float], tuple[Reason, ...]]:
    """Kind, shares and reasons of an alarm: the shares that are known, or else those of the explanation.

    The channel with the largest share is a reason, also where its value is as expected at the row that is explained.
    """
    known = shares or named_shares(why.channels, channels)
    reasons = why.reasons(channels, np.array([known[channel] for channel in channels]))
    sentences = worded(reasons, why, channels, still, habits)
    first = reasons[0]
    if all(one.channel != first.channel for one in sentences):
        since = " since the onset" if shares else ""
        words = f"{first} at this row, and {100 * first.share:.0f} % of the evidence{since}"
        sentences = (replace(first, words=words), *sentences)
    return why.kind, known, sentences
