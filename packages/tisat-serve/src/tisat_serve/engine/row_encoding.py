"""Bytes for arrays: what the store keeps of rows, results and states.

This module knows no database and no monitor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tisat.utils.types import AnyArray, Array, Flags, Integers

STATUSES = ("ok", "warming up", "unusable", "late", "duplicate", "unconfirmed", "refused")
CODES = {status: code for code, status in enumerate(STATUSES)}
ACCEPTED = 3  # codes below it are rows that were taken in
_HEAD = 8  # bytes that say how long the unpacked content is
LARGEST = 1 << 30  # bytes: nothing we pack is larger


def compress(content: bytes) -> bytes:
    """Compressed, with the length in front."""
    packed: bytes = pa.compress(content, codec="zstd", asbytes=True) if content else b""
    return len(content).to_bytes(_HEAD, "little") + packed


def decompress(content: bytes) -> bytes:
    """Back from :func:`compress`; refuses a length beyond all reason."""
    size = int.from_bytes(content[:_HEAD], "little")
    if not 0 <= size <= LARGEST:
        raise ValueError("a packed content must say a length that can be")
    unpacked: bytes = (
        pa.decompress(content[_HEAD:], decompressed_size=size, codec="zstd", asbytes=True) if size else b""
    )
    return unpacked


class Brief(NamedTuple):
    """Frequently read columns of consecutive rows of one entity."""

    times: Integers  # (n,) nanoseconds
    statistic: Array  # (n,) NaN where there is none
    status: npt.NDArray[np.uint8]  # (n,) codes of STATUSES
    active: npt.NDArray[np.uint8]  # (n,) the alarm is on
    threshold: Array  # (n,) in force at the row

    def select(self, mask: Flags) -> Brief:
        """Some of the rows."""
        return Brief(self.times[mask], self.statistic[mask], self.status[mask], self.active[mask], self.threshold[mask])


class Body(NamedTuple):
    """The rest of them."""

    values: Array  # (n, C) as they came
    score: Array  # (n,)
    evidence: Array  # (n,)
    row: Integers  # (n,) number of the row, -1 where it was left out
    seq: Integers  # (n,) place in the log

    def select(self, mask: Flags) -> Body:
        """Some of the rows."""
        return Body(self.values[mask], self.score[mask], self.evidence[mask], self.row[mask], self.seq[mask])


def pack_brief(brief: Brief) -> bytes:
    """Its arrays one after the other: 26 bytes per row, read without copying."""
    return b"".join(array.tobytes() for array in brief)


def unpack_brief(content: bytes, rows: int, threshold: float = float("nan")) -> Brief:
    """Back from :func:`pack_brief`.

    A piece from before thresholds moved has one ``threshold`` for all its rows.
    """
    if len(content) not in (18 * rows, 26 * rows):
        raise ValueError("a piece of history must have the length its rows need")
    moving = len(content) == 26 * rows
    return Brief(
        np.frombuffer(content, np.int64, rows, 0),
        np.frombuffer(content, np.float64, rows, 8 * rows),
        np.frombuffer(content, np.uint8, rows, 16 * rows),
        np.frombuffer(content, np.uint8, rows, 17 * rows),
        np.frombuffer(content[18 * rows :], np.float64, rows) if moving else np.full(rows, threshold),
    )


def _shuffled(values: Array) -> bytes:
    """The bytes of numbers, first bytes first, channel by channel: like stands beside like and compresses."""
    return np.ascontiguousarray(values.T).view(np.uint8).reshape(-1, 8).T.tobytes()


def pack_body(body: Body) -> bytes:
    """Its arrays, shuffled and compressed."""
    rest = b"".join(_shuffled(np.asarray(array).view(np.float64)) for array in body[1:])
    return compress(_shuffled(body.values) + rest)


def unpack_body(content: bytes, rows: int) -> Body:
    """Back from :func:`pack_body`."""
    plain = decompress(content)
    if rows <= 0 or len(plain) % (8 * rows) or len(plain) < 40 * rows:
        raise ValueError("a piece of history must have the length its rows need")
    channels = len(plain) // (8 * rows) - 4
    cut = 8 * rows * channels
    values = np.frombuffer(plain, np.uint8, cut).reshape(8, -1).T.copy().view(np.float64).reshape(channels, rows).T
    parts = [
        np.frombuffer(plain, np.uint8, 8 * rows, cut + 8 * rows * k).reshape(8, -1).T.copy().reshape(-1)
        for k in range(4)
    ]
    return Body(
        values, parts[0].view(np.float64), parts[1].view(np.float64), parts[2].view(np.int64), parts[3].view(np.int64)
    )


def stamps_of(times: Integers, *, dates: bool) -> AnyArray:
    """Nanoseconds as the timestamps of a series: dates, or seconds of a clock of its own."""
    return times.view("datetime64[ns]") if dates else times * 1e-9


def joined(parts: list[object]) -> Any:
    """Named tuples of arrays, one after the other, as one."""
    return type(parts[0])(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
