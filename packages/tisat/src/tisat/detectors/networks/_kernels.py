"""Compiled loops of the transformer, forwards and backwards: attention of heads that are 8 wide, dropout, the pool of distilling.

**Attention.** Torch's fused attention hands a few rows at a time to a general matrix product, whose own cost outweighs eight products a place.
Here 16 queries (backwards: 16 keys) are side by side, and loops over these lanes become vector instructions. Keys come four at a
time (backwards: queries two at a time), so that sums are read and written less often. The softmax has base 2: ``2^x`` is a polynomial around the nearest whole
number, which goes into the bits of the exponent.

**Dropout.** Whether a value is dropped follows from its place and a key: nothing is kept for the way back.

Legend: b batch, t time, D model width, l queries, s keys, h head, W = 8 width of a head. Rows ``(b, l, n, h, W)`` are read where they are: the middle
index says which of the n maps (query, key, value) is meant. This module does not know torch.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tisat.utils.compiled import compiled

Singles: TypeAlias = npt.NDArray[np.float32]
Bytes: TypeAlias = npt.NDArray[np.int8]

WIDTH = 8
LANES = 16
ROOT = np.float32(1 / math.sqrt(WIDTH))
SCALE = np.float32(math.log2(math.e) / math.sqrt(WIDTH))  # from products to exponents of 2
SAFE = np.float32(60.0**2)  # square of an exponent that needs no shift: 2^60 overflows no sum, 2^-60 is lost in none
LOWEST, HIGHEST = np.float32(-126), np.float32(126)  # exponents of normal numbers
ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)
# 2^x on [-1/2, 1/2] to 1e-7 of it: the polynomial that is right at the Chebyshev points.
C0, C1, C2 = np.float32(1.00000008), np.float32(0.69314719), np.float32(0.24022107)
C3, C4, C5 = np.float32(0.05550357), np.float32(0.00967603), np.float32(0.00133909)
LN2 = np.float32(math.log(2))
LEVEL, MEAN = 2 * WIDTH, 2 * WIDTH + 1  # what is known of a query
BIAS, MANTISSA = np.int32(127), np.int32(23)  # of a float32


@intrinsic
def _float_of_bits(_context: Any, _bits: Any) -> Any:
    """The float32 whose bits are those of an int32."""

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@compiled(reorder=True)
def _power(exponent: np.float32) -> np.float32:
    """``2^x`` of a float32, which is kept between the smallest and the largest normal number."""
    x = min(max(exponent, LOWEST), HIGHEST)
    nearest = np.floor(x + HALF)
    x -= nearest
    around = C0 + x * (C1 + x * (C2 + x * (C3 + x * (C4 + x * C5))))
    power: np.float32 = around * _float_of_bits((np.int32(nearest) + BIAS) << MANTISSA)
    return power


@compiled(reorder=True)
def _take(rows: Singles, b: int, which: int, h: int, into: Singles) -> np.float32:
    """One head's rows, side by side ``(s, W)``; the largest square of their lengths."""
    largest = ZERO
    for j in range(rows.shape[1]):
        square = ZERO
        for c in range(WIDTH):
            value = rows[b, j, which, h, c]
            into[j, c] = value
            square += value * value
        largest = max(largest, square)
    return largest


@compiled(reorder=True)
def _take_lanes(rows: Singles, first: int, factor: np.float32, into: Singles) -> np.float32:
    """Rows from ``first`` on as lanes ``(W, LANES)``, the last one again beyond the end; the largest square of their lengths."""
    largest = ZERO
    for lane in range(LANES):
        i = min(first + lane, len(rows) - 1)
        square = ZERO
        for c in range(WIDTH):
            value = rows[i, c] * factor
            into[c, lane] = value
            square += value * value
        largest = max(largest, square)
    return largest


