"""Text and parquet tables read in batches into one array, so that memory follows the result and not the file.

Every problem is a :class:`~tisat.errors.DataFileError` that names the file, the row (from 0, header not counted), the
line as an editor counts it, and what was expected. This module does not know series, labels or data sets.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from tisat.errors import DataFileError
from tisat.reading.clock import Times, offset_minutes, read_times
from tisat.reading.words import is_number, spellings

BLOCK = 1 << 18  # bytes of text parsed at a time; as quick as 1 MiB, and arrow holds up to 32 blocks at once
ROWS = 16_384  # rows of parquet decoded at a time: 51 columns of them are 7 MB


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


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The file as bytes, unpacked where its name ends in .gz; one that cannot be read to its end is a DataFileError."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            yield file  # type: ignore[misc]
    except (OSError, EOFError, zlib.error) as error:
        raise problem(path, "be readable to its end", f"{str(error)[:120]!r}") from None


def count_lines(path: Path) -> int:
    """How many lines a text file has; one without a final newline counts too. A bound on its rows."""
    lines, last = 0, b"\n"
    with open_bytes(path) as file:
        while block := file.read(BLOCK):
            lines += block.count(b"\n") + block.count(b"\r")  # arrow takes a lone \r for the end of a line too
            last = block[-1:]
    return lines + (last != b"\n")


def _cells(path: Path, raw: bytes, *, delimiter: str, row: int | None, line: int) -> list[str]:
    """The cells of one line; what is not text is refused."""
    try:
        text = raw.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError:
        raise problem(path, "be text in UTF-8", f"the bytes {raw[:8]!r}", row=row, line=line) from None
    if "\0" in text:
        raise problem(path, "be text", f"the bytes {raw[:8]!r}", row=row, line=line)
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error as error:
        raise problem(path, "be a table of cells", f"{str(error)[:60]!r}", row=row, line=line) from None


def first_lines(path: Path, *, count: int, delimiter: str = ",") -> list[list[str]]:
    """The cells of the first ``count`` lines, without surrounding spaces."""
    found: list[list[str]] = []
    with open_bytes(path) as file:
        for line in range(1, count + 1):
            raw = file.readline(BLOCK)
            if not raw:
                break
            found.append([cell.strip() for cell in _cells(path, raw, delimiter=delimiter, row=None, line=line)])
    return found


def explain(
    path: Path, *, names: Sequence[str], numeric: Collection[str], skip: int, delimiter: str, decimal: str
) -> DataFileError | None:
    """Walk through a text file that could not be parsed and find the first row that breaks the rules."""
    cells_expected = f"have {len(names)} cell{'s' * (len(names) != 1)} in each row"
    row = 0
    with open_bytes(path) as file:
        for number, raw in enumerate(file, start=1):
            if number <= skip or not raw.strip():
                continue
            cells = _cells(path, raw, delimiter=delimiter, row=row, line=number)
            if len(cells) != len(names):
                return problem(path, cells_expected, f"{len(cells)}", row=row, line=number)
            for name, cell in zip(names, cells, strict=True):
                if name in numeric and not is_number(cell, decimal=decimal):
                    return problem(path, f"hold a number in column {name!r}", f"{cell[:40]!r}", row=row, line=number)
            row += 1
    return None


def text_batches(
    path: Path,
    *,
    names: Sequence[str],
    numeric: Collection[str],
    types: dict[str, Any] | None = None,
    skip: int = 0,
    delimiter: str = ",",
    decimal: str = ".",
    only: Sequence[str] | None = None,
) -> Iterator[Any]:
    """Record batches of a text file: ``numeric`` columns as float64, the rest as ``types`` says or as text.

    ``only`` leaves out all other columns, though their number is still checked.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    kinds = {name: pa.float64() if name in numeric else (types or {}).get(name, pa.string()) for name in names}
    try:
        # Our own file object: given a path, arrow reads dozens of blocks ahead.
        with (
            open_bytes(path) as file,
            arrow_csv.open_csv(
                file,
                # One thread: with more the reader parses ahead of us, and memory follows the file again.
                read_options=arrow_csv.ReadOptions(
                    column_names=list(names), skip_rows=skip, block_size=BLOCK, use_threads=False
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=kinds,
                    null_values=spellings(),
                    strings_can_be_null=True,
                    decimal_point=decimal,
                    include_columns=None if only is None else list(only),
                ),
            ) as reader,
        ):
            yield from reader
    except (pa.ArrowInvalid, OSError) as error:
        found = explain(path, names=names, numeric=numeric, skip=skip, delimiter=delimiter, decimal=decimal)
        if found is None:
            found = problem(path, f"be a table of {len(names)} columns", f"{str(error)[:200]!r}")
        raise found from None


def text_schema(path: Path) -> Any:
    """The columns of a text file with a header, and the types that its first block suggests."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    header = next(iter(first_lines(path, count=1)), [])
    if not any(header):
        raise problem(path, "begin with the names of its columns", "an empty line" if header else "an empty file")
    try:
        with (
            open_bytes(path) as file,
            arrow_csv.open_csv(
                file,
                read_options=arrow_csv.ReadOptions(block_size=BLOCK, use_threads=False),
                convert_options=arrow_csv.ConvertOptions(null_values=spellings(), strings_can_be_null=True),
            ) as reader,
        ):
            return reader.schema
    except (pa.ArrowInvalid, OSError) as error:
        found = explain(path, names=header, numeric=(), skip=1, delimiter=",", decimal=".")
        raise found or problem(path, "be a table with a header", f"{str(error)[:200]!r}") from None


def parquet_schema(path: Path) -> tuple[Any, int]:
    """The columns of a parquet file, and its rows."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, memory_map=True) as file:
            return file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise problem(path, "be a whole parquet file", f"{str(error)[:200]!r}") from None


