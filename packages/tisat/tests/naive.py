"""Reference implementations of the metrics, written from the definitions: loops allowed, tricks forbidden.

Every function visits every distinct score as a threshold and every row one by one. Nothing here imports tisat.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

Labels: TypeAlias = Sequence[Any]  # 0 and 1, or False and True
Scores: TypeAlias = Sequence[float]
Times: TypeAlias = Sequence[float] | None


def events(labels: Labels) -> list[tuple[int, int]]:
    """Maximal runs of ones, half-open."""
    found, start = [], None
    for t, y in enumerate([*labels, 0]):
        if y and start is None:
            start = t
        if not y and start is not None:
            found.append((start, t))
            start = None
    return found


def windows(labels: Labels, delta_max: float, times: Times = None) -> list[list[int]]:
    """For each event the rows of its window: delays 0..delta_max, up to the next onset or the end."""
    found = events(labels)
    result = []
    for i, (onset, _) in enumerate(found):
        end = found[i + 1][0] if i + 1 < len(found) else len(labels)
        clock = (lambda t: t) if times is None else (lambda t: times[t])
        result.append([t for t in range(onset, end) if clock(t) - clock(onset) <= delta_max])
    return result


def active(scores: Scores, threshold: float) -> list[bool]:
    return [not math.isnan(s) and s >= threshold for s in scores]


def raises(on: Labels, delta_max: float, times: Times = None) -> list[int]:
    """The first row of every run, and again whenever delta_max has passed since the last raise of the run."""
    raised, last = [], None
    for t, is_on in enumerate(on):
        if not is_on:
            last = None
        elif last is None or (t - last if times is None else times[t] - times[last]) >= delta_max:
            raised.append(t)
            last = t
    return raised


def count(labels: Labels, on: Labels, raised: Labels, delta_max: float, times: Times = None) -> Any:
    """(delays, detected, false alarms) of one series."""
    delays, detected = [], 0
    covered = {t for t, y in enumerate(labels) if y}
    for window in windows(labels, delta_max, times):
        covered.update(window)
        hits = [t for t in window if on[t]]
        if hits:
            detected += 1
            delays.append(hits[0] - window[0] if times is None else times[hits[0]] - times[window[0]])
        else:
            delays.append(delta_max)
    return delays, detected, [t for t in raised if t not in covered]


def count_instances(labels: Labels, on: Labels, delta_max: float, times: Times = None) -> Any:
    inside = {t for window in windows(labels, delta_max, times) for t in window}
    alarms = [t for t in range(len(labels)) if on[t]]
    hits = [t for t in alarms if t in inside]
    return len(hits), len(alarms) - len(hits)


def curve(
    many_labels: Sequence[Labels],
    many_scores: Sequence[Scores],
    delta_max: float,
    counting: str = "event",
    many_times: Any = None,
) -> Any:
    """[(threshold, NADD, TP, FP)] at every distinct score, descending, pooled over the series."""
    many_times = many_times or [None] * len(many_labels)
    thresholds = sorted({s for scores in many_scores for s in scores if not math.isnan(s)}, reverse=True)
    points = []
    for h in thresholds:
        delays, tp, fp = [], 0, 0
        for labels, scores, times in zip(many_labels, many_scores, many_times, strict=True):
            on = active(scores, h)
            some, detected, false = count(labels, on, raises(on, delta_max, times), delta_max, times)
            delays += some
            if counting == "instance":
                hits, misses = count_instances(labels, on, delta_max, times)
                tp, fp = tp + hits, fp + misses
            else:
                tp, fp = tp + detected, fp + len(false)
        nadd = sum(delays) / len(delays) / delta_max if delays else math.nan
        points.append((h, nadd, tp, fp))
    return points


def area(points: Any) -> float:
    """sum (NADD_{n-1} - NADD_n) precision_n from NADD_0 = 1; a point that does not lower NADD adds nothing."""
    total, before = 0.0, 1.0
    for _, nadd, tp, fp in points:
        if math.isnan(nadd):
            return math.nan
        if nadd < before:
            total += (before - nadd) * tp / (tp + fp)
            before = nadd
    return total


def spd(
    many_labels: Sequence[Labels],
    many_scores: Sequence[Scores],
    delta_max: float,
    counting: str = "event",
    many_times: Any = None,
) -> float:
    if not any(1 in list(labels) for labels in many_labels):
        return math.nan
    return area(curve(many_labels, many_scores, delta_max, counting, many_times))


def instance_counts(labels: Labels, on: Labels) -> Any:
    """TP, FP, FN on rows."""
    tp = sum(1 for y, a in zip(labels, on, strict=True) if y and a)
    fp = sum(1 for y, a in zip(labels, on, strict=True) if not y and a)
    return tp, fp, sum(labels) - tp


def adjust(labels: Labels, on: Labels, k: float = 0.0) -> list[bool]:
    """Point adjustment: an event more than k percent of which is active becomes active throughout."""
    adjusted = list(on)
    for start, stop in events(labels):
        if 100 * sum(on[start:stop]) > k * (stop - start) + 1e-7:
            adjusted[start:stop] = [True] * (stop - start)
    return adjusted


def f1(tp: float, fp: float, fn: float) -> float:
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else math.nan


def best_f1(many_labels: Sequence[Labels], many_scores: Sequence[Scores], adjusting: Any = None) -> Any:
    """The best F1 over every distinct score, pooled; ``adjusting`` is the K of PA%K or None."""
    best = 0.0 if any(sum(labels) for labels in many_labels) else math.nan
    for h in sorted({s for scores in many_scores for s in scores if not math.isnan(s)}, reverse=True):
        total = [0, 0, 0]
        for labels, scores in zip(many_labels, many_scores, strict=True):
            on = active(scores, h)
            if adjusting is not None:
                on = adjust(labels, on, adjusting)
            total = [a + b for a, b in zip(total, instance_counts(labels, on), strict=True)]
        value = f1(*total)
        if not math.isnan(best) and value > best:
            best = value
    return best


def best_event_f1(many_labels: Sequence[Labels], many_scores: Sequence[Scores], delta_max: float) -> float:
    n_events = sum(len(events(labels)) for labels in many_labels)
    if not n_events:
        return math.nan
    return max(
        (2 * tp / (n_events + tp + fp) for _, _, tp, fp in curve(many_labels, many_scores, delta_max)), default=0.0
    )


def _position_weight(i: int, length: int, bias: str) -> float:
    """delta(i, length) of Tatbul et al., i from 1."""
    if bias == "flat":
        return 1
    if bias == "front":
        return length - i + 1
    if bias == "back":
        return i
    return i if i <= length / 2 else length - i + 1


def _range_reward(one: Any, others: Any, bias: str, cardinality: str) -> tuple[float, bool]:
    start, stop = one
    length = stop - start
    whole = sum(_position_weight(i, length, bias) for i in range(1, length + 1))
    overlaps, part = 0, 0.0
    for left, right in others:
        common = [t for t in range(start, stop) if left <= t < right]
        overlaps += bool(common)
        part += sum(_position_weight(t - start + 1, length, bias) for t in common)
    factor = 1 / overlaps if overlaps > 1 and cardinality == "reciprocal" else 1
    return factor * part / whole, overlaps > 0


def range_precision_recall(labels: Labels, on: Labels, existence: float, cardinality: str, bias: str) -> Any:
    real, predicted = events(labels), events(on)
    precision = [_range_reward(p, real, "flat", cardinality)[0] for p in predicted]
    recall = []
    for r in real:
        reward, touched = _range_reward(r, predicted, bias, cardinality)
        recall.append(existence * touched + (1 - existence) * reward)
    return tuple(sum(values) / len(values) if values else math.nan for values in (precision, recall))


def affiliation(labels: Labels, on: Labels, grid: int = 200) -> Any:
    """Affiliation precision and recall by sums over a fine grid instead of integrals; good to about 1 / grid."""
    found = events(labels)
    edges = [0.0] + [(found[i][1] + found[i + 1][0]) / 2 for i in range(len(found) - 1)] + [float(len(labels))]
    precisions, recalls = [], []
    step = 1 / grid
    for (a, b), low, high in zip(found, edges[:-1], edges[1:], strict=True):
        points = [low + (i + 0.5) * step for i in range(round((high - low) / step))]

        def to_event(x: float, a: float = a, b: float = b) -> float:
            return max(a - x, x - b, 0)

        distances = sorted(to_event(x) for x in points)
        alarms = [x for x in points if on[int(x)]]
        if not alarms:
            recalls.append(0.0)
            continue

        def at_least(d: float, distances: list[float] = distances) -> float:
            return sum(1 for e in distances if e >= d - 1e-9) / len(distances)

        thin = slice(grid // 16, None, max(grid // 8, 1))  # the middles of eighths: from their left ends would lean
        precisions.append(sum(at_least(to_event(x)) for x in alarms[thin]) / len(alarms[thin]))
        inside = [x for x in points if a <= x <= b][thin]
        total = 0.0
        for y in inside:
            nearest = min(abs(x - y) for x in alarms)
            total += sum(1 for x in points if abs(x - y) >= nearest - 1e-9) / len(points)
        recalls.append(total / len(inside))
    return (sum(precisions) / len(precisions) if precisions else math.nan), sum(recalls) / len(recalls)


def vus_pr(labels: Labels, scores: Scores, max_buffer: int) -> float:
    """VUS-PR over every distinct score, one buffer at a time."""
    found = events(labels)
    total = 0.0
    for buffer in range(max_buffer + 1):
        reach = buffer // 2
        soft = [0.0] * len(labels)
        for start, stop in found:
            for t in range(len(labels)):
                distance = max(start - t, t - stop + 1, 0)
                if distance == 0:
                    soft[t] += 1.0
                elif distance <= reach:
                    soft[t] += math.sqrt(1 - distance / buffer)
        soft = [min(value, 1.0) for value in soft]
        positives = (sum(labels) + sum(soft)) / 2
        before = 0.0
        for h in sorted({s for s in scores if not math.isnan(s)}, reverse=True):
            on = active(scores, h)
            hits = sum(value for value, a in zip(soft, on, strict=True) if a)
            touched = sum(any(on[max(start - reach, 0) : stop + reach]) for start, stop in found) / len(found)
            recall = min(hits / positives, 1.0) * touched
            total += (recall - before) * hits / sum(on)
            before = recall
    return total / (max_buffer + 1)


def vus_roc(labels: Labels, scores: Scores, max_buffer: int) -> float:
    """VUS-ROC over every distinct score, one buffer at a time, by trapezoids."""
    found = events(labels)
    total = 0.0
    for buffer in range(max_buffer + 1):
        reach = buffer // 2
        soft = [0.0] * len(labels)
        for start, stop in found:
            for t in range(len(labels)):
                distance = max(start - t, t - stop + 1, 0)
                if distance == 0:
                    soft[t] += 1.0
                elif distance <= reach:
                    soft[t] += math.sqrt(1 - distance / buffer)
        soft = [min(value, 1.0) for value in soft]
        positives = (sum(labels) + sum(soft)) / 2
        points = [(0.0, 0.0)]
        for h in sorted({s for s in scores if not math.isnan(s)}, reverse=True):
            on = active(scores, h)
            hits = sum(value for value, a in zip(soft, on, strict=True) if a)
            touched = sum(any(on[max(start - reach, 0) : stop + reach]) for start, stop in found) / len(found)
            points.append(((sum(on) - hits) / (len(labels) - positives), min(hits / positives, 1.0) * touched))
        points.append((1.0, 1.0))
        total += sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(points))
    return total / (max_buffer + 1)


def pate(labels: Labels, scores: Scores, max_buffer: int) -> float:
    """PATE, threshold by threshold and row by row, as the paper words it."""
    found = events(labels)
    areas = []
    for early in sorted({0, max_buffer}):
        for late in sorted({0, max_buffer}):
            points = [(0.0, 1.0)]
            for h in sorted({s for s in scores if not math.isnan(s)}, reverse=True):
                on = active(scores, h)
                true = false = missed = 0.0
                place = {}  # row -> how true an alarm is there
                free = 0
                for i, (start, stop) in enumerate(found):
                    after = found[i + 1][0] if i + 1 < len(found) else len(labels)
                    end = min(stop + late, after)
                    first = max(free, start - early)
                    hit = any(on[start:stop])
                    inside = range(start, stop)
                    for x in range(first, start):
                        most = sum(abs(y - first) for y in inside)
                        place[x] = 1 - sum(abs(y - x) for y in inside) / most if hit else 0.0
                    for x in inside:
                        place[x] = 1.0
                    for x in range(stop, end):
                        most = sum(abs(end - 1 - y) for y in inside)
                        place[x] = 1 - sum(abs(x - y) for y in inside) / most
                    free = end
                    if not hit:
                        missed += stop - start
                        continue
                    run = 0  # the length of the first stretch of alarms in the event
                    t = next(x for x in inside if on[x])
                    while t < stop and on[t]:
                        run, t = run + 1, t + 1
                    for x in inside:
                        if not on[x]:
                            if x <= start + run:
                                missed += 1
                            else:
                                most = sum(stop - 1 - y for y in inside)
                                missed += 1 - sum(x - y for y in range(start, start + run + 1)) / most
                for t, a in enumerate(on):
                    if a:
                        true += place.get(t, 0.0)
                        false += 1 - place.get(t, 0.0)
                point = (true / (true + missed), true / (true + false))
                if point[0] >= points[-1][0] - 1e-12:
                    points.append(point)
            areas.append(sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(points)))
    return sum(areas) / len(areas)


def nab(labels: Labels, scores: Scores, threshold: float, false: float = 0.11, missed: float = 1.0) -> float:
    """The NAB score at a threshold: windows one by one, then every row outside them."""

    def worth(x: float) -> float:
        return -1.0 if x > 3 else 2 / (1 + math.exp(5 * x)) - 1

    on, found, raw = active(scores, threshold), events(labels), 0.0
    for start, stop in found:
        hits = [t for t in range(start, stop) if on[t]]
        raw += worth(-(stop - hits[0]) / (stop - start)) / worth(-1.0) if hits else -missed
    for t, a in enumerate(on):
        if a and not labels[t]:
            before = [(start, stop) for start, stop in found if stop <= t]
            raw += false * (
                worth((t - before[-1][1] + 1) / max(before[-1][1] - before[-1][0] - 1, 1)) if before else -1.0
            )
    null = -missed * len(found)
    return (raw - null) / (len(found) - null)


def expected_false_alarms(labels: Labels, delta_max: float, p: float, times: Times = None) -> float:
    """E[FP] of independent alarms with probability p, by summing over where a run began and where it is raised again."""
    covered = {t for t, y in enumerate(labels) if y} | {
        t for window in windows(labels, delta_max, times) for t in window
    }
    total = 0.0
    for start in range(len(labels)):
        on_for_ever = [False] * start + [True] * (len(labels) - start)
        for t in raises(on_for_ever, delta_max, times):
            if t not in covered:
                total += p ** (t - start + 1) * (1 - p if start > 0 else 1)
    return total
