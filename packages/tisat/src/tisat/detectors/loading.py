"""Read a fitted detector from a file."""

from __future__ import annotations

from pathlib import Path

from tisat.detectors.base import Detector
from tisat.persistence import estimator


def load(path: str | Path) -> Detector:
    """Read any fitted detector from its file, or from that of a watch.

    Parameters
    ----------
    path : str or Path
        A file written by ``save``.

    Returns
    -------
    Detector
        Fitted, of the class that was saved.

    Examples
    --------
    >>> import tempfile, tisat
    >>> file = tempfile.mkdtemp() + "/model.tisat"
    >>> tisat.registry.resolve("random-guess")(random_state=1).fit([[0.0], [1.0], [2.0]]).save(file)
    >>> load(file)
    RandomGuess(random_state=1)
    """
    return estimator.load(path)
