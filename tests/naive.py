"""Slow twins of the metrics, written from the definitions: loops allowed, tricks forbidden.

Every function visits every distinct score as a threshold and every instant one by one. Nothing here imports tisat.
"""

from __future__ import annotations

import math


def events(labels):
    """Maximal runs of ones, half-open."""
    found, start = [], None
    for t, y in enumerate([*labels, 0]):
        if y and start is None:
            start = t
        if not y and start is not None:
            found.append((start, t))
            start = None
    return found


def windows(labels, delta_max, times=None):
    """For each event the instants of its window: delays 0..delta_max, up to the next onset or the end."""
    found = events(labels)
    result = []
    for i, (onset, _) in enumerate(found):
        end = found[i + 1][0] if i + 1 < len(found) else len(labels)
        clock = (lambda t: t) if times is None else (lambda t: times[t])
        result.append([t for t in range(onset, end) if clock(t) - clock(onset) <= delta_max])
    return result


def active(scores, threshold):
    return [not math.isnan(s) and s >= threshold for s in scores]


def raises(on, delta_max, times=None):
    """The first instant of every run, and again whenever delta_max has passed since the last raise of the run."""
    raised, last = [], None
    for t, is_on in enumerate(on):
        if not is_on:
            last = None
        elif last is None or (t - last if times is None else times[t] - times[last]) >= delta_max:
            raised.append(t)
            last = t
    return raised


def count(labels, on, raised, delta_max, times=None):
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


def count_instances(labels, on, delta_max, times=None):
    inside = {t for window in windows(labels, delta_max, times) for t in window}
    alarms = [t for t in range(len(labels)) if on[t]]
    hits = [t for t in alarms if t in inside]
    return len(hits), len(alarms) - len(hits)


def curve(many_labels, many_scores, delta_max, counting="event", many_times=None):
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


def area(points):
    """sum (NADD_{n-1} - NADD_n) precision_n from NADD_0 = 1; a point that does not lower NADD adds nothing."""
    total, before = 0.0, 1.0
    for _, nadd, tp, fp in points:
        if math.isnan(nadd):
            return math.nan
        if nadd < before:
            total += (before - nadd) * tp / (tp + fp)
            before = nadd
    return total


def spd(many_labels, many_scores, delta_max, counting="event", many_times=None):
    if not any(1 in list(labels) for labels in many_labels):
        return math.nan
    return area(curve(many_labels, many_scores, delta_max, counting, many_times))
