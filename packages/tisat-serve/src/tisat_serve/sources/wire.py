"""The few lines of protobuf that remote write and OTLP need: fields of a message, in order. Nothing is trusted.

A generated decoder would need a compiler or a 0.3 MB library for six messages; the format is a list of (number, type, value).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tisat.errors import InputError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def _wrong() -> InputError:
    return InputError("The body must be a whole protobuf message. It is not.")


def varint(data: memoryview, place: int) -> tuple[int, int]:
    """A number and where it ends."""
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise _wrong()
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
        shift += 7


def fields(data: memoryview) -> Iterator[tuple[int, int, int, memoryview]]:
    """The fields of a message: number, type, value of a varint, bytes of anything else."""
    place, end = 0, len(data)
    empty = data[:0]
    while place < end:
        tag, place = varint(data, place)
        kind = tag & 7
        if kind == VARINT:
            value, place = varint(data, place)
            yield tag >> 3, kind, value, empty
            continue
        if kind == BYTES:
            size, place = varint(data, place)
        elif kind == FIXED64:
            size = 8
        elif kind == FIXED32:
            size = 4
        else:
            raise _wrong()
        if size > end - place:
            raise _wrong()
        yield tag >> 3, kind, 0, data[place : place + size]
        place += size


def double(data: memoryview) -> float:
    """Eight bytes as a number."""
    return float(struct.unpack("<d", data)[0])


def signed(value: int) -> int:
    """A varint as a signed 64-bit number."""
    return value - (1 << 64) if value >= 1 << 63 else value


def text(data: memoryview) -> str:
    """Bytes as text."""
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        raise _wrong() from None