@compiled(reorder=True)
def attend(query: Singles, rows: Singles, maps: int, causal: bool, out: Singles, levels: Singles) -> None:  # noqa: FBT001
    """Fill ``out`` ``(b, l, h, W)`` and, for the way back, the logarithms ``levels`` ``(b, l, h)`` of the sums under each softmax.

    The query is map 0 of ``query``; key and value are maps ``maps`` and ``maps + 1`` of ``rows``. The last query sees all keys;
    ``causal``: each one before it one fewer.
    """
    keys, queries, heads = rows.shape[1], query.shape[1], query.shape[3]
    asking = np.empty((queries, WIDTH), np.float32)
    key, value = np.zeros((keys + 3, WIDTH), np.float32), np.zeros((keys + 3, WIDTH), np.float32)
    asked, mixed = np.empty((WIDTH, LANES), np.float32), np.empty((WIDTH, LANES), np.float32)
    total, shift, last = np.empty(LANES, np.float32), np.empty(LANES, np.float32), np.empty(LANES, np.int32)
    for b in range(query.shape[0]):
        for h in range(heads):
            _take(query, b, 0, h, asking)
            largest = _take(rows, b, maps, h, key)
            _take(rows, b, maps + 1, h, value)
            for first in range(0, queries, LANES):
                largest_asked = _take_lanes(asking, first, SCALE, asked)
                mixed[:] = ZERO
                total[:] = ZERO
                shift[:] = ZERO
                for lane in range(LANES):
                    last[lane] = keys - queries + min(first + lane, queries - 1) if causal else keys - 1
                if not largest_asked * largest < SAFE:
                    for lane in range(LANES):
                        highest = np.float32(-np.inf)
                        for j in range(last[lane] + 1):
                            product = ZERO
                            for c in range(WIDTH):
                                product += asked[c, lane] * key[j, c]
                            highest = max(highest, product)
                        shift[lane] = highest
                for j in range(0, last[LANES - 1] + 1, 4):
                    for lane in range(LANES):
                        one = two = three = four = -shift[lane]
                        for c in range(WIDTH):
                            one += asked[c, lane] * key[j, c]
                            two += asked[c, lane] * key[j + 1, c]
                            three += asked[c, lane] * key[j + 2, c]
                            four += asked[c, lane] * key[j + 3, c]
                        one, two, three, four = _power(one), _power(two), _power(three), _power(four)
                        one = one if j <= last[lane] else ZERO
                        two = two if j < last[lane] else ZERO
                        three = three if j + 1 < last[lane] else ZERO
                        four = four if j + 2 < last[lane] else ZERO
                        total[lane] += (one + two) + (three + four)
                        for c in range(WIDTH):
                            first_two = one * value[j, c] + two * value[j + 1, c]
                            mixed[c, lane] += first_two + (three * value[j + 2, c] + four * value[j + 3, c])
                for lane in range(min(LANES, queries - first)):
                    for c in range(WIDTH):
                        out[b, first + lane, h, c] = mixed[c, lane] / total[lane]
                    if levels.size > 0:
                        levels[b, first + lane, h] = shift[lane] + np.float32(math.log2(total[lane]))


