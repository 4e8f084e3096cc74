"""VUS of 2025 from its definition, as a loop."""

from __future__ import annotations

import itertools
import math

from naive import Labels, Scores, active, events


def vus_2025(labels: Labels, scores: Scores, max_buffer: int) -> tuple[float, float]:
    """VUS-PR and VUS-ROC as arXiv 2502.13318 defines them: a buffer is a positive where it is predicted; events that meet are one."""
    found = events(labels)
    volumes = [0.0, 0.0]
    for buffer in range(max_buffer + 1):
        reach = buffer // 2
        wide: list[list[int]] = []
        for start, stop in found:
            if wide and start - reach < wide[-1][1]:
                wide[-1][1] = stop + reach
            else:
                wide.append([start - reach, stop + reach])
        soft = []
        for t, label in enumerate(labels):
            beside = [max(start - t, t - stop + 1) for start, stop in found]
            slopes = [math.sqrt(1 - d / buffer) for d in beside if 0 < d <= reach]
            soft.append(1.0 if label else min(sum(slopes), 1.0))
        points, area, before = [(0.0, 0.0)], 0.0, 0.0
        for h in sorted({s for s in scores if not math.isnan(s)}, reverse=True):
            on = active(scores, h)
            positives = [label or (value if a else 0.0) for label, value, a in zip(labels, soft, on, strict=True)]
            hits = sum(value for value, a in zip(positives, on, strict=True) if a)
            number = (sum(labels) + sum(positives)) / 2
            touched = sum(any(on[max(start, 0) : stop]) for start, stop in wide) / len(wide)
            recall = min(hits / number, 1.0) * touched
            area += (recall - before) * hits / sum(on)
            before = recall
            points.append(((sum(on) - hits) / (len(labels) - number) if number < len(labels) else math.nan, recall))
        points.append((1.0, 1.0))
        volumes[0] += area
        volumes[1] += sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(points))
    return volumes[0] / (max_buffer + 1), volumes[1] / (max_buffer + 1)
