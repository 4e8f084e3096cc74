"""The encoding of a text table: the one that was told, or found from its first bytes."""

from __future__ import annotations

import codecs
from pathlib import Path

from tisat.errors import ParameterError
from tisat.io.compression import problem

NO_TEXT = ("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape")  # encodings of something else


def check_encoding(told: str) -> str:
    """The name of an encoding of text; ``utf-8`` for all that are parts of it."""
    try:
        name = codecs.lookup(told).name
        if name in ("utf-8", "utf-8-sig", "ascii"):
            return "utf-8"
        if name not in NO_TEXT and "a;1\n".encode(told).decode(told) == "a;1\n":
            return told
    except (LookupError, ValueError):  # also encodings from bytes to bytes
        pass
    raise ParameterError(f"--encoding must be one such as utf-8, latin-1, cp1252 or utf-16. Got {told!r} instead.")


def find_encoding(path: Path, head: bytes, told: str | None = None) -> str:
    """The encoding of a file by its first bytes; an error where they are not in the one that was told."""
    if told is not None:
        coding = check_encoding(told)
        try:
            codecs.getincrementaldecoder(coding)().decode(head)
        except UnicodeDecodeError as error:
            found = find_encoding(path, head)
            must = f"be text in {told}, as --encoding says{'' if found == coding else f'; for this file: --encoding {found}'}"
            raise problem(path, must, f"the bytes {head[error.start : error.start + 8]!r}", line=head[: error.start].count(b"\n") + 1) from None  # fmt: skip
        return coding
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if len(head) > 3 and head[1:200:2].count(0) > 0.9 * len(head[1:200:2]):
        return "utf-16-le"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        control = sum(byte < 32 and byte not in (9, 10, 13) for byte in head)
        high = sum(byte >= 0x80 for byte in head)
        if control or high > 0.3 * len(head):
            raise problem(
                path, "be text in UTF-8, or --encoding must say what it is in", f"the bytes {head[error.start : error.start + 8]!r}", line=head[: error.start].count(b"\n") + 1
            ) from None  # fmt: skip
        return "cp1252" if not set(head) & {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "latin-1"
    return "utf-8"
