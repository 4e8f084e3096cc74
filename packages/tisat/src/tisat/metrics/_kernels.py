"""The passes over a series that numpy cannot do at once, compiled by numba and cached on disk.

``window_records`` finds the running-maximum records of the scores inside each window: the only scores at which a delay
changes. ``false_alarms`` counts the raised alarms outside windows at every threshold in one pass with a stack.
A kernel is compiled when it is first asked for, with a fixed signature, and kept where numba may write: beside this file, or
in the user's cache where the installation is read-only, or nowhere (then once a process). Nothing here knows
labels, durations or what an area is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np

from tisat.utils.types import Array, Flags, Integers


def _window_records(scores: Array, starts: Integers, stops: Integers) -> tuple[Array, Integers, Integers]:
    total = 0
    for i in range(starts.size):
        any_seen = False
        highest = 0.0
        for t in range(starts[i], stops[i]):
            if scores[t] == scores[t] and (not any_seen or scores[t] > highest):
                highest = scores[t]
                any_seen = True
                total += 1
    values = np.empty(total, np.float64)
    positions = np.empty(total, np.int64)
    owners = np.empty(total, np.int64)
    k = 0
    for i in range(starts.size):
        any_seen = False
        highest = 0.0
        for t in range(starts[i], stops[i]):
            if scores[t] == scores[t] and (not any_seen or scores[t] > highest):
                highest = scores[t]
                any_seen = True
                values[k] = highest
                positions[k] = t
                owners[k] = i
                k += 1
    return values, positions, owners


def _false_alarms(scores: Array, outside: Flags, values: Array, stride: int, steps: Integers) -> None:
    # values ascend; the level of a row is how many of them it reaches, so it is active at values[j] iff j < level.
    # A run starts at t at the levels from level[t - 1] up to level[t]. It is raised again at t iff it has lasted: with
    # lasting[t] = min(level[t - stride .. t]), the runs of lasting are the long runs less their first stride rows, and
    # their own raises are the raises wanted. They nest as levels fall, so a stack closes each once; it holds the open
    # runs from the lowest level up: the levels [low, low of the next entry) all began at start.
    n = scores.size
    n_levels = values.size
    lowest = values[0]
    highest = values[n_levels - 1]
    n_buckets = min(4 * n_levels, 65_536)
    scale = (n_buckets - 1) / (highest - lowest) if highest > lowest else 0.0
    if not 0.0 < scale < 1e300:
        scale = 0.0  # one value, or a range beyond the floats: one bucket, plain bisection
    bounds = np.zeros(n_buckets + 1, np.int32)  # values of bucket b are [bounds[b], bounds[b + 1])
    for k in range(n_levels):
        bounds[1 + (np.int64((values[k] - lowest) * scale) if scale > 0.0 else 0)] += 1
    for b in range(n_buckets):
        bounds[b + 1] += bounds[b]
    levels = np.zeros(n, np.int32)
    for t in range(n):
        score = scores[t]
        if score >= highest:
            levels[t] = n_levels
        elif score >= lowest:  # neither holds for NaN: its level is 0
            bucket = np.uint64((score - lowest) * scale) if scale > 0.0 else np.uint64(0)
            low = bounds[bucket]
            high = bounds[bucket + np.uint64(1)]
            while low < high:
                middle = (low + high) >> 1
                if values[np.uint64(middle)] <= score:
                    low = middle + 1
                else:
                    high = middle
            levels[t] = low
    before = np.int32(0)
    for t in range(n):
        level = levels[t]
        start = np.int64(outside[t])
        steps[np.uint64(min(before, level))] += start
        steps[np.uint64(level)] -= start
        before = level
    if stride >= n:
        return
    width = stride + 1
    suffix = np.zeros(width + 1, np.int32)  # minima of the ends of the previous block of this width (van Herk 1992)
    suffix[width] = n_levels
    strided = np.empty(n, np.int32)  # C[t] = outside[t] + C[t - stride]
    lows = np.empty(n_levels, np.int64)
    starts = np.empty(n_levels, np.int64)
    depth = 0
    current = 0
    position = 0
    prefix = np.int32(n_levels)
    for t in range(n + 1):
        lasting = 0
        if t < n:
            strided[t] = outside[t] + (strided[t - stride] if t >= stride else 0)
            prefix = min(prefix, levels[t])
            position += 1
            lasting = min(prefix, suffix[position])
            if position == width:
                least = np.int32(n_levels)
                for i in range(width):
                    least = min(least, levels[t - i])
                    suffix[width - 1 - i] = least
                position = 0
                prefix = np.int32(n_levels)
        if lasting > current:
            lows[depth] = current
            starts[depth] = t
            depth += 1
            current = lasting
        while current > lasting:
            low = lows[depth - 1]
            u = starts[depth - 1]
            if low < lasting:
                low = lasting
            else:
                depth -= 1
            span = t - 1 - u
            count = np.int64(strided[u if span < stride else u + (span // stride) * stride])
            if u >= stride:
                count -= strided[u - stride]
            steps[low] += count
            steps[current] -= count
            current = low


def _false_alarms_irregular(scores: Array, outside: Flags, values: Array, following: Integers, steps: Integers) -> None:
    # As above, but the row that re-raises t is following[t] > t (n: none). Raises of a run [u, v) are those on the path
    # from u before v; skip pointers (Myers 1983) find where the path leaves the run in a logarithmic number of steps.
    n = scores.size
    n_levels = values.size
    suffix = np.zeros(n + 1, np.int64)
    hops = np.zeros(n + 1, np.int64)
    skip = np.full(n + 1, n, np.int64)
    for t in range(n - 1, -1, -1):
        parent = following[t]
        suffix[t] = outside[t] + suffix[parent]
        hops[t] = hops[parent] + 1
        far = skip[parent]
        if hops[parent] - hops[far] == hops[far] - hops[skip[far]]:
            skip[t] = skip[far]
        else:
            skip[t] = parent
    lows = np.empty(n_levels, np.int64)
    starts = np.empty(n_levels, np.int64)
    depth = 0
    current = 0
    for t in range(n + 1):
        level = 0
        if t < n and scores[t] == scores[t]:
            level = np.searchsorted(values, scores[t], side="right")
        if level > current:
            lows[depth] = current
            starts[depth] = t
            depth += 1
            current = level
        while current > level:
            low = lows[depth - 1]
            u = starts[depth - 1]
            if low < level:
                low = level
            else:
                depth -= 1
            node = u
            while node < t:
                node = skip[node] if skip[node] < t else following[node]
            count = suffix[u] - suffix[node]
            steps[low] += count
            steps[current] -= count
            current = low


def _expected_raises(following: Integers, outside: Flags, probabilities: Array) -> Array:
    # P(raised at t) for independent alarms: a run starts at t, or the raise that t follows has lasted until t.
    n = following.size
    expected = np.zeros(probabilities.size)
    raises = np.empty(n)
    for i in range(probabilities.size):
        p = probabilities[i]
        logarithm = np.log(p) if p > 0.0 else -1e300
        raises[:] = p * (1.0 - p)
        if n:
            raises[0] = p
        for t in range(n):
            if outside[t]:
                expected[i] += raises[t]
            after = following[t]
            exponent = logarithm * (after - t)
            if after < n and exponent > -40.0:
                raises[after] += raises[t] * np.exp(exponent)
    return expected


def _missed_weights(order: Integers, groups: Integers, length: int, n_groups: int) -> Array:
    # Rows of one event are switched on in the order given; after each group, the weight of those still off. Two Fenwick
    # trees keep the number and the places of the off ones; next_off leads from a place to the first off one at or behind it.
    count = np.zeros(length + 1, np.float64)
    place = np.zeros(length + 1, np.float64)
    for i in range(1, length + 1):
        count[i] += 1.0
        place[i] += i - 1
        j = i + (i & -i)
        if j <= length:
            count[j] += count[i]
            place[j] += place[i]
    next_off = np.arange(length + 1)
    weights = np.empty(n_groups, np.float64)
    first = length
    off, places = float(length), length * (length - 1) / 2.0
    whole = length * (length - 1) / 2.0
    for k in range(order.size):
        p = order[k]
        i = p + 1
        while i <= length:
            count[i] -= 1.0
            place[i] -= p
            i += i & -i
        off -= 1.0
        places -= p
        next_off[p] = p + 1
        first = min(first, p)
        if k + 1 < order.size and groups[k + 1] == groups[k]:
            continue
        end = first
        while next_off[end] != end:
            next_off[end] = next_off[next_off[end]]
            end = next_off[end]
        run = end - first  # the length of the first stretch that is on: the weight is 1 up to that place
        near, near_places = 0.0, 0.0
        i = min(run + 1, length)
        while i > 0:
            near += count[i]
            near_places += place[i]
            i -= i & -i
        far, far_places = off - near, places - near_places
        weights[groups[k]] = near + far
        if whole > 0:
            weights[groups[k]] -= ((run + 1) * far_places - far * run * (run + 1) / 2.0) / whole
    return weights


@cache
def _compiled(kernel: Callable[..., Any], kinds: tuple[str | None, ...]) -> Callable[..., Any]:
    """``kernel``, compiled now for arguments of these kinds, from the cache on disk where there is one.

    Parameters
    ----------
    kernel : callable
    kinds : tuple of str or None
        The type of the numbers of each array, with ``, written`` where the kernel writes to it; None: a whole number.
    """
    from numba import int64, types  # imported when a metric is first asked for

    from tisat.utils.compiled import compile_for

    def kind_of(kind: str | None) -> Any:
        if kind is None:
            return int64
        dtype, _, written = kind.partition(", ")
        return types.Array(getattr(types, dtype), 1, "C", readonly=not written)

    # no_cfunc_wrapper: nothing calls these from C, and it is a quarter of what there is to compile
    return compile_for(tuple(map(kind_of, kinds)), kernel, no_cfunc_wrapper=True)


def missed_weights(order: Integers, groups: Integers, length: int, n_groups: int) -> Array:
    """The weight of the rows of an event that are off, after each group of rows was switched on; see :mod:`tisat.metrics.pate`.

    Parameters
    ----------
    order : places in the event, in the order in which they are switched on
    groups : the number of the group of each; ascending
    length, n_groups : int
    """
    arrays = (np.ascontiguousarray(order), np.ascontiguousarray(groups))
    return cast("Array", _compiled(_missed_weights, ("int64", "int64", None, None))(*arrays, length, n_groups))


def window_records(scores: Array, starts: Integers, stops: Integers) -> tuple[Array, Integers, Integers]:
    """The strict running-maximum records of the scores in each window ``[start, stop)``, NaN skipped.

    Returns
    -------
    values, positions, owners : arrays of one length
        The score, its row and the number of its window, window by window in order of time.
    """
    arrays = (np.ascontiguousarray(scores), np.ascontiguousarray(starts), np.ascontiguousarray(stops))
    result = _compiled(_window_records, ("float64", "int64", "int64"))(*arrays)
    return cast("tuple[Array, Integers, Integers]", result)


def false_alarms(scores: Array, outside: Flags, values: Array, reraise: int | Integers) -> Integers:
    """How many alarms are raised at ``outside`` rows, at each of the ascending thresholds ``values``.

    Parameters
    ----------
    scores : array of shape (T,)
    outside : bool array of shape (T,)
    values : ascending array of shape (K,)
    reraise : int or int array of shape (T,)
        The number of rows after which a lasting alarm is raised again, or for each row the one that follows it in a chain of raises.

    Returns
    -------
    counts : int64 array of shape (K,)
    """
    if len(values) == 0:
        return np.empty(0, dtype=np.int64)
    steps = np.zeros(len(values) + 1, dtype=np.int64)
    arrays = (np.ascontiguousarray(scores), np.ascontiguousarray(outside), np.ascontiguousarray(values))
    kinds = ("float64", "boolean", "float64")
    if isinstance(reraise, int):
        _compiled(_false_alarms, (*kinds, None, "int64, written"))(*arrays, reraise, steps)
    else:
        irregular = _compiled(_false_alarms_irregular, (*kinds, "int64", "int64, written"))
        irregular(*arrays, np.ascontiguousarray(reraise), steps)
    return np.cumsum(steps[:-1])


def expected_raises(following: Integers, outside: Flags, probabilities: Array) -> Array:
    """The expected number of raises at ``outside`` rows of independent alarms, at each probability; any chain of raises."""
    arrays = (np.ascontiguousarray(following), np.ascontiguousarray(outside), np.ascontiguousarray(probabilities))
    return cast("Array", _compiled(_expected_raises, ("int64", "boolean", "float64"))(*arrays))
