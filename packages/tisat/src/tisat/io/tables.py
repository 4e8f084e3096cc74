"""Text and parquet tables read in batches into one array, so that memory follows the result and not the file.

Every problem is a :class:`~tisat.errors.DataFileError` that names the file, the row (from 0, header not counted), the
line as an editor counts it, and what was expected. This module does not know series, labels or data sets.
"""

from __future__ import annotations

import csv
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tisat.errors import DataFileError, SeriesError
from tisat.io.arrow_arrays import plain
from tisat.io.columns import UNNAMED
from tisat.io.compression import JSON, SHEETS, inner_suffix, open_bytes, problem
from tisat.io.dialect import Format, open_text, sniff
from tisat.io.missing_values import is_missing, spellings
from tisat.utils.types import Array

BLOCK = 1 << 18  # bytes of text parsed at a time; as quick as 1 MiB, and arrow holds up to 32 blocks at once
FEW_WORDS = 5  # of text in columns of numbers that may be meant for missing values
GROUPED = "grouped"  # the kind of a column of numbers such as 1,234.5
WIDE = 500  # columns beyond which their types are looked at before arrow is asked
PLAIN = Format(())  # a file of which nothing is known yet
ROWS = 16_384  # rows of parquet decoded at a time: 51 columns of them are 7 MB


def count_lines(path: Path, form: Format = PLAIN) -> int:
    """How many lines a text file has; one without a final newline counts too. A bound on its rows."""
    lines, last = 0, b"\n"
    with open_text(path, form) as file:
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


def first_lines(path: Path, form: Format = PLAIN, *, count: int) -> list[list[str]]:
    """The cells of the first ``count`` lines, without surrounding spaces."""
    rows: list[list[str]] = []
    with open_text(path, form) as file:
        for line in range(1, count + 1):
            raw = file.readline(BLOCK)
            if not raw:
                break
            rows.append([cell.strip() for cell in _cells(path, raw, delimiter=form.delimiter, row=None, line=line)])
    return rows


def explain(path: Path, form: Format, *, numeric: Collection[str]) -> DataFileError | None:
    """Walk through a text file that could not be parsed and find the first row that breaks the rules."""
    names, row = form.header, 0
    first: DataFileError | None = None
    words: dict[str, None] = {}  # cells of text in columns of numbers, in their order
    cells_expected = f"have {len(names)} cell{'s' * (len(names) != 1)} in each row"
    with open_text(path, form) as file:
        for number, raw in enumerate(file, start=1):
            if number <= form.skip or not raw.strip():
                continue
            cells = _cells(path, raw, delimiter=form.delimiter, row=row, line=number)
            if len(cells) != len(names):
                return first or problem(path, cells_expected, f"{len(cells)}", row=row, line=number)
            for name, cell in zip(names, cells, strict=True):
                if name in numeric and not form.is_number(cell):
                    if first is None:
                        must, got = f"hold a number in column {name!r}", f"{cell[:40]!r}"
                        first = problem(path, must, got, row=row, line=number)
                    words.setdefault(cell.strip())
            if len(words) > FEW_WORDS:
                break
            row += 1
    if first is None or len(words) > FEW_WORDS or any("," in word or len(word) > 40 for word in words):
        return first
    typed = shlex.quote(",".join([*form.missing, *words]))
    return DataFileError(f"{first} To read {'these words' if len(words) > 1 else 'it'} as missing: --missing {typed}")


def stray_cell(path: Path, form: Format, text: Collection[str], *, told: bool = False) -> DataFileError | None:
    """The sentence about a cell of text in a column that otherwise holds numbers, or about a decimal sign that was ``told`` and is the other one."""
    with open_text(path, form) as file:
        lines = file.read(form.block).decode("utf-8", errors="replace").splitlines()[form.skip :]
    rows = [row for row in csv.reader(lines[:-1] or lines, delimiter=form.delimiter) if len(row) == len(form.header)]
    good, other = [], replace(form, decimal="," if form.decimal == "." else ".", thousands="")
    for name in text:
        cells = [row[form.header.index(name)].strip() for row in rows]
        known = [cell for cell in cells if not is_missing(cell)]
        otherwise = [cell for cell in known if told and other.decimal in cell and other.is_number(cell)]
        if known and sum(map(form.is_number, known)) > 0.5 * len(known) and 2 * len(otherwise) <= len(known):
            good.append(name)
        elif otherwise and 2 * len(otherwise) > len(known):
            must = f"hold numbers as --decimal {form.decimal} says (for these: --decimal {other.decimal})"
            return problem(path, must, f"{otherwise[0]!r} in column {name!r}")
    found = explain(path, form, numeric=frozenset(good)) if good else None
    if found is None or len(good) == len(text):
        return found
    words = ",".join(name for name in text if name not in good)
    return DataFileError(f"{found}; to leave out what holds only text: --drop {shlex.quote(words)}")


