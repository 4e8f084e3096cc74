"""How often a statistic rises above a level in normal data, how often it will, and what that is worth.

An **episode** at a level is a run of rows at or above it: one alarm. From the statistic of normal data follows a table
of levels, ``levels[k]``: the highest at which there were more than k episodes. It is all that is needed to find the threshold
for any budget, and it is small: :class:`Episodes` keeps it with every calibration, so that another budget needs no
training data.

Up to one alarm in a third of the data the threshold is read from the table. Beyond, nobody has seen such an alarm, and the
threshold follows an exponential tail of the levels, ``h = h0 + beta ln(N / N0)``, whose scale beta is shrunk towards one that
is common to many entities: a few peaks alone tell it badly. Levels are on a logarithmic scale, where tails are about
exponential and nothing explodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tisat.errors import ArtefactError
from tisat.utils.types import Array, Integers, JsonDict

SUPPORT = 3.0  # no alarm in 3 periods rules out, at 95 %, that the period is shorter (the rule of three)
MARGIN = 0.7  # alarms fewer than the budget allows that the normal data may show
PEAKS = 20  # highest levels the scale of the tail is estimated from, and the weight of the common scale
FEWEST_PEAKS = 3  # below which the common scale alone is used
SLOPE = 0.01  # least growth of the threshold with ln(period), so that no two budgets share one
KEPT = 1000  # levels kept of each stretch of normal data


def _levels(ends: Array, steps: Integers, most: int) -> Array:
    """The highest levels at which 1, 2, ... episodes are under way.

    ``ends`` descending, ``steps`` +1 or -1.
    """
    reached = np.maximum.accumulate(np.maximum(np.cumsum(steps), 0))
    return ends[np.diff(reached, prepend=0) > 0][:most]


def episode_levels(statistic: Array, *, most: int = KEPT) -> Array:
    """``levels[k]``, descending: the highest level at which ``statistic`` ``(T,)`` has more than k episodes.

    NaN ends an episode. The number of episodes at a level or any higher one is the number of ``levels`` not below it.

    Examples
    --------
    >>> episode_levels(np.array([0.0, 3.0, 1.0, 2.0, 0.0, np.nan, 2.5]))
    array([3. , 2.5, 2. ])
    """
    valid = ~np.isnan(statistic)
    value = statistic[valid]
    if len(value) == 0:
        return np.empty(0)
    before = np.append(-np.inf, statistic[:-1])[valid]
    before = np.where(np.isnan(before), -np.inf, before)
    rises = value > before
    # An episode exists at every level in (before, value] of a rise: it begins, from above, at value and is gone below before.
    ends = np.concatenate([value[rises], before[rises]])
    steps = np.repeat(np.array([1, -1]), int(rises.sum()))
    order = np.lexsort((steps, -ends))  # at one level, ends first: the level a rise starts from is not in it
    return np.asarray(_levels(ends[order], steps[order], most))


@dataclass(frozen=True)
class Episodes:
    """Levels of normal data, stretch by stretch, on a logarithmic scale: the data any budget is calibrated from.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> normal = Episodes.of([rng.exponential(size=3000) for _ in range(5)], common=1.0, floor=0.0)
    >>> [round(normal.threshold(period), 1) for period in (100, 1000, 10_000, 100_000)]
    [4.6, 6.9, 8.9, 10.9]
    >>> normal.supported
    5000.0
    """

    levels: tuple[tuple[float, ...], ...]  # of each stretch, descending
    lengths: tuple[int, ...]  # rows of each stretch
    common: float  # the scale of the tail that many entities have in common
    floor: float  # no threshold is below: where normal data is silent, the first wiggle is no alarm

    @classmethod
    def of(cls, statistics: Sequence[Array], *, common: float, floor: float, most: int = KEPT) -> Episodes:
        """From the statistic of each stretch of normal data."""
        return cls(
            tuple(tuple(episode_levels(one, most=most).tolist()) for one in statistics),
            tuple(int((~np.isnan(one)).sum()) for one in statistics),
            common,
            floor,
        )

    @property
    def length(self) -> int:
        """n, normal rows."""
        return sum(self.lengths)

    @property
    def supported(self) -> float:
        """The longest period so many rows can support."""
        return self.length / SUPPORT

    @property
    def pooled(self) -> Array:
        """The levels of all stretches together, descending."""
        return np.sort(np.concatenate([np.asarray(one, dtype=np.float64) for one in self.levels]))[::-1]

    @property
    def complete(self) -> float:
        """The level above which every episode is kept."""
        return max((one[-1] for one in self.levels if len(one) >= KEPT), default=0.0)

    @property
    def largest(self) -> float:
        """The highest level ever reached; 0 where there is none."""
        return max((one[0] for one in self.levels if one), default=0.0)

    @property
    def scale(self) -> float:
        """beta, the scale of the tail: the mean height of the highest levels over the next one, shrunk to the common scale."""
        levels = self.pooled
        levels = levels[levels > 0.0]
        base = levels[PEAKS] if len(levels) > PEAKS else 0.0
        above = levels[:PEAKS][levels[:PEAKS] > base]
        if len(above) < FEWEST_PEAKS:
            return self.common
        return float((np.sum(above - base) + PEAKS * self.common) / (len(above) + PEAKS))

    def threshold(self, period: float) -> float:
        """The threshold for one false alarm in ``period`` rows, kept on average."""
        near = min(period, self.supported)
        levels = np.maximum(np.append(self.pooled, 0.0), 0.0)
        rank = self.length / max(near, 1.0) - MARGIN  # alarms the normal data may show, a real number
        place = min(max(rank, 0.0), len(levels) - 1.0)
        low = int(place)
        high = min(low + 1, len(levels) - 1)
        h = max(float(levels[low] + (place - low) * (levels[high] - levels[low])), self.complete)
        return max(h, self.floor) + SLOPE * math.log(near) + self.scale * math.log(period / near)

    def count(self, threshold: float) -> int:
        """Episodes at ``threshold`` in the normal data, as many as are kept."""
        return int((self.pooled >= threshold).sum())

    def without(self, stretch: int) -> Episodes:
        """All stretches but one."""
        rest = [i for i in range(len(self.levels)) if i != stretch]
        return Episodes(
            tuple(self.levels[i] for i in rest), tuple(self.lengths[i] for i in rest), self.common, self.floor
        )

    def observed(self, period: float) -> int:
        """Alarms counted in each stretch at the threshold found on the others, added up."""
        if len(self.levels) < 2:
            return self.count(self.threshold(period))
        total = 0
        for i, levels in enumerate(self.levels):
            threshold = self.without(i).threshold(period)
            total += sum(level >= threshold for level in levels)
        return total

    def joined(self, levels: Sequence[float], length: int) -> Episodes:
        """With one more stretch of normal data."""
        kept = tuple(sorted((float(level) for level in levels), reverse=True)[:KEPT])
        return Episodes((*self.levels, kept), (*self.lengths, int(length)), self.common, self.floor)

    def to_json(self) -> JsonDict:
        """Plain values."""
        return {
            "levels": [list(one) for one in self.levels],
            "lengths": list(self.lengths),
            "common": self.common,
            "floor": self.floor,
        }

    @classmethod
    def from_json(cls, document: JsonDict) -> Episodes:
        """Back from :meth:`to_json`; refuses what cannot be one."""
        try:
            levels = tuple(tuple(float(level) for level in one) for one in document["levels"])
            lengths = tuple(int(length) for length in document["lengths"])
            common, floor = float(document["common"]), float(document["floor"])
        except (KeyError, TypeError, ValueError) as error:
            raise ArtefactError(f"The normal episodes of a calibration cannot be read: {error}.") from None
        sound = (
            math.isfinite(common + floor)
            and common > 0
            and all(list(one) == sorted(one, reverse=True) and all(map(math.isfinite, one)) for one in levels)
        )
        if not sound or len(levels) != len(lengths) or not levels or min(lengths) < 0 or sum(lengths) < 1:
            raise ArtefactError(
                "The normal episodes of a calibration must be finite levels, descending, with the length of each stretch."
            )
        return cls(levels, lengths, common, floor)
