"""Reference implementations of the classical detectors: loops over rows and channels, straight from the definitions."""

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]


def spread(residuals: Array, train: Array) -> Array:
    """Standard deviation of each channel's residuals, at least a hundredth of its training range."""
    out = []
    for c in range(train.shape[1]):
        low, high = min(train[:, c]), max(train[:, c])
        span = high - low if high > low else max(abs(high), 1.0)
        out.append(max(float(np.std(residuals[:, c])), 0.01 * span))
    return np.array(out)


def residual_spread(residuals: Array, train: Array) -> Array:
    """The same, or where the residuals' 99.9 % quantile would be 3.29 spreads if they were normal."""
    plain = spread(residuals, train)
    rare = [np.percentile([abs(value) for value in residuals[:, c]], 99.9) / 3.29 for c in range(train.shape[1])]
    return np.maximum(plain, rare)


def ewma_residuals(values: Array, smoothing: float) -> Array:
    out = np.full(values.shape, np.nan)
    for c in range(values.shape[1]):
        level = values[0, c]
        for t in range(1, len(values)):
            out[t, c] = values[t, c] - level
            level += smoothing * (values[t, c] - level)
    return out


def linear_residuals(train: Array, values: Array, *, window: int, ridge: float, anchor: str) -> Any:
    """One channel at a time: stack windows, solve the penalised normal equations, forecast row by row."""
    out = np.full(values.shape, np.nan)
    level = train.mean(axis=0)

    def base(past: Any, c: int) -> Any:
        return {"train": level[c], "last": past[-1], "mean": sum(past) / len(past)}[anchor]

    for c in range(train.shape[1]):
        inputs, outputs = [], []
        for t in range(window, len(train)):
            past = list(train[t - window : t, c])
            inputs.append([value - base(past, c) for value in past])
            outputs.append(train[t, c] - base(past, c))
        rows, targets = np.array(inputs), np.array(outputs)
        centred = rows - rows.mean(axis=0)
        gram = centred.T @ centred / len(rows)
        penalty = ridge * np.trace(gram) / window
        weights = np.linalg.solve(gram + penalty * np.eye(window), centred.T @ (targets - targets.mean()) / len(rows))
        intercept = targets.mean() - rows.mean(axis=0) @ weights
        for t in range(window, len(values)):
            past = list(values[t - window : t, c])
            forecast = intercept + sum(w * (value - base(past, c)) for w, value in zip(weights, past, strict=True))
            out[t, c] = values[t, c] - forecast - base(past, c)
    return out


def var_forecast(train: Array, values: Array, *, order: int, ridge: float, center: Array, scale: Array) -> Any:
    """Least squares with the penalty written as extra rows."""
    x = (train - center) / scale
    rows = np.array([x[t - order : t].ravel() for t in range(order, len(x))])
    targets = x[order:]
    mean_row, mean_target = rows.mean(axis=0), targets.mean(axis=0)
    penalty = ridge * rows.var(axis=0).mean()
    stacked = np.vstack([rows - mean_row, math.sqrt(penalty * len(rows)) * np.eye(rows.shape[1])])
    wanted = np.vstack([targets - mean_target, np.zeros((rows.shape[1], x.shape[1]))])
    weights = np.linalg.lstsq(stacked, wanted, rcond=None)[0]
    y = (values - center) / scale
    out = np.full(values.shape, np.nan)
    for t in range(order, len(values)):
        out[t] = ((y[t - order : t].ravel() - mean_row) @ weights + mean_target) * scale + center
    return out


def flat_windows(values: Array, window: int) -> Array:
    return np.array([values[t - window + 1 : t + 1].ravel() for t in range(window - 1, len(values))])


def nearest_distances(row: Array, stored: Array, *, allowed: Any) -> Any:
    return sorted(math.dist(row, other) for other, good in zip(stored, allowed, strict=True) if good)


def arima_errors(values: Any, *, ar: Any, d: int, ma: Any, mean: float) -> Any:
    """Difference d times, subtract the mean, unroll the recursion; errors before the model's reach are 0."""
    w = values.copy()
    for _ in range(d):
        w = w[1:] - w[:-1]
    w = w - mean
    errors = np.zeros(len(w))
    for t in range(len(ar), len(w)):
        errors[t] = w[t]
        for i, phi in enumerate(ar):
            errors[t] -= phi * w[t - 1 - i]
        for j, theta in enumerate(ma):
            if t - 1 - j >= len(ar):
                errors[t] -= theta * errors[t - 1 - j]
    out = np.full(len(values), np.nan)
    out[d + len(ar) :] = errors[len(ar) :]
    return out


def ecod_scores(train: Array, values: Array) -> Any:
    """Sums of minus log tail probabilities, the row itself counted among n + 1."""
    n = len(train)
    out = []
    for row in values:
        left = right = automatic = 0.0
        for c, value in enumerate(row):
            low = -math.log((sum(train[:, c] <= value) + 1) / (n + 1))
            high = -math.log((sum(train[:, c] >= value) + 1) / (n + 1))
            centred = train[:, c] - train[:, c].mean()
            left, right = left + low, right + high
            automatic += low if (centred**3).mean() < 0 else high
        out.append(max(left, right, automatic))
    return np.array(out)


def spectral_contrast(window: Any) -> Any:
    """One channel's contrast at the newest row, with the transform written out."""
    size = len(window)
    x = window - window.mean()
    x = x / np.abs(x).max()
    gradient = sum((x[-2] - x[-2 - i]) / i for i in range(1, 6)) / 5
    x = np.append(x, [x[-6] + 5 * gradient] * 5)
    n = len(x)
    angles = -2j * np.pi * np.outer(np.arange(n // 2 + 1), np.arange(n)) / n
    spectrum = np.exp(angles) @ x
    amplitude = np.maximum(np.abs(spectrum), 1e-8 * np.abs(spectrum).max())
    logs = np.log(amplitude)
    padded = np.concatenate([logs[:1], logs, logs[-1:]])
    average = np.array([padded[i : i + 3].mean() for i in range(len(logs))])
    saliency = np.abs(np.fft.irfft(np.exp(logs - average) * spectrum / amplitude, n=n))[:size]
    return max(saliency[-1] / saliency[-22:-1].mean() - 1.0, 0.0)