@contextmanager
def _open_csv(path: Path, form: Format, **convert: Any) -> Iterator[Any]:
    """Arrow's reader of a text file, batch by batch; ``convert`` says more of what cells become."""
    from pyarrow import csv as arrow_csv

    # One thread: with more the reader parses ahead of us, and memory follows the file again.
    read = arrow_csv.ReadOptions(
        column_names=list(form.header), skip_rows=form.skip, block_size=form.block, use_threads=False
    )
    parse = arrow_csv.ParseOptions(delimiter=form.delimiter)
    become = arrow_csv.ConvertOptions(
        null_values=spellings(form.missing), strings_can_be_null=True, decimal_point=form.decimal, **convert
    )
    # Our own file object: given a path, arrow reads dozens of blocks ahead.
    with (
        open_text(path, form) as file,
        arrow_csv.open_csv(file, read_options=read, parse_options=parse, convert_options=become) as reader,
    ):
        yield reader


def text_batches(
    path: Path,
    form: Format,
    *,
    numeric: Collection[str],
    types: dict[str, Any] | None = None,
    only: Sequence[str] | None = None,
) -> Iterator[Any]:
    """Record batches of a text file: ``numeric`` columns as float64, the rest as ``types`` says or as text.

    ``only`` leaves out all other columns, though their number is still checked.
    """
    import pyarrow as pa

    numbers = frozenset(numeric)
    grouped = {name for name, kind in (types or {}).items() if name in numbers and kind == pa.string()}
    plain = numbers - grouped
    kinds = {name: pa.float64() if name in plain else (types or {}).get(name, pa.string()) for name in form.header}
    try:
        columns = None if only is None else list(only)
        with _open_csv(path, form, column_types=kinds, include_columns=columns) as reader:
            for batch in reader:
                yield _ungroup(batch, grouped, form) if grouped else batch
    except (pa.ArrowInvalid, OSError) as error:
        found = explain(path, form, numeric=numbers)
        raise found or problem(path, f"be a table of {len(form.header)} columns", f"{str(error)[:200]!r}") from None


def _ungroup(batch: Any, grouped: Collection[str], form: Format) -> Any:
    """Numbers such as 1,234.5 as float64."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in grouped:
        plain = pc.replace_substring(pc.utf8_trim_whitespace(batch.column(name)), form.thousands, "")
        plain = pc.replace_substring(plain, form.decimal, ".") if form.decimal != "." else plain
        batch = batch.set_column(batch.schema.get_field_index(name), name, plain.cast(pa.float64()))
    return batch


def text_schema(path: Path, form: Format) -> dict[str, Any]:
    """The columns of a text file with a header, and the types that its first block suggests."""
    import pyarrow as pa

    line = form.skip if form.skip == 1 else None
    if "" in form.header:
        hint = f"one without a name, column {form.header.index('') + 1} of {len(form.header)}"
        raise problem(path, "name every column", hint, line=line)
    twice = next((name for name, count in Counter(form.header).items() if count > 1), None)
    if twice is not None:
        raise problem(path, "name each column once", f"{twice!r} twice", line=line)
    if len(form.header) > WIDE and _all_plain_numbers(path, form):
        return dict.fromkeys(form.header, pa.float64())
    try:
        with _open_csv(path, form) as reader:
            first = next(iter(reader), None) if form.thousands else None
            return {field.name: _kind(field, first, form) for field in reader.schema}
    except (pa.ArrowInvalid, OSError) as error:
        if "Empty CSV file" in str(error):
            raise SeriesError("A table must have at least one row below its header. Got none.") from None
        found = explain(path, form, numeric=())
        raise found or problem(path, "be a table with a header", f"{str(error)[:200]!r}") from None


def _all_plain_numbers(path: Path, form: Format) -> bool:
    """Whether the first rows of a very wide file hold plain numbers and nothing else: arrow takes seconds to find that out by itself."""
    if form.decimal != "." or form.thousands:
        return False
    try:
        with open_text(path, form) as file:
            lines = file.read(form.block).decode("utf-8", errors="replace").splitlines()[form.skip : form.skip + 20]
        rows = [line.split(form.delimiter) for line in lines[:-1] or lines]
        return all(len(list(map(float, row))) == len(form.header) for row in rows) and bool(rows)
    except (ValueError, OSError):
        return False


def _kind(field: Any, first: Any, form: Format) -> Any:
    """The type of a column; a number whose thousands are divided is one of :data:`GROUPED`."""
    import pyarrow as pa

    if first is None or not pa.types.is_string(field.type):
        return field.type
    cells = [cell for cell in first.column(field.name).to_pylist() if cell is not None]
    return GROUPED if cells and all(map(form.is_number, cells)) else field.type


@contextmanager
def _open_parquet(path: Path) -> Iterator[Any]:
    """A parquet file, through a small buffer: a map of the whole file would count as memory too."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, buffer_size=BLOCK, pre_buffer=False) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise problem(path, "be a whole parquet file", f"{str(error)[:200]!r}") from None