@compiled(reorder=True)
def gradients(
    query: Singles,
    rows: Singles,
    maps: int,
    causal: bool,  # noqa: FBT001
    out: Singles,
    levels: Singles,
    slope: Singles,  # (b, l, h, W), of the loss by out
    to_query: Singles,
    to_rows: Singles,
) -> None:
    """Fill the slopes of the loss by the query, the key and the value, at the places of ``attend``'s arguments.

    Few arrays, each with a fixed step from row to row: the compiler must see that none of them overlaps another.
    """
    keys, queries, heads = rows.shape[1], query.shape[1], query.shape[3]
    pairs, blocks = -(-queries // 2), -(-keys // LANES)
    asked = np.empty((queries, WIDTH), np.float32)
    # Of a query: what it asks, the slope by its answer, minus its level, minus the mean of its slopes.
    known = np.zeros((2 * pairs, 2 * WIDTH + 2), np.float32)
    known[:, LEVEL] = LOWEST
    key, value = np.empty((keys, WIDTH), np.float32), np.empty((keys, WIDTH), np.float32)
    lanes, sums = np.empty((2 * WIDTH, LANES), np.float32), np.empty((2 * WIDTH, LANES), np.float32)  # key, then value
    turned, placed = np.empty((2 * pairs, blocks * LANES), np.float32), np.empty((WIDTH, blocks * LANES), np.float32)
    pair = np.empty((4, LANES), np.float32)
    for b in range(query.shape[0]):
        for h in range(heads):
            _take(query, b, 0, h, asked)
            _take(rows, b, maps, h, key)
            _take(rows, b, maps + 1, h, value)
            for i in range(queries):
                mean = ZERO
                for c in range(WIDTH):
                    known[i, c] = asked[i, c] * SCALE
                    known[i, WIDTH + c] = slope[b, i, h, c]
                    mean += slope[b, i, h, c] * out[b, i, h, c]
                known[i, LEVEL], known[i, MEAN] = -levels[b, i, h], -mean
            for block in range(blocks):
                first = block * LANES
                _take_lanes(key, first, ONE, lanes[:WIDTH])
                _take_lanes(value, first, ONE, lanes[WIDTH:])
                placed[:, first : first + LANES] = lanes[:WIDTH]
                sums[:] = ZERO
                begin = max(0, first - (keys - queries)) // 2 * 2 if causal else 0
                turned[:begin, first : first + LANES] = ZERO
                for i in range(begin, 2 * pairs, 2):
                    seen = keys - queries + i + 1 - first if causal else keys - first  # lanes that query i sees
                    more = seen + 1 if causal else seen
                    for lane in range(LANES):
                        one, two = known[i, LEVEL], known[i + 1, LEVEL]
                        by_one, by_two = known[i, MEAN], known[i + 1, MEAN]
                        for c in range(WIDTH):
                            one += known[i, c] * lanes[c, lane]
                            two += known[i + 1, c] * lanes[c, lane]
                            by_one += known[i, WIDTH + c] * lanes[WIDTH + c, lane]
                            by_two += known[i + 1, WIDTH + c] * lanes[WIDTH + c, lane]
                        one, two = _power(one), _power(two)
                        one = one if lane < seen else ZERO
                        two = two if lane < more else ZERO
                        pair[0, lane], pair[1, lane] = one, two
                        pair[2, lane], pair[3, lane] = one * by_one, two * by_two
                    for lane in range(LANES):
                        for c in range(WIDTH):
                            sums[c, lane] += pair[2, lane] * known[i, c] + pair[3, lane] * known[i + 1, c]
                            d = WIDTH + c
                            sums[d, lane] += pair[0, lane] * known[i, d] + pair[1, lane] * known[i + 1, d]
                    for lane in range(LANES):
                        turned[i, first + lane] = pair[2, lane]
                        turned[i + 1, first + lane] = pair[3, lane]
                for lane in range(min(LANES, keys - first)):
                    for c in range(WIDTH):
                        to_rows[b, first + lane, maps, h, c] = sums[c, lane] * LN2
                        to_rows[b, first + lane, maps + 1, h, c] = sums[WIDTH + c, lane]
            for i in range(queries):
                for c in range(0, WIDTH, 4):
                    first_sum = second = third = fourth = ZERO
                    for j in range(blocks * LANES):
                        first_sum += turned[i, j] * placed[c, j]
                        second += turned[i, j] * placed[c + 1, j]
                        third += turned[i, j] * placed[c + 2, j]
                        fourth += turned[i, j] * placed[c + 3, j]
                    to_query[b, i, 0, h, c], to_query[b, i, 0, h, c + 1] = first_sum * ROOT, second * ROOT
                    to_query[b, i, 0, h, c + 2], to_query[b, i, 0, h, c + 3] = third * ROOT, fourth * ROOT


@compiled()
def drop(x: Singles, key: int, below: int, factor: float, into: Singles) -> None:
    """``factor * x``, and 0 at the places whose 32 bits are below a number; the bits follow from the place and the key alone."""
    start, end, limit, large = np.uint32(key), np.uint32(key >> 32), np.uint32(below), np.float32(factor)
    for i in range(len(x)):
        bits = np.uint32(i + start)  # numba computes with 64 bits
        bits = np.uint32((bits ^ (bits >> 16)) * np.uint32(0x7FEB352D))
        bits = np.uint32((bits ^ (bits >> 15)) * np.uint32(0x846CA68B))
        bits = np.uint32(bits ^ (bits >> 16) ^ end)
        into[i] = x[i] * large if bits >= limit else ZERO


@compiled()
def pool(x: Singles, into: Singles, chosen: Bytes) -> None:
    """``(b, ceil(t / 2), D)``: the largest of rows ``2 i - 1, 2 i, 2 i + 1`` of ``(b, t, D)``, and which, the first where equal."""
    length = x.shape[1]
    for b in range(x.shape[0]):
        for i in range(into.shape[1]):
            left, middle, right = max(2 * i - 1, 0), 2 * i, min(2 * i + 1, length - 1)
            for d in range(x.shape[2]):
                largest, which = x[b, middle, d], np.int8(1)
                if x[b, right, d] > largest:
                    largest, which = x[b, right, d], np.int8(2)
                if x[b, left, d] >= largest and i > 0:
                    largest, which = x[b, left, d], np.int8(0)
                into[b, i, d] = largest
                chosen[b, i, d] = which


@compiled()
def unpool(slope: Singles, chosen: Bytes, into: Singles) -> None:
    """The slope by ``pool``'s rows of the slope by its result."""
    into[:] = ZERO
    for b in range(slope.shape[0]):
        for i in range(slope.shape[1]):
            left, middle, right = max(2 * i - 1, 0), 2 * i, min(2 * i + 1, into.shape[1] - 1)
            for d in range(slope.shape[2]):
                which, value = chosen[b, i, d], slope[b, i, d]
                into[b, left, d] += value if which == 0 else ZERO
                into[b, middle, d] += value if which == 1 else ZERO
                into[b, right, d] += value if which == 2 else ZERO
