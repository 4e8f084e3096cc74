"""DAGMM from its formulas, with loops and SciPy densities: eqs. (2), (5) and (6) of Zong et al. 2018."""

import math
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal


def features(window: Any, rebuilt: Any) -> Any:
    """Relative Euclidean distance and cosine similarity of two flat windows that are not near zero."""
    difference = math.sqrt(sum((a - b) ** 2 for a, b in zip(window, rebuilt, strict=True)))
    length = math.sqrt(sum(a * a for a in window))
    other = math.sqrt(sum(b * b for b in rebuilt))
    dot = sum(a * b for a, b in zip(window, rebuilt, strict=True))
    return difference / length, dot / (length * other)


def mixture(z: Any, gamma: Any) -> Any:
    """Shares, means and covariances of eq. (5)."""
    n, k = gamma.shape
    shares, means, covariances = [], [], []
    for component in range(k):
        weight = sum(gamma[i, component] for i in range(n))
        mean = sum(gamma[i, component] * z[i] for i in range(n)) / weight
        covariance = sum(gamma[i, component] * np.outer(z[i] - mean, z[i] - mean) for i in range(n)) / weight
        shares.append(weight / n)
        means.append(mean)
        covariances.append(covariance)
    return shares, means, covariances


def energy(z: Any, shares: Any, means: Any, covariances: Any) -> Any:
    """Eq. (6) by densities."""
    density = sum(
        share * multivariate_normal(mean, covariance).pdf(z)
        for share, mean, covariance in zip(shares, means, covariances, strict=True)
    )
    return -np.log(density)


def least(shares: Any, covariances: Any) -> Any:
    """Minus the log of the sum of the components' highest densities."""
    dimension = len(covariances[0])
    peaks = [
        share / math.sqrt((2 * math.pi) ** dimension * np.linalg.det(covariance))
        for share, covariance in zip(shares, covariances, strict=True)
    ]
    return -math.log(sum(peaks))
