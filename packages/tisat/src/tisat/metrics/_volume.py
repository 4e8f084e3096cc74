"""The integral of VUS over thresholds and buffers, compiled by numba: one pass over the rows near an event for each buffer.

Where none of them becomes active only the false alarms change, and the threshold is passed over. It does not know scores.
"""

from __future__ import annotations

import numpy as np

from tisat.utils.compiled import compiled
from tisat.utils.types import Integers


@compiled()
def integrate(
    rows: Integers, distances: Integers, owners: Integers, gaps: Integers, entered: Integers, counts: Integers,
    n_labels: int, n_rows: int, max_buffer: int, version: int, roc: int,
) -> float:  # fmt: skip
    """The mean over the buffers of the area under the curve: ROC, or precision and recall.

    Parameters
    ----------
    rows, distances, owners : arrays of shape (N,)
        The rows near an event, their distance to it and its number, in the order in which they become active; a row near two events twice in succession.
    gaps : array of shape (E,)
        Rows between each event and the one before.
    entered, counts : arrays of shape (K,)
        At each threshold, how many of the N are active, and how many rows in all.
    n_labels, n_rows, max_buffer : int
    version : 2025 or 2022
    roc : 0 or 1
    """
    halved = version == 2022
    place = 0
    inside, last = np.zeros(rows.size, np.bool_), np.ones(rows.size, np.bool_)
    for i in range(rows.size - 1, -1, -1):  # the last of a row's places stands for all of them
        last[i] = i == rows.size - 1 or rows[i] != rows[i + 1]
        place = i if last[i] else place
        inside[place] |= distances[i] == 0
    near = np.zeros(max_buffer + 1)
    group, seen = np.zeros(gaps.size, np.int64), np.zeros(gaps.size, np.bool_)
    volume = 0.0
    for buffer in range(max_buffer + 1):
        reach = buffer // 2
        for d in range(reach + 1):
            near[d] = np.sqrt(max(1.0 - d / max(buffer, 1), 0.0))
        n_groups = 0
        for e in range(gaps.size):  # 2025: events whose buffers share a row are found together
            n_groups += 1 if halved or gaps[e] >= 2 * reach else 0
            group[e] = n_groups - 1
            seen[e] = False
        positives = float(n_labels)
        soft = 0.0
        if halved:  # half of each buffer counts, predicted or not; in 2025, what is predicted of it
            for i in range(rows.size):
                soft += near[distances[i]]
                if last[i]:
                    positives += min(soft, 1.0)
                    soft = 0.0
            positives /= 2.0
        if roc and counts.size and positives >= n_rows:
            return np.nan
        hits, recall, false, found, i = 0.0, 0.0, 0.0, 0, 0
        for k in range(counts.size):
            was_hits, was_false, was_recall, widened = hits, false, recall, 0.0
            while i < entered[k]:
                if distances[i] <= reach:
                    soft += near[distances[i]]
                    if not seen[group[owners[i]]]:
                        seen[group[owners[i]]] = True
                        found += 1
                if last[i]:
                    hits += min(soft, 1.0)
                    widened += 0.0 if inside[i] else min(soft, 1.0)
                    soft = 0.0
                i += 1
            if hits == was_hits:
                continue
            if roc and k > 0:  # along the thresholds that were passed over
                was_false = (counts[k - 1] - was_hits) / (n_rows - positives)
                volume += recall * (was_false - false)
            positives += 0.0 if halved else widened / 2.0
            if roc and positives >= n_rows:
                return np.nan
            recall = min(hits / positives, 1.0) * found / n_groups
            if roc:
                false = (counts[k] - hits) / (n_rows - positives)
                volume += (false - was_false) * (recall + was_recall) / 2.0
            else:
                volume += (recall - was_recall) * hits / counts[k]
        if roc:
            rest = (counts[-1] - hits) / (n_rows - positives) if counts.size else 0.0
            volume += recall * (rest - false) + (1.0 - rest) * (recall + 1.0) / 2.0
    return volume / (max_buffer + 1)
