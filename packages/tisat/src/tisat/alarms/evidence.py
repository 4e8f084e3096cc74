"""Evidence: how far a point lies from the normal points, less how far normal points lie from each other.

Normal points are split at random into X_N1 and X_N2. ``d_t`` is the distance of a point to its k-th nearest neighbour
in X_N2, ``d_alpha`` the (1 - alpha) quantile of the distances of X_N1. Three forms of the evidence D_t:

* ``power``, the paper's: ``d_t^m - d_alpha^m``, here in units of ``d_alpha^m`` because with m = 38 or 55 neither power
  fits a float; dividing by a constant changes neither the alarms nor, with the threshold in the same unit, the bound;
* ``weibull``: ``(d_t / scale)^shape + ln alpha`` with shape and scale fitted to the distances of X_N1. If distances in
  m dimensions are Weibull of shape m, as the theory has it, the two agree; on real residuals the shape is about 2;
* ``log``: ``ln d_t - ln d_alpha``, in which a single wild row weighs little.

This module does not accumulate anything over time and does not know thresholds.
"""

from __future__ import annotations

import math
import warnings
from typing import Self

import numpy as np

from tisat.alarms.neighbours import METHODS, Neighbours
from tisat.errors import CalibrationWarning, InputError
from tisat.utils.compiled import compiled
from tisat.utils.parameters import Parametrized, choice, integer, learned, real
from tisat.utils.random import generator
from tisat.utils.types import Array, Integers

FORMS = ("power", "weibull", "log")
LARGEST_EXPONENT = 600.0  # e^600 = 10^260: sums of evidence stay finite
MAX_POINTS = 10_000  # normal points searched: twice as many change d_alpha by a few percent and double the update


@compiled()
def power_evidence(
    distances: Array, power: float, log_unit: float, largest: float, less: float, evidence: Array
) -> None:
    """``(d / unit)^power - less``, through logarithms cut at ``largest``.

    One loop so that one and many agree.
    """
    for i in range(len(distances)):
        if distances[i] > 0.0:
            evidence[i] = np.exp(min(power * (np.log(distances[i]) - log_unit), largest)) - less
        else:
            evidence[i] = distances[i] - less  # 0 or NaN


@compiled()
def log_evidence(distances: Array, log_floor: float, log_unit: float, evidence: Array) -> None:
    """``ln max(d, floor) - ln unit``."""
    for i in range(len(distances)):
        if np.isnan(distances[i]):
            evidence[i] = np.nan
        elif distances[i] > 0.0:
            evidence[i] = max(np.log(distances[i]), log_floor) - log_unit
        else:
            evidence[i] = log_floor - log_unit


def fit_weibull(distances: Array) -> tuple[float, float]:
    """Maximum-likelihood shape and scale of positive distances.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> shape, scale = fit_weibull(3.0 * rng.weibull(2.0, 20_000))
    >>> round(shape, 1), round(scale, 1)
    (2.0, 3.0)
    """
    logs = np.log(distances[distances > 0])
    if len(logs) < 2 or np.ptp(logs) == 0:
        raise InputError(
            f"A Weibull fit must have at least two different positive distances. Got {len(np.unique(logs))} instead."
        )
    centre = logs.mean()
    x = logs - centre

    def slope(shape: float) -> float:  # d log-likelihood / d shape, divided by n; decreasing
        weights = np.exp(shape * (x - x.max()))
        return 1.0 / shape - float(weights @ x / weights.sum())

    from scipy.optimize import brentq

    low, high = 1e-3, 1.0
    while slope(high) > 0 and high < 1e6:
        high *= 2.0
    shape = float(brentq(slope, low, high, xtol=1e-12)) if slope(high) <= 0 else high
    top = x.max()
    scale = math.exp(centre + top + math.log(np.mean(np.exp(shape * (x - top)))) / shape)
    return shape, scale


