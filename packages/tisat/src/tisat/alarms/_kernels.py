"""The loops of the alarm layer, compiled: each takes arrays and a state, and goes on from that state.

One row online and a whole series offline are the same function over arrays of different length, so they agree to
the bit. The state of every loop is a pair of small arrays, one of floats and one of integers, that the caller owns.
These functions trust their arguments; they do not know what a point, a budget or a detector is.
"""

from __future__ import annotations

import numpy as np

from tisat.alarms.control import follow, threshold_of
from tisat.utils.compiled import compiled
from tisat.utils.types import AnyArray, Array, Flags, Integers

RESTART, RECOVERY, COOLDOWN, ENDLESS = 0, 1, 2, 3

# Fields of the integer state shared by the accumulators.
NOW, QUIET, LEFT, ACTIVE, FILLED = 0, 1, 2, 3, 4
LARGEST = 1e300  # of one excess and of a sum without end, so that what is added up is finite


@compiled()
def _end_of_alarm(clock: Integers, now: int, level: float, threshold: float) -> None:
    """What comes after an alarm did not begin before it ended."""
    on = 1 if level >= threshold else 0
    if clock[ACTIVE] == 1 and on == 0:
        clock[QUIET] = now
    clock[ACTIVE] = on


@compiled()
def cusum(
    evidence: Array,
    threshold: float,
    policy: int,
    cooldown: int,
    sums: Array,  # (1,): the statistic carried to the next row
    clock: Integers,  # (5,): NOW, QUIET, LEFT, ACTIVE, unused
    statistic: Array,
    active: Flags,
    onset: Integers,
) -> None:
    """``s_t = max(s_{t-1} + D_t, 0)`` with a policy for what ends an alarm; fills statistic, active and onset."""
    s = sums[0]
    for i in range(len(evidence)):
        now = clock[NOW]
        clock[NOW] = now + 1
        if np.isnan(evidence[i]):
            s = 0.0
            clock[LEFT] = 0
            clock[ACTIVE] = 0
            clock[QUIET] = now
            statistic[i] = np.nan
            active[i] = False
            onset[i] = now
            continue
        if policy == COOLDOWN and clock[LEFT] > 0:
            clock[LEFT] -= 1
            clock[QUIET] = now
            statistic[i] = 0.0
            active[i] = True
            onset[i] = now
            continue
        s = max(s + evidence[i], 0.0)
        if s == 0.0:
            clock[QUIET] = now
        if policy == ENDLESS:
            s = min(s, LARGEST)
            _end_of_alarm(clock, now, s, threshold)
        onset[i] = clock[QUIET]
        if policy == RECOVERY:
            s = min(s, threshold)
            statistic[i] = s
            if s >= threshold:
                clock[ACTIVE] = 1
            elif s == 0.0:
                clock[ACTIVE] = 0
            active[i] = clock[ACTIVE] == 1
        else:
            statistic[i] = s
            active[i] = s >= threshold
            if s >= threshold and policy != ENDLESS:
                s = 0.0
                clock[QUIET] = now
                if policy == COOLDOWN:
                    clock[LEFT] = cooldown
    sums[0] = s


@compiled()
def window_sum(
    evidence: Array,
    threshold: float,
    recent: Array,  # (length,): the last evidence values, a ring
    held: Array,  # (hold,): the last sums, a ring
    clock: Integers,  # (5,): NOW, QUIET, unused, ACTIVE, FILLED (rows since the last reset)
    control: Array,  # (15,): see tisat.alarms.control
    statistic: Array,
    active: Flags,
    onset: Integers,
    used: Array,  # (T,): the threshold in force
) -> None:
    """The sum of the last ``length`` values, then its maximum over the last ``hold`` rows."""
    length = len(recent)
    hold = len(held)
    for i in range(len(evidence)):
        now = clock[NOW]
        clock[NOW] = now + 1
        level = threshold_of(control, threshold)
        used[i] = level
        if np.isnan(evidence[i]):
            follow(control, clock[ACTIVE] == 1, False, False, 0.0)
            clock[FILLED] = 0
            clock[ACTIVE] = 0
            clock[QUIET] = now
            statistic[i] = np.nan
            active[i] = False
            onset[i] = now
            continue
        filled = clock[FILLED]
        recent[filled % length] = evidence[i]
        total = 0.0
        for j in range(min(filled + 1, length)):  # summed afresh and in ring order: no drift, no history
            total += recent[j]
        if length > 1 and total <= 0.0:
            clock[QUIET] = now
        held[filled % hold] = total
        highest = total
        for j in range(min(filled + 1, hold)):
            highest = max(highest, held[j])
        clock[FILLED] = filled + 1
        statistic[i] = highest
        active[i] = highest >= level
        follow(control, clock[ACTIVE] == 1, active[i], True, highest)
        _end_of_alarm(clock, now, highest, level)
        onset[i] = clock[QUIET]
        if length == 1 and highest < level:
            onset[i] = now
            clock[QUIET] = now


