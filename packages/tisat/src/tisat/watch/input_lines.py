"""The lines of an input: bounded in length, and those that were not seen before a restart."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

from tisat.errors import InputError
from tisat.io.text_lines import SHOWN
from tisat.utils.types import JsonDict

OPENING = 3  # lines by which an input is told from another: the header, and what came first
LONGEST_LINE = 1 << 20  # bytes; of a longer line no more is kept


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


def bounded_lines(stream: IO[bytes]) -> Iterator[bytes]:
    r"""Split a stream into lines.

    Of one longer than ``LONGEST_LINE`` only its beginning, as soon as that has come.

    Examples
    --------
    >>> import io
    >>> [len(line) for line in bounded_lines(io.BytesIO(b"a\n" + b"x" * (LONGEST_LINE + 99) + b"\nb\n"))]
    [2, 1048578, 2]
    """
    while line := stream.readline(LONGEST_LINE + 1):
        cut = len(line) > LONGEST_LINE and not line.endswith(b"\n")
        yield line + b"\n" if cut else line
        while cut:
            rest = stream.readline(LONGEST_LINE)
            cut = bool(rest) and not rest.endswith(b"\n")
