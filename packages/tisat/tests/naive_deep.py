"""Reference implementations of what makes the deep detectors themselves: loops from the definitions, in numpy."""

from typing import Any

import numpy as np


def kalman_log_density(z: Any, transition: Any, observation: Any, state_noise: Any, observation_noise: Any) -> float:
    """log p(z) of one sequence (T, d) under a linear Gaussian state-space model, by the Kalman filter."""
    size = z.shape[1]
    mean, covariance, total = np.zeros(size), np.eye(size), 0.0
    for row in z:
        spread = observation @ covariance @ observation.T + observation_noise
        surprise = row - observation @ mean
        inverse = np.linalg.inv(spread)
        total -= 0.5 * (surprise @ inverse @ surprise + np.log(np.linalg.det(2 * np.pi * spread)))
        gain = covariance @ observation.T @ inverse
        mean = transition @ (mean + gain @ surprise)
        covariance = transition @ (covariance - gain @ observation @ covariance) @ transition.T + state_noise
    return total


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def dilated_gru(rows: Any, weights: Any, dilation: int) -> Any:
    """States (T, h) of a GRU whose state at t is updated from the one at t - dilation; ``weights`` as torch names them."""
    input_weight, state_weight = weights["weight_ih_l0"], weights["weight_hh_l0"]
    input_bias, state_bias = weights["bias_ih_l0"], weights["bias_hh_l0"]
    hidden = state_weight.shape[1]
    states: list[Any] = []
    for t, row in enumerate(rows):
        before = states[t - dilation] if t >= dilation else np.zeros(hidden)
        from_row = np.split(input_weight @ row + input_bias, 3)
        from_state = np.split(state_weight @ before + state_bias, 3)
        reset = _sigmoid(from_row[0] + from_state[0])
        keep = _sigmoid(from_row[1] + from_state[1])
        new = np.tanh(from_row[2] + reset * from_state[2])
        states.append((1 - keep) * new + keep * before)
    return np.array(states)


def _cosine(a: Any, b: Any) -> Any:
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


def hierarchical_distance(features: Any, centres: Any, transforms: Any, joins: Any, temperature: float) -> Any:
    """THOC's score of one row from its features of every scale: assignment, update, join, cluster by cluster.

    ``transforms`` and ``joins`` are (weight, bias) pairs, one a scale and one between two scales.
    """
    inputs, shares = [features[0]], [1.0]
    received: list[Any] = []
    for level, level_centres in enumerate(centres):
        if level:
            weight, bias = joins[level - 1]
            inputs = [weight @ np.concatenate([value, features[level]]) + bias for value in received]
        weight, bias = transforms[level]
        received = [np.zeros(len(bias)) for _ in level_centres]
        new_shares = [0.0 for _ in level_centres]
        for value, share in zip(inputs, shares, strict=True):
            similar = np.exp([_cosine(value, centre) / temperature for centre in level_centres])
            for j, part in enumerate(similar / similar.sum()):
                received[j] = received[j] + part * np.maximum(weight @ value + bias, 0.0)
                new_shares[j] += part * share
        shares = new_shares
    distances = [1 - _cosine(value, centre) for value, centre in zip(received, centres[-1], strict=True)]
    return float(np.dot(shares, distances)), shares


def kl(p: Any, q: Any) -> Any:
    """KL(p || q) of two distributions over the same few outcomes."""
    return sum(a * np.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def gaussian_prior(sigma: float, length: int, row: int) -> Any:
    """The prior association of one row: a Gaussian of the distance in time, rescaled to add up to 1."""
    density = [np.exp(-((j - row) ** 2) / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma) for j in range(length)]
    return np.array(density) / sum(density)
