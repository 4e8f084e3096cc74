"""Windows as views, and validation as the tail of the training split.

Nothing here copies values, shuffles rows or looks at labels.
"""

from __future__ import annotations

import numpy as np

from tisat.errors import ParameterError, SeriesError
from tisat.series import Series, SeriesLike, as_series
from tisat.utils.types import AnyFloats
from tisat.utils.validation import check_integer, check_real


def windows(series: SeriesLike, *, length: int, step: int = 1) -> AnyFloats:
    """All windows of ``length`` consecutive rows, as a read-only view that shares the series' memory.

    Parameters
    ----------
    series : Series, array, dataframe or path
        Rows in the order of time.
    length : int >= 1
        Rows of a window.
    step : int >= 1
        Rows from one window's start to the next.

    Returns
    -------
    windows : array of shape (n, length, C), n = (T - length) // step + 1

    Examples
    --------
    >>> windows([1.0, 2.0, 3.0, 4.0], length=2, step=2)[:, :, 0].tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    checked = as_series(series, whose="windows")
    length = check_integer(length, "length", "windows", minimum=1)
    step = check_integer(step, "step", "windows", minimum=1)
    if length > len(checked):
        raise SeriesError(f"The series given to windows must have at least {length} rows. Got {len(checked)} instead.")
    view = np.lib.stride_tricks.sliding_window_view(checked.values, length, axis=0)  # (n, C, length)
    return view[::step].transpose(0, 2, 1)


def split_tail(series: SeriesLike, *, share: float | None = None, rows: int | None = None) -> tuple[Series, Series]:
    """Head and tail of a training series: fit on the first, validate on the second.

    Parameters
    ----------
    series : Series, array, dataframe or path
        Rows in the order of time.
    share : float in (0, 1), optional
        The tail's share of the rows; 0.2 where neither is given.
    rows : int >= 1, optional
        The tail's length instead.

    Returns
    -------
    tuple[Series, Series]
        The head and the tail.

    Examples
    --------
    >>> head, tail = split_tail([1.0, 2.0, 3.0, 4.0, 5.0], share=0.4)
    >>> len(head), tail.values.ravel().tolist()
    (3, [4.0, 5.0])
    """
    checked = as_series(series, whose="split_tail")
    if share is not None and rows is not None:
        raise ParameterError("The 'share' and 'rows' parameters of split_tail must not both be given.")
    if rows is None:
        share = check_real(0.2 if share is None else share, "share", "split_tail", above=0, below=1)
        rows = round(len(checked) * share)
    rows = check_integer(rows, "rows", "split_tail", minimum=1, maximum=len(checked) - 1)
    return checked[: len(checked) - rows], checked[len(checked) - rows :]