@compiled()
def first_not_below(ordered: Array, size: int, value: float) -> int:
    """The first position whose value is not below ``value``."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


# Fields of the integer state of one view's reference: scores in the past, scores above the reference in the present excess,
# its rows, rows since its last score above, all known scores, all known scores at the last change of level (0: none is in force)
SEEN, ABOVE, RUN, SINCE, ROWS, CHANGED = 0, 1, 2, 3, 4, 5
BACK = 0.05  # share of scores above the normal level at which that level is taken to be back


@compiled()
def _insert(ordered: Array, size: int, free: int, value: float) -> None:
    """Put ``value`` where it belongs among the first ``size``, giving up the place ``free``: only what lies between moves."""
    new = first_not_below(ordered, size, value)
    while free > new:
        ordered[free] = ordered[free - 1]
        free -= 1
    while free < new - 1:
        ordered[free] = ordered[free + 1]
        free += 1
    ordered[free] = value


@compiled()
def _begin_again(raw: Array, rows: int, lag: int, window: int, past: Array, ordered: Array) -> int:
    """The past becomes the last ``len(raw)`` scores, ``rows`` having been seen; how many of them there is room for."""
    n = min(len(raw), lag + window)
    for j in range(n):
        past[j] = raw[(rows - n + j) % len(raw)]
    size = min(max(n - lag, 0), window)
    for j in range(size):
        _insert(ordered, j, j, past[n - lag - size + j])
    return n


PARTS = 3  # of a change for good: a fault in it that is shorter than one of them leaves one alone


@compiled()
def _new_level(raw: Array, rows: int, quantile: float) -> float:
    """The lowest of the quantiles of the PARTS of the last ``len(raw)`` scores."""
    length = max(len(raw) // PARTS, 1)
    part = np.empty(length)
    lowest = np.inf
    for p in range(PARTS):
        start = rows - len(raw) + min(p * length, len(raw) - length)
        for j in range(length):
            _insert(part, j, j, raw[(start + j) % len(raw)])
        lowest = min(lowest, part[int(np.ceil(quantile * length)) - 1])
    return lowest


@compiled()
def quantile_of(ordered: Array, size: int, whole: int, quantile: float, rest: float) -> float:
    """The quantile of ``whole`` scores: the first ``size`` of ``ordered``, and ``rest`` for each that is not there yet."""
    place = int(np.ceil(quantile * whole)) - 1
    missing = whole - size
    if missing > 0:
        below = first_not_below(ordered, size, rest)
        if place < below:
            return float(ordered[place])
        if place < below + missing:
            return rest
    return float(ordered[place - missing])


@compiled()
def excess(
    views: Array,  # (T, V)
    level: Array,  # (V,)
    centre: Array,  # (V,)
    quantile: float,
    clip: float,
    lag: int,
    warm: int,
    enter: int,
    gap: int,
    windows: Integers,  # (V,): past scores of each view
    gates: Array,  # (V,): units above the centre from which a score of an excess is kept out of the past
    past: Array,  # (V, lag + the largest window): what entered, a ring of lag + windows[v]
    ordered: Array,  # (V, the largest window): what is older than the lag, sorted; as many as there are
    raw: Array,  # (V, lasting): the last scores as they were, a ring
    rest: Array,  # (V,): what a past score that is not there yet counts as: the level, or that of a change for good
    count: Integers,  # (V, 6)
    evidence: Array,  # (T, V)
    reference: Array,  # (T, V)
) -> None:
    """What each view has above max(``level``, rolling quantile of its past), in units of that above its centre.

    Of one excess (scores above the reference, at most ``gap`` rows apart) only the first ``enter`` enter the past as they
    are; of the others those above the view's gate enter as the reference itself. Once it has gone on for ``lasting`` rows, those, cut off at
    their level, are the past; and again once the normal level is back for as long. A past of fewer than ``warm`` scores is
    filled up with ``rest``.
    """
    views_count = views.shape[1]
    lasting = raw.shape[1]
    for i in range(len(views)):
        anything = False
        for v in range(views_count):
            anything = anything or not np.isnan(views[i, v])
        for v in range(views_count):
            score = views[i, v]
            if np.isnan(score):
                evidence[i, v] = 0.0 if anything else np.nan
                reference[i, v] = np.nan
                continue
            window = windows[v]
            capacity = lag + window
            seen = count[v, SEEN]
            size = min(max(seen - lag, 0), window)
            current = max(level[v], quantile_of(ordered[v], size, max(size, min(warm, window)), quantile, rest[v]))
            spread = current - centre[v]
            if spread <= 0.0:
                spread = 1.0
            reference[i, v] = current
            evidence[i, v] = min(max((score - current) / spread, 0.0), LARGEST)
            kept = min(score, centre[v] + clip * spread)
            if score > current:
                if count[v, SINCE] > gap or count[v, ABOVE] == 0:
                    count[v, ABOVE] = 0
                    count[v, RUN] = 0
                count[v, ABOVE] += 1
                count[v, SINCE] = 0
            else:
                count[v, SINCE] += 1
            count[v, RUN] += 1
            if score > current and count[v, ABOVE] > enter and score > centre[v] + gates[v] * spread:
                kept = current
            rows = count[v, ROWS] + 1
            count[v, ROWS] = rows
            raw[v, (rows - 1) % lasting] = min(score, LARGEST)
            if score > current and count[v, RUN] >= lasting:  # this is how it is now
                count[v, SEEN] = _begin_again(raw[v], rows, lag, window, past[v], ordered[v])
                count[v, ABOVE] = 0
                count[v, CHANGED] = rows
                rest[v] = max(level[v], _new_level(raw[v], rows, quantile))
                for j in range(past.shape[1]):
                    past[v, j] = min(past[v, j], rest[v])
                for j in range(ordered.shape[1]):
                    ordered[v, j] = min(ordered[v, j], rest[v])
                continue
            due = count[v, CHANGED] > 0 and (rows - count[v, CHANGED]) % lasting == 0
            above = 0
            for j in range(lasting if due else 0):
                above += raw[v, j] > level[v]
            if due and above <= BACK * lasting:  # and this is how it was
                count[v, SEEN] = _begin_again(raw[v], rows, lag, window, past[v], ordered[v])
                count[v, ABOVE] = 0
                count[v, CHANGED] = 0
                rest[v] = level[v]
                continue
            slot = seen % capacity
            if seen >= lag:  # one more score becomes older than the lag; it replaces the oldest of a full window
                entering = kept if lag == 0 else past[v, (seen - lag) % capacity]
                free = size
                if size == window:
                    free = first_not_below(ordered[v], window, past[v, slot])
                _insert(ordered[v], size, free, entering)
            past[v, slot] = kept
            count[v, SEEN] = seen + 1


@compiled()
def compressed_sum(
    evidence: Array,  # (T, V)
    threshold: float,
    unit: float,
    recent: Array,  # (length, V): the last evidence values, a ring
    held: Array,  # (hold,): the last totals, a ring
    clock: Integers,  # (5,): NOW, QUIET, unused, ACTIVE, FILLED (rows since the last reset)
    control: Array,  # (15,): see tisat.alarms.control
    statistic: Array,
    active: Flags,
    onset: Integers,
    used: Array,  # (T,): the threshold in force
) -> None:
    """Over views, the sum of ``log(1 + S / unit)``, S the sum of a view's last values; its maximum over some rows."""
    length, views_count = recent.shape
    hold = len(held)
    for i in range(len(evidence)):
        now = clock[NOW]
        clock[NOW] = now + 1
        level = threshold_of(control, threshold)
        used[i] = level
        if np.isnan(evidence[i, 0]):
            follow(control, clock[ACTIVE] == 1, False, False, 0.0)
            clock[FILLED] = 0
            clock[ACTIVE] = 0
            clock[QUIET] = now
            statistic[i] = np.nan
            active[i] = False
            onset[i] = now
            continue
        filled = clock[FILLED]
        total = 0.0
        for v in range(views_count):
            recent[filled % length, v] = evidence[i, v]
            summed = 0.0
            for j in range(min(filled + 1, length)):  # summed afresh and in ring order: no drift, no history
                summed += recent[j, v]
            total += np.log1p(summed / unit)
        if total <= 0.0:
            clock[QUIET] = now
        held[filled % hold] = total
        highest = total
        for j in range(min(filled + 1, hold)):
            highest = max(highest, held[j])
        clock[FILLED] = filled + 1
        statistic[i] = highest
        active[i] = highest >= level
        follow(control, clock[ACTIVE] == 1, active[i], True, highest)
        _end_of_alarm(clock, now, highest, level)
        onset[i] = clock[QUIET]


@compiled()
def count_runs(active: Flags) -> int:
    """How many runs of active rows there are."""
    raised = 0
    before = False
    for i in range(len(active)):
        if active[i] and not before:
            raised += 1
        before = active[i]
    return raised


def fresh_clock() -> AnyArray:
    """The integer state of an accumulator that has seen nothing."""
    return np.zeros(5, dtype=np.int64)
