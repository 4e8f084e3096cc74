"""OCSVM: how far a window lies outside the smooth boundary a support vector machine draws around normal windows.

libsvm, through scikit-learn, finds the boundary; its support vectors and weights are kept as arrays. Training is
quadratic in the number of windows, so it sees at most ``max_windows`` of them, spread evenly. It does not know time
beyond the window.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.detectors._windows import StandardWindowDetector, training_windows
from tisat.detectors.base import Array
from tisat.utils.parameters import integer, learned, real


class OCSVM(StandardWindowDetector):
    """One-class support vector machine with a Gaussian kernel, on standardised windows.

    The score is minus the logarithm of the weighted mean kernel value between the window and the support vectors. It
    orders windows exactly as scikit-learn's decision function does, is never negative, and keeps growing far out where
    the decision function itself is flat to the last bit.

    Examples
    --------
    >>> import numpy as np
    >>> train = np.random.default_rng(0).standard_normal((500, 2))
    >>> detector = OCSVM(window=1).fit(train)
    >>> scores = detector.decision_function([[0.0, 0.0], [6.0, 6.0]])
    >>> bool(scores[0] < detector.normal_level() < scores[1])
    True

    References
    ----------
    Schölkopf, Platt, Shawe-Taylor, Smola, Williamson: Estimating the support of a high-dimensional distribution, Neural
    Computation 2001.
    """

    nu: float = real(
        0.05,
        above=0.0,
        at_most=1.0,
        doc="At most this share of the training windows lies outside the boundary; at least this share supports it.",
    )
    gamma: float | None = real(
        None,
        above=0.0,
        none="1 / (dimension x variance), as scikit-learn's 'scale'",
        doc="Width of the kernel exp(-gamma distance^2).",
    )
    max_windows: int | None = integer(
        4_000, at_least=2, none="all of them, the exact method", doc="Training windows, spread evenly."
    )

    support_: Array = learned("S, window * C")  # (s, d) support vectors
    weights_: Array = learned("S")  # (s,) their shares, summing to 1
    mass_: float = learned()  # sum of the dual coefficients: mass * exp(-score) - rho is the decision function
    rho_: float = learned()  # its offset
    gamma_: float = learned()

    def _fit_windows(self, parts: Sequence[Array]) -> None:
        from sklearn.svm import OneClassSVM

        windows = training_windows(parts, window=self.window, limit=self.max_windows)
        flat = windows.reshape(len(windows), -1)
        variance = float(flat.var())
        self.gamma_ = (
            self.gamma if self.gamma is not None else 1.0 / (flat.shape[1] * (variance if variance > 0 else 1.0))
        )
        machine = OneClassSVM(nu=self.nu, gamma=self.gamma_)
        machine.random_state = 0  # not used without probabilities, but drawn from the global generator where None
        machine.fit(flat)
        coefficients = machine.dual_coef_[0]
        self.mass_ = float(coefficients.sum())
        self.weights_ = coefficients / self.mass_
        self.support_ = machine.support_vectors_
        self.rho_ = -float(machine.intercept_[0])

    def _score_windows(self, flat: Array) -> Array:
        # From the differences of norms: for one row or many the same digits, down to rounding.
        squares = np.einsum("nd,nd->n", flat, flat)[:, None] + np.einsum("sd,sd->s", self.support_, self.support_)
        squares -= 2.0 * (flat @ self.support_.T)
        exponents = -self.gamma_ * np.maximum(squares, 0.0)  # (n, s)
        largest = exponents.max(axis=1, keepdims=True)
        mean = np.exp(exponents - largest) @ self.weights_
        return np.asarray(-(largest + np.log(mean)[:, None]))

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"window": 3, "max_windows": 200}
