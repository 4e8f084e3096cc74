"""Scores that were computed elsewhere: a folder with one file an entity, read as if a detector had made them.

``scores/machine-1-1.npz`` holds the arrays ``scores``, one for each row of the test series, higher = more anomalous, and ``normal``, scores of normal rows (of
the training series, say), from which alarm rules learn what is usual. ``scores/<data set>/<entity>.npz`` is looked at first. This module knows no detector.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from tisat.errors import DataFileError
from tisat.io.compression import open_numpy
from tisat.utils.types import Array


def file_of(folder: str, dataset: str, entity: str) -> Path:
    """The file of an entity; a name that leads out of the folder is refused."""
    root = Path(folder).resolve()
    for file in (root / dataset / f"{entity}.npz", root / f"{entity}.npz"):
        if file.is_file() and file.resolve().is_relative_to(root):
            return file
    raise DataFileError(
        f"The folder of scores {folder!r} must hold '{entity}.npz', or it in a folder {dataset!r}. There is none."
    )


def checksum(folder: str, dataset: str, entity: str) -> str:
    """Checksum of external scores."""
    return hashlib.sha256(file_of(folder, dataset, entity).read_bytes()).hexdigest()[:16]


def read_given(folder: str, dataset: str, entity: str, *, length: int) -> tuple[Array, Array]:
    """The scores of an entity's test rows, and its normal ones."""
    file = file_of(folder, dataset, entity)
    with open_numpy(file, "be a whole .npz file of numbers") as arrays:
        if not {"scores", "normal"} <= set(getattr(arrays, "files", ())):
            raise DataFileError(f"The file {str(file)!r} must hold the arrays scores and normal. It does not.")
        found = {name: np.asarray(arrays[name], dtype=np.float64) for name in ("scores", "normal")}
    scores, normal = found["scores"], found["normal"]
    normal = normal[~np.isnan(normal)] if normal.ndim == 1 else normal
    if scores.shape != (length,) or normal.ndim != 1 or len(normal) < 2:
        raise DataFileError(
            f"The file {str(file)!r} must hold {length} scores and some normal ones. Got shapes {scores.shape} and {normal.shape} instead."
        )
    if np.isinf(scores).any() or np.isinf(normal).any() or np.isnan(scores).all():
        raise DataFileError(
            f"The scores of {str(file)!r} must be finite numbers, NaN only while warming up. They are not."
        )
    return scores, normal
