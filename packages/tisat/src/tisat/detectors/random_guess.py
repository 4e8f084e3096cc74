"""RandomGuess: the random baseline.

Every table shows it, and every detector has to beat it.

It draws an independent uniform score for each row and looks at nothing; thresholded at 1 - p it alarms with
probability p, which is the Random Guess of the paper (section III). It knows only how many rows there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tisat.detectors.base import Array, Detector, Traits
from tisat.detectors.crossfit import Piece
from tisat.detectors.streaming import RowStream
from tisat.utils.parameters import integer
from tisat.utils.stage import State


class _RandomBaselineStream(RowStream):
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.reset()

    def step(self, row: Array, /) -> Array:
        self._drawn += 1
        return self._generator.random(1)

    def reset(self) -> None:
        self._generator = np.random.default_rng(self._seed)
        self._drawn = 0

    def state(self) -> State:
        return {"drawn": np.array(self._drawn)}

    def restore(self, state: State, /) -> None:
        self.reset()
        self._drawn = int(state["drawn"])
        bits = self._generator.bit_generator
        assert isinstance(bits, np.random.PCG64), "what default_rng makes"
        bits.advance(self._drawn)


class RandomGuess(Detector):
    """Independent uniform scores: what a random baseline gets.

    Examples
    --------
    >>> RandomGuess(random_state=0).fit([[0.0], [1.0], [2.0]]).decision_function([[5.0], [5.0]]).round(3).tolist()
    [0.637, 0.27]

    References
    ----------
    Doshi, Abudalou, Yilmaz: Reward Once, Penalize Once: Rectifying Time Series Anomaly Detection, section III.
    """

    random_state: int = integer(0, at_least=0, doc="The same seed gives the same scores.")

    traits: ClassVar[Traits] = Traits(
        contract_exemptions={"a_gross_fault_scores_higher": "a random baseline does not look"}
    )

    def _fit(self, parts: Sequence[Array]) -> None:
        """Nothing."""

    def _points(self, part: Array) -> Array:
        return np.random.default_rng(self.random_state).random((len(part), 1))

    def _keep_normal(self, parts: Sequence[Array], tails: Sequence[Piece], cross_fitted: list[Array] | None) -> None:
        super()._keep_normal(parts, tails, cross_fitted)
        # Other draws than those of the scored series: else every score is found again among the normal ones.
        self.normal_ = np.random.default_rng([self.random_state, 1]).random(self.normal_.shape)

    def _context(self) -> None:
        return None

    def _stream(self) -> _RandomBaselineStream:
        return _RandomBaselineStream(self.random_state)
