"""The measure of TSB-AD: VUS-PR of 2025 with 250 thresholds, the buffer by the autocorrelation of the first channel.

Scores made elsewhere come from a folder with one file for each series, ``NAME.npy``, ``NAME.npz`` (array ``scores``) or ``NAME.csv``
(one number a row, a header or none), NAME as in the list of TSB-AD without ``.csv``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tisat.errors import DataFileError
from tisat.io.compression import open_numpy
from tisat.metrics import vus_pr
from tisat.utils.types import Array, Flags

THRESHOLDS = 250
LAGS, LOOKED_AT, SHORTEST, LONGEST, OTHERWISE = 400, 20_000, 3, 300, 125


def window_of(values: Array) -> int:
    """The buffer of a series ``(T, C)``: the lag of the highest peak of its first channel's autocorrelation, else 125.

    Examples
    --------
    >>> window_of(np.sin(np.arange(3000) * 2 * np.pi / 50)[:, None])
    50
    """
    channel = values[:LOOKED_AT, 0] - values[:LOOKED_AT, 0].mean()
    power = np.fft.rfft(channel, 2 * len(channel))
    echo = np.fft.irfft(power * np.conj(power))[: min(LAGS + 1, len(channel))]
    if not echo[0] > 0:
        return OTHERWISE
    echo = (echo / echo[0])[SHORTEST:]
    peaks = np.flatnonzero((echo[1:-1] > echo[:-2]) & (echo[1:-1] > echo[2:])) + 1
    if not len(peaks):
        return OTHERWISE
    highest = int(peaks[np.argmax(echo[peaks])])
    return highest + SHORTEST if SHORTEST <= highest <= LONGEST else OTHERWISE


def vus_of(values: Array, labels: Flags, scores: Array) -> float:
    """VUS-PR of the scores of a whole series, as TSB-AD reports it.

    Rows without a score have the lowest.
    """
    known = np.isfinite(scores)
    if not known.any():
        return float("nan")
    filled = np.where(known, scores, scores[known].min())
    return float(vus_pr(labels, filled, max_buffer=window_of(values), version="2025", thresholds=THRESHOLDS))


def file_of_scores(folder: Path, stem: str) -> Path | None:
    """The file of a series in a folder of scores; None where there is none."""
    return next(
        (file for ending in (".npy", ".npz", ".csv") if (file := folder / f"{stem}{ending}").is_file()),
        None,
    )


def read_scores(file: Path, *, rows: int) -> Array:
    """Read the scores of one series, one for each row.

    Raises
    ------
    DataFileError
        Where they are not as many as the series has rows, or none is a number.
    """
    if file.suffix == ".csv":
        lines = file.read_text(encoding="utf-8").split()
        try:
            scores = np.array([float(cell) for cell in lines[len(lines) > rows :]])
        except ValueError:
            raise DataFileError(f"The file {str(file)!r} must hold one number in each row.") from None
    else:
        with open_numpy(file, "hold an array of scores") as held:
            if file.suffix == ".npz" and "scores" not in held.files:
                raise DataFileError(f"The file {str(file)!r} must hold the array 'scores'. It does not.")
            scores = np.asarray(held["scores"] if file.suffix == ".npz" else held, dtype=np.float64)
    if scores.shape != (rows,) or not np.isfinite(scores).any():
        raise DataFileError(
            f"The file {str(file)!r} must hold {rows} scores, one for each row. Got shape {scores.shape} instead."
        )
    return scores
