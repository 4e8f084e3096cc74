"""ARIMA: one-step forecast errors of one ARIMA model for each channel, its orders chosen by an information criterion.

statsforecast chooses the orders on the newest training rows and fits the coefficients on the longest training part. From
then on nothing is fitted: errors come from the model's own recursion, one multiplication a coefficient and row, so new
rows cost the same one by one and in a batch. Channels do not see each other, and there is no season.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from tisat.detectors._forecast import ForecastDetector, StandardisedDetector
from tisat.detectors._windows import parts_longer_than
from tisat.detectors.base import Array, Traits
from tisat.detectors.streaming import RowStream
from tisat.errors import ArtefactError
from tisat.utils.compiled import compiled
from tisat.utils.extras import require
from tisat.utils.parameters import choice, integer, learned
from tisat.utils.progress import progress
from tisat.utils.stage import Stateful

CRITERIA = ("aicc", "aic", "bic")
LARGEST_ROOT = 0.99  # of the moving-average recursion: beyond 1 errors would feed on themselves
Orders: TypeAlias = tuple[int, int, int]


def invertible(ma: Array) -> Array:
    """Moving-average coefficients with the same spectrum whose recursion forgets: roots outside are reflected inside.

    Examples
    --------
    >>> invertible(np.array([0.5])).tolist(), invertible(np.array([2.0])).tolist()
    ([0.5], [0.5])
    """
    if len(ma) == 0:
        return ma
    roots = np.roots(np.append(1.0, ma)).astype(np.complex128)
    outside = np.abs(roots) > 1.0
    roots[outside] = 1.0 / np.conj(roots[outside])
    far = np.abs(roots) > LARGEST_ROOT
    roots[far] *= LARGEST_ROOT / np.abs(roots[far])
    kept: Array = np.real(np.poly(roots))[1:]
    return ma if np.allclose(kept, ma, rtol=1e-9) else kept


def _estimate(values: Array, max_rows: int, max_order: int, criterion: str) -> tuple[Orders, Array, Array, float]:
    """Orders (p, d, q), AR and MA coefficients and the mean of the differenced series, for one standardised channel."""
    from statsforecast.arima import arima, auto_arima_f

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its optimiser's remarks; a model that did not converge has a poor criterion
        model = auto_arima_f(
            values[-max_rows:], period=1, seasonal=False, approximation=True, ic=criterion,
            max_p=max_order, max_q=max_order, max_order=2 * max_order, start_p=min(2, max_order), start_q=min(2, max_order),
        )  # fmt: skip
        p, q, _, _, _, d, _ = model["arma"]
        coefficients = model["coef"]
        if len(values) > max_rows and p + q > 0:
            coefficients = {
                **coefficients,
                **_refit(arima, values, (p, d, q), include_mean="intercept" in coefficients),
            }
    mean = float(coefficients.get("intercept", coefficients.get("drift", 0.0)))
    ar = np.array([coefficients[f"ar{i + 1}"] for i in range(p)], dtype=np.float64)
    ma = np.array([coefficients[f"ma{i + 1}"] for i in range(q)], dtype=np.float64)
    return (int(p), int(d), int(q)), ar, invertible(ma), mean


def _refit(arima: Any, values: Array, order: Orders, *, include_mean: bool) -> dict[str, float]:
    """The same model on all rows, by conditional least squares.

    Nothing where that fails.
    """
    try:
        found = arima(values, order=order, include_mean=include_mean, method="CSS")
    except (ValueError, np.linalg.LinAlgError):
        return {}
    return {name: float(value) for name, value in found["coef"].items() if np.isfinite(value)}


@compiled()
def _errors(
    rows: Array, past: Array, past_errors: Array, weights: Array, feedback: Array, constant: Array
) -> Array:  # pragma: no cover - compiled
    """Errors of ``rows`` ``(T, C)``.

    ``past`` ``(K, C)`` and ``past_errors`` ``(Q, C)``, newest first, are updated.
    """
    errors = np.empty_like(rows)
    for t in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            error = rows[t, c] - constant[c]
            for i in range(past.shape[0]):
                error += weights[i, c] * past[i, c]
            for j in range(past_errors.shape[0]):
                error -= feedback[j, c] * past_errors[j, c]
            for i in range(past.shape[0] - 1, 0, -1):
                past[i, c] = past[i - 1, c]
            if past.shape[0] > 0:
                past[0, c] = rows[t, c]
            for j in range(past_errors.shape[0] - 1, 0, -1):
                past_errors[j, c] = past_errors[j - 1, c]
            if past_errors.shape[0] > 0:
                past_errors[0, c] = error
            errors[t, c] = error
    return errors


class _RecursionStream(Stateful, RowStream):
    """The last few rows and errors: the whole memory of an ARIMA model."""

    _kept = ("past", "errors", "seen")

    def __init__(self, detector: ARIMA) -> None:
        self._detector = detector
        self._past = np.zeros((len(detector.weights_), detector.n_channels_))  # newest first
        self._errors = np.zeros((len(detector.feedback_), detector.n_channels_))
        self._seen = 0

    def step(self, row: Array, /) -> Array:
        standard = self._detector._standardise(row)
        self._seen += 1
        if self._seen <= len(self._past):
            self._past[1:] = self._past[:-1]
            self._past[0] = standard
            return np.full(len(row), np.nan)
        return np.asarray(self._detector._run(standard[None], self._past, self._errors)[0] / self._detector.spread_)

    def reset(self) -> None:
        self._past[:] = 0.0
        self._errors[:] = 0.0
        self._seen = 0


class ARIMA(StandardisedDetector, ForecastDetector):
    """ARIMA(p, d, q) per channel, scored by one-step forecast errors without refitting.

    Examples
    --------
    >>> import numpy as np
    >>> walk = np.cumsum(np.random.default_rng(0).standard_normal(600))
    >>> detector = ARIMA(max_order=1).fit(walk, holdout=0)
    >>> detector.orders_
    ((0, 1, 0),)
    >>> detector.decision_function([0.0, 0.0, 8.0, 8.0]).round().tolist()
    [nan, 0.0, 47.0, 0.0]

    References
    ----------
    Box, Jenkins: Time Series Analysis, 1970; Hyndman, Khandakar: Automatic time series forecasting, Journal of
    Statistical Software 2008 (the search, as statsforecast does it).
    """

    # crossfit: minutes, not seconds
    traits: ClassVar[Traits] = replace(ForecastDetector.traits, crossfit=0)

    max_order: int = integer(5, at_least=0, doc="Largest p and largest q tried.")
    criterion: str = choice("aicc", of=CRITERIA, doc="What the stepwise search minimises.")
    max_rows: int = integer(
        2000,
        at_least=50,
        doc="Newest training rows the orders are chosen on; the coefficients are fitted on the longest part.",
    )
    n_jobs: int | None = integer(
        None,
        at_least=1,
        none="one for a core where there are enough channels to pay for starting them",
        doc="Processes that share the channels.",
    )

    orders_: tuple[Orders, ...] = learned()  # (p, d, q) of each channel
    weights_: Array = learned(
        "K, C"
    )  # (K, C): error = x_t + weights . (x_{t-1}, ...) - feedback . (e_{t-1}, ...) - constant
    feedback_: Array = learned("Q, C")  # (Q, C)
    constant_: Array = learned("C")  # (C,)

    def _fit_forecaster(self, parts: Sequence[Array]) -> None:
        require("statsforecast", whose="ARIMA")
        order, criterion, limit = self.max_order, self.criterion, self.max_rows
        longest = max(parts_longer_than(self._minimum_rows() - 1, parts, whose="ARIMA"), key=len)
        self._learn_scale(parts)
        standard = self._standardise(longest)
        moving = [c for c in range(standard.shape[1]) if np.ptp(standard[-limit:, c]) > 1e-9]
        found = dict(zip(moving, self._estimates(standard[:, moving], limit, order, criterion), strict=True))
        still: tuple[Orders, Array, Array, float] = ((0, 0, 0), np.empty(0), np.empty(0), 0.0)
        self._keep([found.get(c, still) for c in range(standard.shape[1])])

    def _estimates(self, columns: Array, limit: int, order: int, criterion: str) -> list[Any]:
        from joblib import Parallel, cpu_count, delayed

        jobs = self.n_jobs
        if jobs is None:
            alone = multiprocessing.parent_process() is None
            jobs = max(1, min(cpu_count(), columns.shape[1] // 8)) if alone else 1
        tasks = (delayed(_estimate)(np.ascontiguousarray(column), limit, order, criterion) for column in columns.T)
        models = []
        with progress("ARIMA: choosing orders", total=columns.shape[1]) as bar:
            for one in Parallel(n_jobs=jobs, return_as="generator")(tasks):
                models.append(one)
                bar.advance(note=f"last order {one[0]}")
        return models

    def _keep(self, models: Sequence[tuple[Orders, Array, Array, float]]) -> None:
        """One padded table of coefficients for all channels."""
        self.orders_ = tuple(orders for orders, _, _, _ in models)
        past = max(p + d for p, d, _ in self.orders_)
        back = max(q for _, _, q in self.orders_)
        self.weights_ = np.zeros((past, len(models)))
        self.feedback_ = np.zeros((back, len(models)))
        self.constant_ = np.zeros(len(models))
        for c, ((p, d, q), ar, ma, mean) in enumerate(models):
            polynomial = np.append(1.0, -ar)  # in the lag operator
            for _ in range(d):
                polynomial = np.convolve(polynomial, [1.0, -1.0])
            self.weights_[: p + d, c] = polynomial[1:]
            self.feedback_[:q, c] = ma
            self.constant_[c] = mean * (1.0 - ar.sum())

    def _check_learned(self) -> None:
        """Orders as many as channels, three small numbers each."""
        good = isinstance(self.orders_, tuple) and len(self.orders_) == self.n_channels_
        for order in self.orders_ if good else ():
            good &= (
                isinstance(order, tuple) and len(order) == 3 and all(type(k) is int and 0 <= k <= 100 for k in order)
            )
        if not good:
            raise ArtefactError("The orders of ARIMA must be three small whole numbers for each channel.")

    def _run(self, standard: Array, past: Array, past_errors: Array) -> Array:
        """Errors in the units of the series; ``past`` and ``past_errors`` move on."""
        standard = np.ascontiguousarray(standard)
        return np.asarray(
            _errors(standard, past, past_errors, self.weights_, self.feedback_, self.constant_) * self.scale_
        )

    def _residuals(self, part: Array) -> Array:
        warm_up = len(self.weights_)
        residuals = np.full_like(part, np.nan)
        if len(part) > warm_up:
            standard = self._standardise(part)
            past = np.ascontiguousarray(standard[:warm_up][::-1])
            residuals[warm_up:] = self._run(standard[warm_up:], past, np.zeros_like(self.feedback_))
        return residuals

    def _forecast(self, part: Array) -> Array:
        return part - self._residuals(part)

    def _points(self, part: Array) -> Array:
        return np.asarray(self._residuals(part) / self.spread_)

    def _context(self) -> None:
        return None

    def _minimum_rows(self) -> int:
        return 50

    def _stream(self) -> _RecursionStream:
        return _RecursionStream(self)

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"max_order": 2, "max_rows": 100, "n_jobs": 1}
