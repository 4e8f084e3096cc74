"""Reference implementations of the network's parts, written from the definitions: loops over positions, plain floats, no tricks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Row: TypeAlias = Sequence[float]
Rows: TypeAlias = Sequence[Row]


def softmax(values: Row) -> list[float]:
    largest = max(values)
    weights = [math.exp(value - largest) for value in values]
    total = sum(weights)
    return [weight / total for weight in weights]


def products(query: Row, keys: Rows) -> list[float]:
    """q k / sqrt d for every key."""
    return [sum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(len(query)) for key in keys]


def attend(query: Row, keys: Rows, values: Rows) -> list[float]:
    """One query's softmax attention."""
    weights = softmax(products(query, keys))
    return [sum(w * value[i] for w, value in zip(weights, values, strict=True)) for i in range(len(values[0]))]


def mean_of(values: Rows) -> list[float]:
    return [sum(value[i] for value in values) / len(values) for i in range(len(values[0]))]


def measure(query: Row, keys: Rows) -> float:
    """M(q, K) = log sum_j exp(q k_j / sqrt d) - mean_j (q k_j / sqrt d)."""
    scores = products(query, keys)
    return math.log(sum(math.exp(score) for score in scores)) - sum(scores) / len(scores)


def full_attention(queries: Rows, keys: Rows, values: Rows, *, causal: bool = False) -> Any:
    """Every query attends: (l, d) x (s, d) -> (l, d); causal: query i to keys <= i."""
    return np.array(
        [
            attend(q, keys[: i + 1] if causal else keys, values[: i + 1] if causal else values)
            for i, q in enumerate(queries)
        ]
    )


def measures(queries: Rows, keys: Rows, *, causal: bool = False, sample: Any = None) -> list[float]:
    """M of every query; causal: on keys <= i, less the log of how many those are."""
    found = []
    for i, query in enumerate(queries):
        seen = [j for j in (range(len(keys)) if sample is None else sample) if not causal or j <= i]
        if not seen:
            found.append(-math.inf)
        else:
            found.append(measure(query, [keys[j] for j in seen]) - (math.log(len(seen)) if causal else 0.0))
    return found


def chosen_queries(queries: Rows, keys: Rows, *, count: int, causal: bool = False, sample: Any = None) -> Any:
    """The ``count`` queries of the largest measure."""
    found = measures(queries, keys, causal=causal, sample=sample)
    return sorted(sorted(range(len(queries)), key=lambda i: -found[i])[:count])


def sparse_attention(
    queries: Rows, keys: Rows, values: Rows, *, count: int, causal: bool = False, sample: Any = None
) -> Any:
    """The chosen attend, the rest get the mean of the values (causal: the running mean)."""
    chosen = chosen_queries(queries, keys, count=count, causal=causal, sample=sample)
    rows = []
    for i, query in enumerate(queries):
        seen = slice(0, i + 1) if causal else slice(None)
        rows.append(attend(query, keys[seen], values[seen]) if i in chosen else mean_of(values[seen]))
    return np.array(rows)


def convolve(rows: Rows, weight: Any, bias: Row) -> Any:
    """Width-3 convolution over time with zeros beyond the ends; weight (out, 3 c): left, middle, right."""
    channels = len(rows[0])
    zero = [0.0] * channels
    result = []
    for t in range(len(rows)):
        around = [*(rows[t - 1] if t > 0 else zero), *rows[t], *(rows[t + 1] if t + 1 < len(rows) else zero)]
        result.append(
            [sum(w * x for w, x in zip(line, around, strict=True)) + b for line, b in zip(weight, bias, strict=True)]
        )
    return np.array(result)


def distil(rows: Rows, weight: Any, bias: Row) -> Any:
    """MaxPool(ELU(Conv(x))), widths 3, stride 2, in this order."""
    convolved = convolve(rows, weight, bias)
    activated = np.where(convolved > 0, convolved, np.expm1(np.minimum(convolved, 0.0)))
    length = len(rows)
    return np.array(
        [activated[max(0, 2 * i - 1) : min(length, 2 * i + 2)].max(axis=0) for i in range((length + 1) // 2)]
    )
