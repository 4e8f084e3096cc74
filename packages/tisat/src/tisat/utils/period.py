"""The period of a series, by its autocorrelation.

Nothing here knows what the period is for.
"""

from __future__ import annotations

import numpy as np

from tisat.utils.types import Array

LONGEST, SHORTEST, OTHERWISE = 300, 3, 125  # rows of a period that is looked for, and what is given where none is found
LOOKED_AT = 20_000  # rows the period is found in


def own_period(values: Array) -> int:
    """The period of a series ``(T, C)`` in rows: where the autocorrelation of its first moving channel peaks; 125 where nowhere.

    Examples
    --------
    >>> own_period(np.sin(np.arange(2000) * 2 * np.pi / 40)[:, None])
    40
    """
    moving = [c for c in range(values.shape[1]) if np.ptp(values[:LOOKED_AT, c]) > 0]
    if not moving:
        return OTHERWISE
    looked_at = np.asarray(values[:LOOKED_AT, moving[0]], dtype=np.float64)
    looked_at = np.ldexp(
        looked_at, -int(np.frexp(np.abs(looked_at).max())[1])
    )  # squares of 1e300 would overflow; exact
    channel = looked_at - looked_at.mean()
    spectrum = np.fft.rfft(channel, 2 * len(channel))
    echo = np.fft.irfft(spectrum * np.conj(spectrum))[: LONGEST + 2]
    inner = echo[1:-1]
    peaks = np.flatnonzero((inner > echo[:-2]) & (inner >= echo[2:])) + 1
    peaks = peaks[(peaks > SHORTEST) & (echo[peaks] > 0.0)]
    return int(peaks[np.argmax(echo[peaks])]) if len(peaks) else OTHERWISE
