"""How fast false alarms become rare as the threshold grows: omega_0 in ``FAR <= exp(-omega_0 h)``.

omega_0 > 0 solves ``E[exp(omega_0 D)] = 1`` for independent normal evidence D. Three ways to it, all in the unit of the
``power`` evidence (d_alpha^m), in which they depend on few numbers and never leave floating point:

* :func:`paper_decay`, the closed form of the paper's theorem: as printed, with the principal branch of Lambert's W, or with the
  root that is not trivial;
* :func:`exact_decay`, the same model (distances of a Poisson process) solved without taking a limit;
* :func:`empirical_decay`, the root of the equation with the mean over observed evidence in place of the expectation.

None of them knows about dependence over time; that is what the bootstrap of :mod:`tisat.alarms.bootstrap` is for.
"""

from __future__ import annotations

import math

import numpy as np

from tisat.utils.types import Array

NEAR_BRANCH_POINT = 1e-3  # of phi theta around 1: there the two branches of Lambert's W meet and rounding decides


def other_root(log_z: float) -> float:
    """The y other than z with ``y exp(-y) = z exp(-z)``.

    Minus y is the branch of Lambert's W that z itself is not on.

    Parameters
    ----------
    log_z : float
        ``ln z``; where z < 1 the answer is above 1 (W_{-1}), where z > 1 it is below 1 (W_0).

    Examples
    --------
    >>> round(other_root(math.log(2.0)), 4), round(other_root(math.log(0.4063757)), 4)
    (0.4064, 2.0)
    """
    from scipy.optimize import brentq

    z = math.exp(min(log_z, 700.0))
    level = z - log_z  # = y - ln y
    if abs(level - 1.0) < 1e-15:
        return 1.0
    if log_z < 0:  # y > 1, and y - ln y grows
        high = 2.0 * level + 2.0
        return float(brentq(lambda y: y - math.log(y) - level, 1.0, high, xtol=1e-14, rtol=1e-14))
    # y < 1: solve for ln y, which keeps its digits where y is tiny
    return math.exp(float(brentq(lambda x: math.exp(x) - x - level, -level - 1.0, 0.0, xtol=1e-14, rtol=1e-14)))


def paper_decay(*, log_ball: float, largest: float, printed: bool = False) -> tuple[float, list[str]]:
    """The theorem's closed form, in units of d_alpha^m, and what is wrong with it here.

    ``omega_0 = v_m - theta - W(-phi theta exp(-phi theta)) / phi``. The equation behind it has the trivial root
    ``omega = v_m``. The principal branch W_0 returns that one where ``phi theta <= 1``; the other root is then on W_{-1}.

    Parameters
    ----------
    log_ball : float
        ``ln(v_m d_alpha^m)``.
    largest : float
        phi, the largest normal evidence, in units of d_alpha^m.
    printed : bool
        Take the principal branch, as a reader of the paper would with the built-in function it names; else the root that
        is not trivial.

    Returns
    -------
    decay : float
        ``omega_0 d_alpha^m``.
    notes : list of str
        Which assumption fails, in words.

    Examples
    --------
    At alpha = 0.1 and v_m = 1 the ball has volume ln 10, and the exact decay would be 0.8629 a unit of volume:

    >>> volume = math.log(10.0)
    >>> [round(paper_decay(log_ball=math.log(volume), largest=phi / volume)[0] / volume, 4) for phi in (20.0, 5.0, 2.0)]
    [0.9203, 1.2513, 2.3302]
    >>> [round(paper_decay(log_ball=math.log(volume), largest=phi / volume, printed=True)[0] / volume, 4) for phi in (20.0, 5.0)]
    [0.9203, 1.0]
    """
    notes = []
    if log_ball > 700.0:
        notes.append(
            f"v_m d_alpha^m is e^{log_ball:.0f}: the closed form leaves floating point and its threshold means nothing."
        )
        return float("inf"), notes
    ball = math.exp(log_ball)
    log_z = math.log(largest) + log_ball - ball  # ln(phi theta)
    if log_z <= 0 and printed:
        notes.append(
            f"phi theta = {math.exp(log_z):.3g} <= 1: the principal branch of Lambert's W gives the trivial root v_m, which solves "
            "the equation whatever the data are."
        )
        return ball, notes
    if log_z <= 0:
        notes.append(
            f"phi theta = {math.exp(log_z):.3g} <= 1: the principal branch of Lambert's W gives the trivial root v_m; "
            "the other root, on W_-1, lies above it, and above the exact one, so the bound can be broken."
        )
    if abs(log_z) < NEAR_BRANCH_POINT:
        notes.append("phi theta is close to 1, where both roots meet in the trivial one and rounding decides.")
    decay = ball + (other_root(log_z) - math.exp(log_z)) / largest
    return decay, notes


def exact_decay(*, q: float, k: int = 1) -> float:
    """``w = omega_0 / (lambda v_m)`` for distances of a Poisson process, no limit taken; NaN where there is none.

    ``1 - w = exp(-w q)`` for the nearest neighbour; for the k-th, whose d^m is Gamma(k), ``(1 - w)^k = exp(-w q)``.

    Parameters
    ----------
    q : float
        ``lambda v_m d_alpha^m``; where the model holds it is -ln alpha for k = 1.
    k : int

    Examples
    --------
    >>> [round(exact_decay(q=-math.log(alpha)), 4) for alpha in (0.05, 0.1, 0.2, 0.3)]
    [0.9402, 0.8629, 0.647, 0.3185]
    """
    if not q > k:  # the evidence does not drift downwards: no threshold is ever safe
        return float("nan")
    largest = 1.0 - 1e-16

    def balance(w: float) -> float:
        return k * math.log1p(-w) + w * q

    low = 1e-12
    if balance(low) <= 0:
        return float("nan")
    if balance(largest) > 0:
        return 1.0
    from scipy.optimize import brentq

    return float(brentq(balance, low, largest, xtol=1e-15))


def empirical_decay(evidence: Array) -> float:
    """The root of ``mean(exp(omega D)) = 1``.

    NaN where evidence does not drift downwards, infinity where it never rises.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> round(empirical_decay(rng.normal(-0.5, 1.0, 100_000)), 1)
    1.0

    Warnings
    --------
    The mean of ``exp(omega D)`` rests on the few largest values, and a finite sample lacks the largest: the root comes
    out too large and the threshold too low. For exponential evidence at alpha = 0.1 it is 0.93 from 200,000 values where
    0.863 is right.
    """
    values = evidence[~np.isnan(evidence)]
    if len(values) == 0 or values.mean() >= 0:
        return float("nan")
    top = float(values.max())
    if top <= -1e-12 * float(values.min()):  # it never rises by anything
        return float("inf")

    def balance(omega: float) -> float:  # ln mean exp(omega D)
        return omega * top + math.log(np.mean(np.exp(omega * (values - top))))

    high = 1.0 / top
    while balance(high) <= 0:
        high *= 2.0
    low = high
    while balance(low) >= 0:
        low /= 2.0
        if low < 1e-300:
            return float("nan")
    from scipy.optimize import brentq

    return float(brentq(balance, low, high, xtol=1e-300, rtol=1e-12))