def parquet_batches(path: Path, *, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Record batches of a parquet file."""
    with _open_parquet(path) as file:
        yield from file.iter_batches(batch_size=ROWS, columns=None if columns is None else list(columns))


def _holds_numbers(kind: Any) -> bool:
    import pyarrow as pa

    if isinstance(kind, str):
        return kind == GROUPED
    known = pa.types
    return any(
        test(kind) for test in (known.is_integer, known.is_floating, known.is_decimal, known.is_boolean, known.is_null)
    )


@dataclass(frozen=True)
class Table:
    """A file that is open for reading."""

    columns: dict[str, bool]  # True where a column holds numbers
    batches: Iterator[Any]
    rows: int  # at least as many as will come
    form: Format | None = None  # how it is written, where it is text


def open_table(file: Path, **how: Any) -> Table:
    """The columns of a file, its record batches, and a bound on its rows; ``how`` as for :func:`.sniff`."""
    import pyarrow as pa

    suffix = inner_suffix(file)
    if suffix == ".parquet":
        with _open_parquet(file) as found:
            columns = {field.name: _holds_numbers(field.type) for field in found.schema_arrow}
            return Table(columns, parquet_batches(file), found.metadata.num_rows)
    if suffix in JSON:
        return _open_json(file)
    words = tuple(how.pop("missing", ()))
    form = replace(sniff(file, workbook=suffix in SHEETS, **how), missing=words)
    if form.header[0] == "" and "" not in form.header[1:]:
        form = replace(form, header=(UNNAMED, *form.header[1:]))
    kinds = text_schema(file, form)
    holds = {kind: _holds_numbers(kind) for kind in set(kinds.values())}
    numbers = {kind for kind, good in holds.items() if good and (kind == GROUPED or not pa.types.is_boolean(kind))}
    numeric = [name for name, kind in kinds.items() if kind in numbers]
    # A date with an offset is read as text: arrow would move it to UTC and forget where it came from.
    as_text = {
        kind
        for kind in holds
        if kind == GROUPED or pa.types.is_time(kind) or (pa.types.is_timestamp(kind) and kind.tz is not None)
    }
    text = {name for name, kind in kinds.items() if kind in as_text}
    plain = {name for name in numeric if name not in text}
    types = {name: pa.string() if name in text else kind for name, kind in kinds.items() if name not in plain}
    batches = text_batches(file, form, numeric=numeric, types=types)
    return Table({name: holds[kind] for name, kind in kinds.items()}, batches, count_lines(file, form), form)


def _open_json(file: Path) -> Table:
    """A table of JSON lines: an object a line."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    def read(**options: Any) -> Any:
        with open_bytes(file) as lines:
            return arrow_json.read_json(lines, arrow_json.ReadOptions(block_size=16 * BLOCK), **options)

    try:
        document = read()
        dates = [field.with_type(pa.string()) for field in document.schema if pa.types.is_timestamp(field.type)]
        if dates:  # arrow would move a date with an offset to UTC
            document = read(parse_options=arrow_json.ParseOptions(explicit_schema=pa.schema(dates)))
    except (pa.ArrowException, OSError) as error:
        raise problem(
            file, "hold one JSON object a line, with a number for each channel", f"{str(error)[:120]!r}"
        ) from None
    nested = next((field.name for field in document.schema if pa.types.is_nested(field.type)), None)
    if nested is not None:
        raise problem(
            file, f"hold plain values (leave {nested!r} out when you write it)", f"a nested value in {nested!r}"
        )
    columns = {field.name: _holds_numbers(field.type) for field in document.schema}
    return Table(columns, iter(document.to_batches()), document.num_rows)


def gather(batches: Iterator[Any], *, rows: int, numeric: Sequence[str]) -> tuple[Array, dict[str, Any]]:
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
    numeric_names = frozenset(numeric)
    texts: dict[str, list[Any]] = {}
    filled = 0
    for batch in batches:
        stop = filled + batch.num_rows
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for c, name in enumerate(numeric):
            column = columns[name]
            if column.null_count or column.type != pa.float64():
                column = column.cast(pa.float64())
            values[filled:stop, c] = plain(column)
        for name, column in columns.items():
            if name not in numeric_names:
                texts.setdefault(name, []).append(column)
        filled = stop
    return values[:filled], {
        name: _plain_text(pa.chunked_array(parts)).combine_chunks() for name, parts in texts.items()
    }


def _plain_text(column: Any) -> Any:
    """A column of text as the one kind of text that is asked for; other programs write long ones, and words by number."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    several = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return column.cast(pa.string()) if any(test(kind) for test in several) else column


def read_numbers(path: Path, *, names: Sequence[str], skip: int = 0) -> Array:
    """A comma-separated file without a header whose every cell is a number, as a (T, C) array."""
    if not path.is_file():
        raise problem(path, "exist", "no such file")
    rows = count_lines(path)
    if rows == skip:
        raise problem(path, f"hold rows of {len(names)} numbers", "an empty file")
    form = Format(tuple(names), skip=skip)
    values, _ = gather(text_batches(path, form, numeric=names), rows=rows, numeric=names)
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
