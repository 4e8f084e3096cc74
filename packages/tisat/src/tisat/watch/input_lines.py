"""The lines of an input: bounded in length, and those that were not seen before a restart."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from typing import IO

from tisat.errors import InputError, SeriesError
from tisat.io.text_lines import SHOWN
from tisat.utils.types import JsonDict

OPENING = 3  # lines by which an input is told from another: the header, and what came first
LONGEST_LINE = 1 << 20  # bytes; of a longer line no more is kept
CHUNK = 1 << 18  # bytes that are read at a time, at most


class HeaderError(SeriesError):
    """The names of the columns do not fit the model: no row after them could be judged."""


@dataclass
class Note:
    """Positions of input and output, kept in the state file."""

    lines: int = 0  # seen
    bytes: int = 0  # written
    header: list[str] | None = None
    first: str = ""  # hashes of the first lines, by which another input is told

    @classmethod
    def of(cls, document: JsonDict) -> Note:
        """From what a state file holds."""
        header = document.get("header")
        return cls(
            int(document.get("lines", 0)),
            int(document.get("bytes", 0)),
            None if header is None else [str(name) for name in header],
            str(document.get("first", "")),
        )


def fingerprint(line: bytes) -> str:
    """A short hash of a line."""
    return hashlib.sha256(line).hexdigest()[:16]


def after(lines: Iterable[bytes], note: Note) -> Iterator[bytes]:
    """The lines not yet seen.

    An error where the input is not the one the note is about.
    """
    passed = 0
    for line in lines:
        if passed < min(OPENING, note.lines) and fingerprint(line) != note.first[16 * passed : 16 * passed + 16]:
            raise InputError(
                f"The input must be the one the state file remembers, from its beginning. Line {passed + 1} is another: {line[:SHOWN]!r}. "
                "If rows only go on here (a pipe, a rotated file), say --live; to begin anew, give another --state."
            )
        passed += 1
        if passed > note.lines:
            yield line
    if passed < note.lines:
        raise InputError(
            f"The input must have the {note.lines} lines the state file has seen. Got only {passed}: it was cut or rotated. "
            "If rows only go on here, say --live; to begin anew, give another --state."
        )


class BoundedLines(Iterator[bytes]):
    r"""Split a stream into lines.

    Of one longer than ``LONGEST_LINE`` only its beginning, as soon as that has come.

    Examples
    --------
    >>> import io
    >>> [len(line) for line in BoundedLines(io.BytesIO(b"a\n" + b"x" * (LONGEST_LINE + 99) + b"\nb\n"))]
    [2, 1048578, 2]
    """

    def __init__(self, stream: BufferedIOBase | IO[bytes]) -> None:
        self._read: Callable[[int], bytes] = getattr(stream, "read1", stream.readline)
        self._whole: deque[bytes] = deque()
        self._part = b""  # of a line whose end has not come
        self._passing = False  # over the rest of a line that is too long
        self._over = False

    def __next__(self) -> bytes:
        while not self._whole:
            if self._over:
                raise StopIteration
            self._take(self._read(CHUNK))
        return self._whole.popleft()

    def at_hand(self) -> bool:
        """Whether a line has come that can be had without waiting."""
        return bool(self._whole)

    def _take(self, chunk: bytes) -> None:
        if not chunk:
            self._over = True
            self._whole.extend([self._part] if self._part else [])
            self._part = b""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if not self._passing:
                line = self._part + end + b"\n"
                self._whole.append(line if len(line) <= LONGEST_LINE + 1 else line[: LONGEST_LINE + 1] + b"\n")
            self._part, self._passing = b"", False
        if not self._passing:
            self._part += rest
            if len(self._part) > LONGEST_LINE:
                self._whole.append(self._part[: LONGEST_LINE + 1] + b"\n")
                self._part, self._passing = b"", True
