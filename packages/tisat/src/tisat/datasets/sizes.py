"""Sentences about the number of rows, for ``look``, ``suggest`` and ``fit``."""

from __future__ import annotations

from pathlib import Path

FEW_ROWS = 500  # below it a detector with little to learn is proposed
FOR_FEW = "ewma"
LEAST_ROWS = 41  # from which on that one can be fitted: below, fewer than 8 scores are left to find a threshold from
LEAST_CUT, LEAST_CUT_FOR_DEFAULT = 70, 330  # about, where rows are cut into blocks: ewma, prism
LEAST_FOR_DEFAULT = 127  # rows from which on prism can be fitted: 102 to learn from, beside the fifth held out
# What fitting the default takes at its peak: measured 0.60 GB of 1M x 2, 0.61 of 200k x 20, 1.22 of 100k x 100, 2.79 of 5M x 5.
BYTES, BYTES_PER_VALUE = 0.35e9, 100
WORTH_SAYING = 1e9  # bytes
LONG = 1_000_000  # rows, from which on it is said in any case
MUCH_MISSING = 0.2  # share of the values, from which on it is said
MOSTLY = 0.8  # share of the rows below which it is said
MUCH_REPEATED = 0.01  # share of the rows, from which on it is said


def is_small(rows: int) -> bool:
    """Whether so many rows are few for the default detector."""
    return rows < FEW_ROWS


def too_few(rows: int) -> str:
    """Say that no model can be fitted on so many rows; empty where one can.

    Examples
    --------
    >>> too_few(30), too_few(41)
    ('30 rows are too few: a model can be fitted from 41 rows on with --detector ewma, from 127 on with prism. Give more.', '')
    """
    if rows >= LEAST_ROWS:
        return ""
    found = "1 row is" if rows == 1 else f"{rows} rows are"
    return f"{found} too few: a model can be fitted from {LEAST_ROWS} rows on with --detector {FOR_FEW}, from {LEAST_FOR_DEFAULT} on with prism. Give more."


def memory_needed(rows: int, channels: int) -> float:
    """Bytes that fitting the default detector takes at its peak, about."""
    return BYTES + BYTES_PER_VALUE * rows * channels


def memory_free() -> float | None:
    """Bytes that are free on this machine; None where it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def size_notes(rows: int, channels: int) -> tuple[str, ...]:
    """Notes on fitting a detector on a series of this size.

    Examples
    --------
    >>> size_notes(300, 4)
    ('300 rows are few: fit says which budget they support. Until there are 500, --detector ewma learns more safely than prism.',)
    >>> size_notes(5000, 4)
    ()
    >>> size_notes(5_000_000, 5)[0][:63]
    '25,000,000 values: fitting takes about 2.9 GB of memory at most'
    """
    if rows < LEAST_ROWS:
        return (too_few(rows),)
    if rows < LEAST_FOR_DEFAULT:
        return (
            f"{rows} rows are few: a model can be fitted on them with --detector {FOR_FEW}, from {LEAST_FOR_DEFAULT} rows on with prism.",
        )
    if is_small(rows):
        return (
            f"{rows} rows are few: fit says which budget they support. Until there are {FEW_ROWS}, --detector {FOR_FEW} learns more safely than prism.",
        )
    needed, free = memory_needed(rows, channels), memory_free()
    if needed < WORTH_SAYING and rows < LONG and (free is None or needed < free):
        return ()
    words = f"{rows * channels:,} values: fitting takes about {needed / 1e9:.1f} GB of memory at most"
    if free is not None and needed > free:
        words += (
            f", and {free / 1e9:.1f} GB are free. Give fewer rows or channels: every second row does for most faults"
        )
    return (words + ".",)


def missing_notes(missing: int, values: int) -> tuple[str, ...]:
    """Notes on fitting a detector where so many of the values are missing.

    Examples
    --------
    >>> missing_notes(600, 1000), missing_notes(20, 1000)
    (('60 % of the values are missing: the model knows the others alone. Which channels they are of: tisat look.',), ())
    """
    if missing < MUCH_MISSING * values:
        return ()
    return (
        f"{100 * missing / values:.0f} % of the values are missing: the model knows the others alone. Which channels they are of: tisat look.",
    )


def kept_notes(kept: int, rows: int, *, most: int | None = None) -> tuple[str, ...]:
    """Notes on a model that keeps the scores of so many normal rows of those that can have one; there were more than the ``most`` it keeps.

    Examples
    --------
    >>> kept_notes(132_000, 500_000, most=133_333)
    ('Budgets are checked on 132,000 of 500,000 rows, the most that a model keeps: more rows of training support no rarer budget.',)
    >>> kept_notes(2_000, 10_080)
    ('Budgets are checked on 2,000 of 10,080 rows: rows that lack values, or warm up after a gap, have no score.',)
    >>> kept_notes(9800, 10_080)
    ()
    """
    if kept >= MOSTLY * rows:
        return ()
    where = f"Budgets are checked on {kept:,} of {rows:,} rows"
    if most is not None and kept >= MOSTLY * most:
        return (f"{where}, the most that a model keeps: more rows of training support no rarer budget.",)
    return (f"{where}: rows that lack values, or warm up after a gap, have no score.",)


def repeated_notes(repeated: int, rows: int) -> tuple[str, ...]:
    """Notes on a series of which so many rows equal the row before.

    Examples
    --------
    >>> repeated_notes(600, 1000), repeated_notes(5, 1000)
    (('600 rows equal the row before in every channel: was the logger stuck?',), ())
    """
    if repeated <= MUCH_REPEATED * rows:
        return ()
    return (f"{repeated} rows equal the row before in every channel: was the logger stuck?",)
