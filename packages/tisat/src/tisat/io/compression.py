"""Bytes of a table, however it is packed: plain, .gz, .zip with one table in it, or a sheet of a workbook as csv text.

What is packed may unpack to more than a machine holds; then it is refused with a sentence. This module does not know what
is in the bytes.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

import numpy as np

from tisat.errors import DataFileError
from tisat.utils.extras import require

T = TypeVar("T")
TEXT = (".csv", ".txt", ".tsv", ".dat")
SHEETS = (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods")
JSON = (".jsonl", ".ndjson")
SUFFIXES = (*TEXT, *(f"{suffix}.gz" for suffix in (*TEXT, *JSON)), *JSON, *SHEETS, ".zip", ".parquet")
ENOUGH = 64 << 20  # bytes that anything may unpack to
RATIO = 250  # beyond it and ENOUGH it is no table: real ones pack to a tenth, of one repeated row to a hundredth
LARGEST = 4 << 30  # bytes that nothing packed may exceed


def problem(path: str | Path, must: str, got: str, *, row: int | None = None, line: int | None = None) -> DataFileError:
    """The error every reader of files raises.

    Examples
    --------
    >>> print(problem("a.csv", "have 38 cells in each row", "12 cells", row=4, line=6))
    The file 'a.csv' must have 38 cells in each row. Got 12 cells at row 4 (line 6) instead.
    """
    where = "" if row is None else f" at row {row}"
    where += "" if line is None else f" (line {line})"
    return DataFileError(f"The file {str(path)!r} must {must}. Got {got}{where} instead.")


def check_unpacked(path: Path, unpacked: int) -> None:
    """Refuse what unpacks to far more than any table would."""
    if unpacked > min(LARGEST, max(ENOUGH, RATIO * path.stat().st_size)):
        raise problem(
            path,
            f"unpack to at most {RATIO} times its size, and to at most 4 GB (unpack it yourself and give the plain file)",
            f"{unpacked >> 20} MB or more from {path.stat().st_size >> 10} KB",
        )


class Blocks(io.RawIOBase):
    """Blocks of bytes, none of them empty, as a file to read from."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        super().__init__()
        self._blocks, self._rest = blocks, b""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as a block reaches; 0 at the end."""
        block = self._rest or next(self._blocks, b"")
        size = min(len(buffer), len(block))
        buffer[:size], self._rest = block[:size], block[size:]
        return size


def _counted(path: Path, packed: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    """An unpacked stream that stops where a bomb begins."""
    seen = 0
    while block := packed.read(1 << 16):
        seen += len(block)
        check_unpacked(path, seen)
        yield block


def named_once(path: str | Path, files: Iterable[Path], read: Callable[[Path], Mapping[str, T]]) -> dict[str, T]:
    """What several files of a folder hold, by name; a name must stand in one of them only."""
    columns: dict[str, T] = {}
    for file in files:
        more = read(file)
        twice = next((name for name in more if name in columns), None)
        if twice is not None:
            raise DataFileError(
                f"The files of {str(path)!r} must name a series once. Got {twice!r} again in {file.name!r}."
            )
        columns |= more
    return columns


class _Held:
    """The file that was opened last, kept open for the next pass over it."""

    def __init__(self) -> None:
        self.path, self.busy = Path(), False
        self.file: IO[bytes] | None = None

    def get(self, path: Path) -> IO[bytes]:
        """The file, opened where it is another one than before."""
        file = self.file
        if file is None or self.path != path or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
            self.close()
            self.path, self.file = path, path.open("rb")
        assert self.file is not None
        return self.file

    def close(self) -> None:
        """Let it go."""
        if self.file is not None:
            self.file.close()
        self.file = None


_held: ContextVar[_Held | None] = ContextVar("held", default=None)


@contextmanager
def opened_once() -> Iterator[None]:
    """Open a file once inside, however many passes are made over it: the last one stays open and is rewound."""
    cache = _Held()
    token = _held.set(cache)
    try:
        yield
    finally:
        _held.reset(token)
        cache.close()


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    cache = _held.get()
    if cache is None or cache.busy:  # in the middle of a pass the next one needs a place of its own
        with path.open("rb") as file:
            yield file
        return
    with os.fdopen(os.dup(cache.get(path).fileno()), "rb") as file:  # who reads it may close it
        file.seek(0)
        cache.busy = True
        try:
            yield file
        finally:
            cache.busy = False


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The file as bytes, unpacked where its name says it is packed; one that cannot be read to its end is a DataFileError."""
    try:
        if path.suffix == ".gz":
            with _open(path) as file, gzip.open(file, "rb") as packed:
                yield io.BufferedReader(Blocks(_counted(path, packed)), 1 << 16)
        elif path.suffix == ".zip":
            with _open(path) as file, zipfile.ZipFile(file) as archive, archive.open(_member(path, archive)) as packed:
                yield io.BufferedReader(Blocks(_counted(path, packed)), 1 << 16)
        else:
            with _open(path) as file:
                yield file
    except DataFileError:
        raise
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise problem(path, "be readable to its end", f"{str(error)[:120]!r}") from None


@contextmanager
def open_numpy(path: Path, must: str, *, mode: Literal["r"] | None = None) -> Iterator[Any]:
    """What numpy reads from a file, mapped where asked for, and closed afterwards; a damaged file is a sentence."""
    try:
        with path.open("rb") if mode is None else nullcontext(path) as source:
            yield np.load(source, mmap_mode=mode, allow_pickle=False)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, DataFileError):
            raise
        raise problem(path, must, f"{str(error)[:120]!r}") from None


def _member(path: Path, archive: zipfile.ZipFile) -> str:
    names = [name for name in archive.namelist() if name.lower().endswith(TEXT) and not name.startswith("__MACOSX")]
    if len(names) != 1:
        got = f"{len(names)}: {', '.join(names[:5])}" if names else "none"
        raise problem(path, f"hold one {', '.join(TEXT)} file (unpack it and give the folder)", got)
    return names[0]


def inner_suffix(path: Path) -> str:
    """What kind of table it is, packed or not: ``.csv``, ``.jsonl``, ``.parquet``, ``.xlsx``; lower case."""
    name = path.name.lower().removesuffix(".gz")
    return ".csv" if name.endswith(".zip") else Path(name).suffix


def sheet_text(path: Path, *, sheet: str | None = None) -> tuple[bytes, str]:
    """A sheet of a workbook as csv text, and what to say about it: the first that is not empty unless named."""
    calamine = require("python_calamine", whose=f"Reading {path.name}")
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            check_unpacked(path, sum(entry.file_size for entry in archive.infolist()))
    try:
        workbook = calamine.CalamineWorkbook.from_path(str(path))
        names = workbook.sheet_names
        if sheet is not None and sheet not in names:
            raise problem(path, "have the sheet that --sheet names", f"{sheet!r}; it has {', '.join(names)}")
        filled = [name for name in ([sheet] if sheet else names) if workbook.get_sheet_by_name(name).height]
        if not filled:
            raise problem(path, "have a sheet with rows", "only empty ones")
        found = workbook.get_sheet_by_name(filled[0])
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for row in found.iter_rows():
            writer.writerow([_cell(cell) for cell in row])
    except (calamine.CalamineError, OSError) as error:
        raise problem(path, "be a whole workbook", f"{str(error)[:120]!r}") from None
    note = f"read from sheet {filled[0]!r}; --sheet names another: {', '.join(filled[1:])}" if len(filled) > 1 else ""
    return text.getvalue().encode(), note


def _cell(cell: Any) -> str:
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(sep=" ")
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return repr(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    return "" if cell is None else str(cell)
