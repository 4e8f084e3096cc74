"""How good is attribution? A ranking of channels against those an expert contributing.

HitRate@P% is the share of the contributing channels found among the first P% of as many: with 4 contributing channels,
HitRate@100% looks at the first 4 of the ranking and @150% at the first 6. NDCG also asks how early they come. This module
knows rankings, not where they come from.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from tisat.errors import InputError
from tisat.utils.validation import check_real


def _check(ranking: Sequence[int], contributing: Collection[int]) -> set[int]:
    truth = set(contributing)
    if not truth or not truth <= set(ranking) or len(set(ranking)) != len(ranking):
        raise InputError(
            f"The ranking must name every channel once, and the contributing ones must be among them. "
            f"Got {list(ranking)!r} and {sorted(truth)!r} instead."
        )
    return truth


def hit_rate(ranking: Sequence[int], contributing: Collection[int], *, share: float = 1.0) -> float:
    """The share of the contributing channels among the first ``share`` times as many of the ranking.

    Examples
    --------
    >>> hit_rate([3, 1, 0, 2], [1, 2]), hit_rate([3, 1, 0, 2], [1, 2], share=2.0)
    (0.5, 1.0)

    References
    ----------
    Su et al.: Robust Anomaly Detection for Multivariate Time Series through Stochastic Recurrent Neural Network, KDD
    2019, section 5.5.
    """
    truth = _check(ranking, contributing)
    first = ranking[: math.floor(check_real(share, "share", "hit_rate", above=0.0) * len(truth))]
    return len(truth.intersection(first)) / len(truth)


def ndcg(ranking: Sequence[int], contributing: Collection[int], *, share: float = 1.0) -> float:
    """Normalised discounted cumulative gain of the first ``share`` times as many channels as are contributing.

    Examples
    --------
    >>> round(ndcg([1, 3, 0, 2], [1, 2]), 3), ndcg([2, 1, 0, 3], [1, 2])
    (0.613, 1.0)
    """
    truth = _check(ranking, contributing)
    first = ranking[: math.floor(check_real(share, "share", "ndcg", above=0.0) * len(truth))]
    gain = sum(1.0 / math.log2(place + 2) for place, channel in enumerate(first) if channel in truth)
    best = sum(1.0 / math.log2(place + 2) for place in range(len(truth)))
    return gain / best
