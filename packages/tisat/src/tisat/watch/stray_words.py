"""Words where a stream should hold numbers: missing values of their channels, reported once each and counted."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tisat.errors import SeriesError

MOST = 20  # pairs of channel and word that are reported; a channel with ever new words is counted alone
LONGEST = 40  # characters of a word that a sentence repeats
OTHERS = "other words"


def is_status(cell: str) -> bool:
    """Whether a cell that is no number is a word, and not a number written in another way.

    Examples
    --------
    >>> [is_status(cell) for cell in ("No Data", "#DIV/0!", "Err 12", "1.234,5", "< 0.5", "12 bar")]
    [True, True, True, False, False, False]
    """
    return cell[:1].isalpha() or cell.startswith("#") or not any(map(str.isnumeric, cell))


class StrayWords:
    """Take words in cells of channels for missing values, where most cells of the row are none.

    Parameters
    ----------
    width : int
        The channels of the model.
    report : callable
        Gets a sentence for each channel and word.

    Examples
    --------
    >>> words = StrayWords(2, print)
    >>> words.numbers(["cpu", "disk"], ["1.5", "No Data"], float)
    'No Data' in column 'disk' is no number; it counts as missing (--missing 'No Data' says so beforehand)
    [1.5, nan]
    >>> print(words.summary)
    1 cell was no number and counts as missing: 'No Data' in 'disk' (1)
    """

    def __init__(self, width: int, report: Callable[[str], object]) -> None:
        self._width = width
        self._report = report
        self._counts: Counter[tuple[str, str]] = Counter()

    def numbers(self, channels: Sequence[str], cells: Sequence[str], read: Callable[[str], float]) -> list[float]:
        """The numbers of the cells of a row, as ``read`` has them; NaN where one is a word."""
        values, words = list[float](), dict[str, str]()
        for channel, cell in zip(channels, cells, strict=True):
            try:
                values.append(read(cell))
            except ValueError:
                words[channel] = cell
                values.append(math.nan)
        self.take(words, of=len(cells))
        return values

    def take(self, words: Mapping[str, str], *, of: int) -> None:
        """Count the words of a row of ``of`` cells, by channel.

        Raises
        ------
        SeriesError
            Where one of them is a number written in another way, or most cells of several are words.
        """
        wrong = next((channel for channel, cell in words.items() if not is_status(cell)), None)
        if wrong is not None:
            raise SeriesError(f"A row must hold numbers. Got {words[wrong][:LONGEST]!r} in column {wrong!r} instead.")
        if 2 * len(words) > of and self._width > 1:
            channel, cell = next(iter(words.items()))
            raise SeriesError(
                f"A row must hold numbers in most channels. Got {cell[:LONGEST]!r} in column {channel!r} instead, and words in "
                f"{len(words) - 1} more; if it stands for a missing value: --missing {shlex.quote(cell[:LONGEST])}"
            )
        for channel, cell in words.items():
            key = (channel, cell[:LONGEST])
            if key not in self._counts and len(self._counts) < MOST:
                self._report(
                    f"{key[1]!r} in column {channel!r} is no number; it counts as missing "
                    f"(--missing {shlex.quote(key[1])} says so beforehand)"
                )
            elif key not in self._counts:
                key = (channel, OTHERS)
            self._counts[key] += 1

    @property
    def summary(self) -> str:
        """How many there were, by word and channel; empty where none."""
        total = self._counts.total()
        if not total:
            return ""
        each = ", ".join(
            f"{word!r} in {channel!r} ({count:,})" for (channel, word), count in self._counts.most_common()
        )
        were = "cells were no numbers and count" if total > 1 else "cell was no number and counts"
        return f"{total:,} {were} as missing: {each}"
