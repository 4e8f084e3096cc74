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
    """Mark the row at which an alarm ends as the earliest onset of the next one."""
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
    """``s_t = max(s_{t-1} + D_t, 0)`` with a policy for what ends an alarm.

    Fills statistic, active and onset.
    """
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
def _first_above(ordered: Array, size: int, value: float) -> int:
    """The first position whose value is above ``value``."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled()
def _insert(ordered: Array, size: int, free: int, value: float) -> None:
    """Put ``value`` where it belongs among the first ``size``, giving up the place ``free``: only what lies between moves."""
    new = _first_above(ordered, size, value)
    while free > new:
        ordered[free] = ordered[free - 1]
        free -= 1
    while free < new - 1:
        ordered[free] = ordered[free + 1]
        free += 1
    ordered[free] = value


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


# What :func:`excess` stopped for: nothing is left, an excess has gone on for good, the normal level may be back.
DONE, LASTED, DUE = 0, 1, 2


@compiled()
def excess(
    views: Array,  # (T, V)
    start: int,  # the first entry of views, counted row by row
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
) -> int:
    """Measure each view above max(``level``, rolling quantile of its past).

    Of one excess (scores above the reference, at most ``gap`` rows apart) only the first ``enter`` enter the past as they
    are; of the others those above the view's gate enter as the reference itself. A past of fewer than ``warm`` scores is filled up
    with ``rest``. Where the past of a view may have to begin again the caller does it, which is rare: the entry to go on from and why
    it stopped there are returned as one number, ``3 * entry + why``.
    """
    n, lasting = views.shape[1], raw.shape[1]
    for entry in range(start, views.size):
        i = entry // n
        v = entry - i * n
        score = views[i, v]
        if np.isnan(score):
            evidence[i, v] = np.nan
            reference[i, v] = np.nan
            for other in range(n):
                if not np.isnan(views[i, other]):
                    evidence[i, v] = 0.0
            continue
        window = windows[v]
        rows_seen = count[v, SEEN]
        size = min(max(rows_seen - lag, 0), window)
        current = max(level[v], quantile_of(ordered[v], size, max(size, min(warm, window)), quantile, rest[v]))
        spread = current - centre[v]
        if spread <= 0.0:
            spread = 1.0
        reference[i, v] = current
        evidence[i, v] = min(max((score - current) / spread, 0.0), LARGEST)
        clipped = min(score, centre[v] + clip * spread)
        above = score > current
        if above:
            if count[v, SINCE] > gap or count[v, ABOVE] == 0:
                count[v, ABOVE] = 0
                count[v, RUN] = 0
            count[v, ABOVE] += 1
            count[v, SINCE] = 0
        else:
            count[v, SINCE] += 1
        count[v, RUN] += 1
        if above and count[v, ABOVE] > enter and score > centre[v] + gates[v] * spread:
            clipped = current
        clipped = max(
            clipped, level[v]
        )  # no reference is below the level: lower scores count alike, and none moves another
        rows = count[v, ROWS] + 1
        count[v, ROWS] = rows
        raw[v, (rows - 1) % lasting] = min(score, LARGEST)
        if above and count[v, RUN] >= lasting:
            return 3 * (entry + 1) + LASTED
        if count[v, CHANGED] > 0 and (rows - count[v, CHANGED]) % lasting == 0:
            known = 0
            for j in range(lasting):
                known += raw[v, j] > level[v]
            if known <= BACK * lasting:
                return 3 * (entry + 1) + DUE
        capacity = lag + window
        slot = rows_seen % capacity
        if rows_seen >= lag:  # one more score becomes older than the lag; it replaces the oldest of a full window
            entering = clipped if lag == 0 else past[v, (rows_seen - lag) % capacity]
            free = size
            if size == window:
                free = max(_first_above(ordered[v], window, past[v, slot]) - 1, 0)
            _insert(ordered[v], size, free, entering)
        past[v, slot] = clipped
        count[v, SEEN] = rows_seen + 1
    return 3 * views.size + DONE


@compiled()
def window_sum(
    evidence: Array,  # (T, V)
    threshold: float,
    unit: float,  # of the logarithmic scale; 0: the sum itself
    recent: Array,  # (length, V): the last evidence values, a ring
    held: Array,  # (hold,): the last totals, a ring
    clock: Integers,  # (5,): NOW, QUIET, unused, ACTIVE, FILLED (rows since the last reset)
    control: Array,  # (15,): see tisat.alarms.control
    statistic: Array,
    active: Flags,
    onset: Integers,
    used: Array,  # (T,): the threshold in force
) -> None:
    """Sum S of the last ``length`` values or, over views, of ``log(1 + S / unit)``.

    Then its maximum over ``hold`` rows.
    """
    length, views_count = recent.shape
    hold = len(held)
    alone = unit == 0.0 and length == 1  # a row by itself: what is below the threshold is quiet
    for i in range(len(evidence)):
        now = clock[NOW]
        clock[NOW] = now + 1
        level = threshold_of(control, threshold)
        used[i] = level
        valid = not np.isnan(evidence[i, 0])
        if not valid:
            active[i] = False
            follow(control, clock[ACTIVE] == 1, active[i], valid, 0.0)
            clock[FILLED] = 0
            clock[ACTIVE] = 0
            clock[QUIET] = now
            statistic[i] = np.nan
            onset[i] = now
            continue
        filled = clock[FILLED]
        total = 0.0
        for v in range(views_count):
            recent[filled % length, v] = evidence[i, v]
            summed = 0.0
            for j in range(min(filled + 1, length)):  # summed afresh and in ring order: no drift, no history
                summed += recent[j, v]
            total += summed if unit == 0.0 else np.log1p(summed / unit)
        if total <= 0.0 and not alone:
            clock[QUIET] = now
        held[filled % hold] = total
        highest = total
        for j in range(min(filled + 1, hold)):
            highest = max(highest, held[j])
        clock[FILLED] = filled + 1
        statistic[i] = highest
        active[i] = highest >= level
        follow(control, clock[ACTIVE] == 1, active[i], valid, highest)
        _end_of_alarm(clock, now, highest, level)
        if alone and highest < level:
            clock[QUIET] = now
        onset[i] = clock[QUIET]


@compiled()
def count_runs(active: Flags) -> int:
    """How many runs of active rows there are."""
    count = 0
    before = False
    for i in range(len(active)):
        if active[i] and not before:
            count += 1
        before = active[i]
    return count


def fresh_clock() -> AnyArray:
    """The integer state of an accumulator that has seen nothing."""
    return np.zeros(5, dtype=np.int64)
