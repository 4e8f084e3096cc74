"""One series in several files: the same channels, and times that follow each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from tisat.errors import SeriesError
from tisat.io.columns import listed
from tisat.series import Series

SAME_PACE = 0.1  # share by which sampling periods may differ


def join_consecutive(series: Sequence[Series]) -> Series | None:
    """Join series that follow each other in time to one; None where they do not.

    Parameters
    ----------
    series : sequence of Series
        Each of a file of its own.

    Examples
    --------
    >>> early, late = (Series(np.zeros((3, 1)), timestamps=[at, at + 1.0, at + 2.0], name=str(at)) for at in (1, 9))
    >>> join_consecutive([late, early]).name, join_consecutive([early, early])
    ('1, 9', None)
    """
    if len(series) < 2 or any(one.timestamps is None or one.period is None for one in series):
        return None
    kinds = {
        (frozenset(one.channels), one.timestamps.dtype.kind, one.offsets is None)
        for one in series
        if one.timestamps is not None
    }
    periods = [one.period for one in series if one.period is not None]
    if len(kinds) > 1 or max(periods) > (1.0 + SAME_PACE) * min(periods):
        return None
    order = sorted(series, key=lambda one: _edge(one, 0))
    if any(_edge(after, 0) <= _edge(before, -1) for before, after in pairwise(order)):
        return None
    try:
        parts = [one.in_order(order[0].channels, whose="fit") for one in order]
    except SeriesError:
        return None
    stamps = [one.timestamps for one in parts if one.timestamps is not None]
    offsets = [one.offsets for one in parts if one.offsets is not None]
    labels = [np.zeros(len(one), dtype=np.bool_) if one.labels is None else one.labels for one in parts]
    return Series(
        np.concatenate([one.values for one in parts]), timestamps=np.concatenate(stamps), channels=parts[0].channels,
        labels=None if all(one.labels is None for one in parts) else np.concatenate(labels), name=", ".join(one.name for one in parts),
        offsets=np.concatenate(offsets) if offsets else None, notes=tuple(dict.fromkeys(_notes(parts))),
        seen={name: text for one in parts for name, text in one.seen.items()},
    )  # fmt: skip


def joined_note(names: Sequence[str], *, unlike: bool) -> str:
    """The sentence about files that were taken for one series."""
    doubt = " Their rows are unlike each other." if unlike else ""
    return f"{listed(list(names))} follow each other in time: taken for one series in {len(names)} files.{doubt} If they are different machines: --each."


def in_turn(spans: Iterable[tuple[float, float]]) -> bool:
    """Whether several spans of time, first and last, follow each other.

    Examples
    --------
    >>> in_turn([(8.0, 14.0), (0.0, 7.0)]), in_turn([(0.0, 7.0), (5.0, 14.0)])
    (True, False)
    """
    order = sorted(spans)
    return len(order) > 1 and all(after[0] > before[1] for before, after in pairwise(order))


def _edge(series: Series, row: int) -> float:
    assert series.timestamps is not None
    stamp = series.timestamps[row]
    return float(stamp.astype(np.int64)) if series.timestamps.dtype.kind == "M" else float(stamp)


def _notes(parts: Iterable[Series]) -> list[str]:
    return [note for one in parts for note in one.notes]
