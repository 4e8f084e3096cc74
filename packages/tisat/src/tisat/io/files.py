"""A file as columns with roles: values, channels, times, labels, and which machine a row is of.

Everything that may be said of how a file is to be read is in :class:`Reading`; what had to be found out comes back, so that
rows which come one by one later can be read the same way. This module does not know series.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from tisat.errors import DataFileError, ParameterError, SeriesError
from tisat.io.arrow_arrays import plain
from tisat.io.columns import UNNAMED, Roles, label_flags, listed
from tisat.io.compression import SUFFIXES
from tisat.io.dates import check_format
from tisat.io.tables import gather, open_table, stray_cell
from tisat.io.time_columns import DEDUPS, is_time_of_day, read_time_columns
from tisat.io.time_zones import zone_of
from tisat.io.timestamps import Times, epoch_unit
from tisat.utils.near_names import meant, meant_file
from tisat.utils.types import Array, Flags, Options

ENTITY = "unique_id"  # the usual name of the column that says which machine a row is of


@dataclass(frozen=True)
class Reading:
    """What was said of how files are to be read; None or empty where nothing was."""

    time: str | None = None  # the column; a date and a time of the day as "Date+Time"
    label: str | None = None
    channels: Sequence[str] | None = None
    drop: Sequence[str] = ()
    missing: Sequence[str] = ()  # words that stand for a missing value, besides nan, null, n/a and the like
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    time_format: str | None = None
    timezone: str | None = None
    sort: bool = False
    dedup: str | None = None
    entity: str | None = None
    find_entity: bool = False  # a column that is called like one names the series, where nothing else was said
    seen: Mapping[str, str] = field(
        default_factory=dict
    )  # how earlier files were written: decides what this one leaves open

    def __post_init__(self) -> None:
        if self.time_format is not None:
            check_format(self.time_format)
        if self.timezone is not None:
            zone_of(self.timezone)
        if isinstance(self.missing, str):
            raise ParameterError(f"The 'missing' option must be a list of words. Got {self.missing!r} instead.")
        if self.dedup is not None and self.dedup not in DEDUPS:
            raise ParameterError(
                f"--dedup must be {', '.join(DEDUPS[:-1])} or {DEDUPS[-1]}. Got {self.dedup!r} instead."
            )

    @classmethod
    def of(cls, options: Options) -> Reading:
        """From keyword arguments; one it does not know is refused."""
        names = [one.name for one in fields(cls)]
        wrong = next((name for name in options if name not in names), None)
        if wrong is not None:
            raise ParameterError(
                f"The options of reading a file must be among {', '.join(names)}. Got {wrong!r} instead.{meant(wrong, names)}"
            )
        return cls(**options)


@dataclass(frozen=True)
class Columns:
    """A file, read."""

    values: Array  # (T, C)
    channels: list[str]
    times: Times | None
    labels: Flags | None
    entities: Any = None  # an arrow column, where one was asked for
    notes: tuple[str, ...] = ()
    seen: dict[str, str] = field(default_factory=dict)  # how it was written


def check_file(path: str | Path) -> Path:
    """The path of a file that can be a table, or a sentence."""
    file = Path(path)
    if not file.is_file():
        if file.is_dir():
            raise DataFileError(f"{str(file)!r} is a folder. The series must be a csv, xlsx, jsonl or parquet file.")
        raise DataFileError(f"File not found: {str(file)!r}.{meant_file(file)}")
    if not file.name.lower().endswith(SUFFIXES):
        raise DataFileError(
            f"The series file {str(file)!r} must end in one of {' '.join(SUFFIXES)}. Got {file.suffix!r} instead; "
            "if it is text, give it a name that ends in .csv."
        )
    return file


def read_columns(file: Path, how: Reading) -> Columns:
    """The columns of a file, each in its role."""
    import pyarrow as pa

    table = open_table(
        file,
        **{name: getattr(how, name) for name in ("delimiter", "decimal", "encoding", "sheet", "missing")},
        seen=dict(how.seen),
    )
    entity = ENTITY if how.entity is None and how.find_entity and ENTITY in table.columns else how.entity
    unnamed = table.form is not None and table.form.header[0] == UNNAMED
    aside = [UNNAMED] if unnamed and table.columns[UNNAMED] and _is_free(UNNAMED, how, entity) else []
    roles = Roles(
        list(table.columns), how.time, how.label, how.channels, [*how.drop, *aside], entity=entity, numeric=table.columns,
        option="--channels",
    )  # fmt: skip
    text = [column for column in roles.channels if not table.columns[column]]
    if text:
        if ENTITY in text and entity is None:
            raise SeriesError(
                f"The column {ENTITY!r} says that the table holds several machines. Type --entity {ENTITY} to read them."
            )
        if table.form is not None and table.rows <= 2 and 1 < len(text) == len(roles.channels):  # lines
            raise SeriesError(
                "A table must have rows of numbers below its header. Got one line of words, such as units."
            )
        stray = None if table.form is None else stray_cell(file, table.form, text, told=how.decimal is not None)
        if stray is not None:
            raise stray
        several = f"columns {listed(text)}" if len(text) > 1 else f"column {text[0]!r}"
        raise SeriesError(
            f"The {several} of a table must hold numbers. Got text or dates instead. "
            f"Leave {'them' if len(text) > 1 else 'it'} out with --drop {shlex.quote(','.join(text))}, or drop={text!r}; "
            f"if it is the time, give --time {shlex.quote(text[0])}; if it names the machine, --entity {shlex.quote(text[0])}."
        )
    if roles.label is not None and not table.columns[roles.label]:
        raise SeriesError(f"The label column {roles.label!r} must hold 0 and 1. Got text instead.")
    values, texts = gather(table.batches, rows=table.rows, numeric=roles.channels)
    if len(values) == 0:
        raise SeriesError("A table must have at least one row below its header. Got none.")
    notes = [*(() if table.form is None else table.form.notes), *roles.notes]
    form_notes = {} if table.form is None else table.form.said()
    if how.drop:
        form_notes["drop"] = ",".join(how.drop)
    expected = (
        *table.columns,
        *how.seen.get("drop", "").split(","),
    )  # a model fitted with --drop takes files without the column
    absent = [name for name in how.drop if name not in expected]
    if absent:
        notes.append(
            f"no column {' and none '.join(map(repr, absent))} to leave out; there are {listed(list(table.columns))}"
        )
    times = None
    pair = list(roles.times)
    if aside:
        pair = _unnamed_counter(file, texts, pair, notes, strict=how.channels is None)
    if len(pair) == 2 and not is_time_of_day(texts[pair[1]]):
        notes.append(f"the column {pair[1]!r} was left out; {pair[0]!r} is the time")
        pair = pair[:1]
    elif len(pair) == 2:
        notes.append(f"the time is {pair[0]!r} and {pair[1]!r} together")
    if pair:
        try:
            times, form = read_time_columns(
                [texts[name] for name in pair],
                pair,
                time_format=how.time_format,
                timezone=how.timezone,
                seen=how.seen.get("time_format"),
            )
        except SeriesError as error:
            if unnamed and pair == [UNNAMED] and not re.match(r"\s*\d", str(texts[UNNAMED][0])):
                raise SeriesError(
                    f"{error} It is in the first column, which has no name. {_index_saved(file)}"
                ) from None
            raise
        if form is not None:
            form_notes["time_format"] = form
            notes.append(f"dates were read {form}; --time-format says another way")
    elif how.timezone is not None or how.time_format is not None:
        raise SeriesError(
            f"The table must have a time column. Got {listed(list(table.columns))}; --time says which it is."
        )
    labels = None
    if roles.label is not None:
        column = plain(texts[roles.label].cast(pa.float64()))
        labels = label_flags(column, roles.label, told=how.label is not None)
    entities = None if entity is None else texts[entity]
    return Columns(values, roles.channels, times, labels, entities, tuple(notes), form_notes)


def _is_free(column: str, how: Reading, entity: str | None) -> bool:
    """Whether nothing was said of a column."""
    return column not in (how.time, how.label, entity, *how.drop, *(how.channels or ()))


def _unnamed_counter(
    file: Path, texts: dict[str, Any], pair: list[str], notes: list[str], *, strict: bool
) -> list[str]:
    """The columns of the time, where the first column has no name and holds numbers: a count of rows is left out."""
    numbers = np.asarray(plain(texts[UNNAMED]), dtype=np.float64)
    if bool((np.diff(numbers) == 1).all()) and float(numbers[0]).is_integer() and epoch_unit(float(numbers[0])) is None:
        notes.append("the first column has no name, counts rows and was left out")
        return pair
    if not pair and epoch_unit(float(numbers[0])) is not None:
        return [UNNAMED]
    if not strict:
        return pair
    raise SeriesError(
        f"A first column without a name must hold dates, or count the rows. Got {listed([f'{one:g}' for one in numbers[:3]])} instead. {_index_saved(file)}"
    )


def _index_saved(file: Path) -> str:
    return (
        f"If it is the time, save it under a name: frame.to_csv({file.name!r}, index_label='time'); "
        f"--drop {shlex.quote(UNNAMED)}, or drop=[{UNNAMED!r}], leaves it out."
    )


def stem_of(file: Path) -> str:
    """A file's name without what it ends in.

    Examples
    --------
    >>> stem_of(Path("pump.7.csv.gz"))
    'pump.7'
    """
    longest = sorted(SUFFIXES, key=len, reverse=True)
    return next((file.name[: -len(end)] for end in longest if file.name.lower().endswith(end)), file.stem)


def parts_of(found: Columns, name: str) -> dict[str, Columns]:
    """The rows of each machine, in the order in which their names first appear; one part where no column names them."""
    import pyarrow as pa

    if found.entities is None:
        return {name: found}
    encoded = found.entities.cast(pa.string()).dictionary_encode()
    if encoded.null_count:
        row = int(np.argmax(np.asarray(encoded.is_null())))
        raise SeriesError(
            f"The column that --entity names must name a machine in every row. Got an empty cell at row {row}."
        )
    codes = plain(encoded.indices)
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    parts: dict[str, Columns] = {}
    for code, entity in enumerate(encoded.dictionary.to_pylist()):
        picked = order[edges[code] : edges[code + 1]]
        first, stop = int(picked[0]), int(picked[-1]) + 1
        # The usual case is one machine after another: then a view, not a copy.
        mine = slice(first, stop) if stop - first == len(picked) else picked
        times = found.times
        if times is not None:
            offsets = None if times.offsets is None else times.offsets[mine]
            times = replace(times, values=times.values[mine], offsets=offsets)
        labels = None if found.labels is None else found.labels[mine]
        parts[entity] = replace(found, values=found.values[mine], times=times, labels=labels, entities=None)
    return parts