class KNNEvidence(Parametrized):
    """Distance to normal points, less its normal level.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> evidence = KNNEvidence(form="weibull").fit(rng.normal(size=(2000, 2)))
    >>> evidence(np.array([[0.0, 0.0], [9.0, 9.0]])).round(1).tolist()
    [-2.2, 578.7]
    """

    form: str = choice("power", of=FORMS, doc="How distances become evidence: see the module.")
    k: int = integer(1, at_least=1, doc="Which neighbour.")
    alpha: float = real(0.05, above=0.0, below=1.0, doc="The share of normal distances above d_alpha.")
    method: str = choice("auto", of=("auto", *METHODS), doc="How neighbours are found: see tisat.alarms.Neighbours.")
    max_points: int = integer(
        MAX_POINTS, at_least=1, doc="Normal points searched, drawn at random where there are more."
    )
    random_state: int = integer(0, at_least=0, doc="Seed of the split.")

    # Learned by fit
    m_: int = learned()  # dimension of the points
    d_alpha_: float = learned()  # (1 - alpha) quantile of the X_N1 distances
    shape_: float = learned()  # of the Weibull contract of the distances
    scale_: float = learned()
    power_mean_: float = learned()  # mean of (d / d_alpha)^m over X_N1: 1 / (lambda v_m) in the unit of the evidence
    largest_: float = learned()  # phi: the largest evidence of X_N1

    def fit(self, points: Array) -> Self:
        """Learn the normal distances from normal points ``(N, m)``."""
        self._check_parameters()
        training = np.asarray(points, dtype=np.float64)
        training = training[~np.isnan(training).any(axis=1)]
        if len(training) < 2 * self.k + 2:
            raise InputError(
                f"The normal points of KNNEvidence must be at least {2 * self.k + 2} with k = {self.k}. "
                f"Got {len(training)} instead."
            )
        self.m_ = training.shape[1]
        order = generator(self.random_state, whose="KNNEvidence").permutation(len(training))
        half = len(training) // 2
        self._neighbours = Neighbours(training[np.sort(order[half:][: self.max_points])], k=self.k, method=self.method)
        distances = self._neighbours.distances(training[np.sort(order[:half][: self.max_points])])
        self._learn(distances)
        return self

    def _learn(self, distances: Array) -> None:
        self._form = self.form  # looked up once, not at every row
        positive = distances[distances > 0]
        self.d_alpha_ = float(np.quantile(distances, 1.0 - self.alpha))
        if self.d_alpha_ == 0.0:
            self.d_alpha_ = float(positive.min()) if len(positive) else 1.0
            warnings.warn(
                f"More than {1 - self.alpha:.0%} of the normal points repeat an earlier one exactly, so d_alpha would be 0; "
                f"{self.d_alpha_:.3g} is used instead. Evidence means little here.",
                CalibrationWarning,
                stacklevel=3,
            )
        self._log_floor = math.log(positive.min() if len(positive) else self.d_alpha_)
        if len(positive) and np.ptp(np.log(positive)) > 0:
            self.shape_, self.scale_ = fit_weibull(positive)
        else:
            self.shape_, self.scale_ = float(self.m_), self.d_alpha_
        self.power_mean_ = float(np.mean(self._power(distances, float(self.m_), self.d_alpha_, 0.0)))
        self.largest_ = float(self._evidence_of(distances).max())

    def _power(self, distances: Array, power: float, unit: float, less: float) -> Array:
        values = np.empty(len(distances))
        power_evidence(distances, power, math.log(unit), LARGEST_EXPONENT, less, values)
        return values

    def _evidence_of(self, distances: Array) -> Array:
        if self._form == "power":
            return self._power(distances, float(self.m_), self.d_alpha_, 1.0)
        if self._form == "weibull":
            return self._power(distances, self.shape_, self.scale_, -math.log(self.alpha))
        values = np.empty(len(distances))
        log_evidence(distances, self._log_floor, math.log(self.d_alpha_), values)
        return values

    def __call__(self, points: Array) -> Array:
        """Evidence ``(T,)`` of points ``(T, m)``; NaN where the point is."""
        return self.search(points)[0]

    def search(self, points: Array) -> tuple[Array, Integers]:
        """Evidence ``(T,)`` and which normal point it was measured from.

        -1 where the point is NaN.
        """
        distances, where = self._neighbours.search(points)
        return self._evidence_of(distances), where

    def shares(self, points: Array) -> Array:
        """Squared distance along each coordinate ``(T, m)``: what a channel adds to ``d_t`` squared; 0 where NaN."""
        _, where = self._neighbours.search(points)
        return np.where(where[:, None] < 0, 0.0, (points - self._neighbours.points[where]) ** 2)

    def share(self, point: Array, where: int) -> Array:
        """The same for one point ``(m,)`` whose neighbour is known."""
        return np.zeros(self.m_) if where < 0 else (point - self._neighbours.points[where]) ** 2

    @property
    def log_ball(self) -> float:
        """``ln(v_m d_alpha^m)``: the log volume of the ball of radius d_alpha."""
        from scipy.special import gammaln

        m = self.m_
        return float(0.5 * m * math.log(math.pi) - gammaln(0.5 * m + 1.0) + m * math.log(self.d_alpha_))