def parquet_batches(path: Path, *, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Record batches of a parquet file, through a small buffer: a map of the whole file would count as memory too."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, buffer_size=BLOCK, pre_buffer=False) as file:
            yield from file.iter_batches(batch_size=ROWS, columns=None if columns is None else list(columns))
    except (pa.ArrowException, OSError) as error:
        raise problem(path, "be a whole parquet file", f"{str(error)[:200]!r}") from None


def open_table(file: Path) -> tuple[dict[str, bool], Iterator[Any], int]:
    """The columns of a file (True where they hold numbers), its record batches, and a bound on its rows."""
    import pyarrow as pa

    def is_number(kind: Any) -> bool:
        return any(
            test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
        )

    if file.suffix == ".parquet":
        schema, rows = parquet_schema(file)
        return {field.name: is_number(field.type) for field in schema}, parquet_batches(file), rows
    schema = text_schema(file)
    if "" in schema.names:
        hint = "one without a name (an index that was saved along?)"
        raise problem(file, "name every column", hint, line=1)
    twice = next((name for name, count in Counter(schema.names).items() if count > 1), None)
    if twice is not None:
        raise problem(file, "name each column once", f"{twice!r} twice", line=1)
    kinds = {field.name: field.type for field in schema}
    numeric = [name for name, kind in kinds.items() if is_number(kind) and not pa.types.is_boolean(kind)]
    # A date with an offset is read as text: arrow would move it to UTC and forget where it came from.
    zoned = {name for name, kind in kinds.items() if pa.types.is_timestamp(kind) and kind.tz is not None}
    types = {name: pa.string() if name in zoned else kind for name, kind in kinds.items() if name not in set(numeric)}
    batches = text_batches(file, names=schema.names, numeric=numeric, types=types, skip=1)
    return {name: is_number(kind) for name, kind in kinds.items()}, batches, count_lines(file)


def arrow_times(column: Any, *, name: str = "time") -> Times:
    """An arrow column as times: dates in UTC beside the offset they were written with, or numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    try:
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            local = pc.local_timestamp(column).cast(pa.timestamp("ns"))
            utc = column.cast(pa.timestamp("ns", "UTC")).cast(pa.timestamp("ns"))
            values = np.asarray(utc.to_numpy(zero_copy_only=False))
            ahead = np.asarray(local.to_numpy(zero_copy_only=False)) - values
            return Times(values, (ahead / np.timedelta64(1, "m")).round().astype(np.int16))
        if pa.types.is_temporal(kind):
            return Times(np.asarray(column.cast(pa.timestamp("ns")).to_numpy(zero_copy_only=False)))
        if pa.types.is_string(kind) and len(column) and column.null_count == 0:
            utc = column.cast(pa.timestamp("ns", "UTC")).cast(pa.timestamp("ns"))
            written = pc.if_else(
                pc.ends_with(column, "Z"), "Z", pc.utf8_slice_codeunits(column, -6)
            ).dictionary_encode()
            minutes = np.array([offset_minutes(text) for text in written.dictionary.to_pylist()], dtype=np.int16)
            return Times(np.asarray(utc.to_numpy(zero_copy_only=False)), minutes[written.indices.to_numpy()])
    except (pa.ArrowException, ValueError, OverflowError):
        pass  # text that is not plainly a date with an offset: row by row, with a sentence that names the row
    return read_times(column.to_numpy(zero_copy_only=False), name=name)


def gather(
    batches: Iterator[Any], *, rows: int, numeric: Sequence[str]
) -> tuple[npt.NDArray[np.float64], dict[str, Any]]:
    """The numeric columns of all batches as one (T, C) array, and the others as arrow arrays by name.

    Parameters
    ----------
    batches : iterator of record batches
    rows : int
        At least as many as will come; what is left over is never touched, so it costs no memory.
    numeric : columns of the array, in this order
    """
    import pyarrow as pa

    values = np.empty((rows, len(numeric)))
    others: dict[str, list[Any]] = {}
    filled = 0
    for batch in batches:
        stop = filled + batch.num_rows
        for c, name in enumerate(numeric):
            column = batch.column(name)
            if column.null_count or column.type != pa.float64():
                column = column.cast(pa.float64())
            values[filled:stop, c] = column.to_numpy(zero_copy_only=False)
        for name in batch.schema.names:
            if name not in numeric:
                others.setdefault(name, []).append(batch.column(name))
        filled = stop
    return values[:filled], {name: pa.chunked_array(parts).combine_chunks() for name, parts in others.items()}


def read_numbers(path: Path, *, names: Sequence[str], skip: int = 0) -> npt.NDArray[np.float64]:
    """A comma-separated file without a header whose every cell is a number, as a (T, C) array."""
    if not path.is_file():
        raise problem(path, "exist", "no such file")
    rows = count_lines(path)
    if rows == skip:
        raise problem(path, f"hold rows of {len(names)} numbers", "an empty file")
    values, _ = gather(text_batches(path, names=names, numeric=names, skip=skip), rows=rows, numeric=names)
    for start in range(0, len(values), ROWS):
        missing = np.isnan(values[start : start + ROWS])
        if missing.any():
            row, column = (int(i) for i in np.argwhere(missing)[0])
            raise problem(
                path,
                f"hold a number in column {names[column]!r}",
                "an empty cell",
                row=start + row,
                line=start + row + skip + 1,
            )
    return values
