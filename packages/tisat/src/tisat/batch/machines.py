"""Find the machines in files without reading their rows.

A machine is a file of its own; or the rows of a long table that carry its name (parquet: only those rows are read); or a folder
``column=NAME`` of a partitioned data set, as Spark, Dask and Ray write them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

from tisat.datasets.user_files import files_of
from tisat.errors import DataFileError
from tisat.series import Series
from tisat.utils.types import JsonDict, Options

How: TypeAlias = Options  # how files are read: options of Series.read
SUFFIX = ".tisat"
ENTITY = "unique_id"  # the column that names the machine of a row in a long table, unless told
# Options that a part of a file cannot be read with.
WHOLE = ("sort", "dedup", "timezone", "time_format", "delimiter", "decimal", "encoding", "sheet")
_TABLES: dict[tuple[Any, ...], dict[str, Series]] = {}  # the last text table this process has read


@dataclass(frozen=True)
class Machine:
    """One machine, and where its rows are.

    Parameters
    ----------
    name : str
    files : tuple of str
        That hold its rows.
    entity : str
        The column of a long table that names it; empty where a file is its own.
    """

    name: str
    files: tuple[str, ...]
    entity: str = ""

    def read(self, how: How | None = None) -> Series:
        """Its rows; ``how`` as :meth:`tisat.Series.read` takes it."""
        options = {key: value for key, value in (how or {}).items() if value}
        if not self.entity:
            options.pop("entity", None)
            if len(self.files) == 1:
                return Series.read(self.files[0], name=self.name, **options)
            return _filtered(self, options)
        if self.files[0].lower().endswith(".parquet") and not any(key in options for key in WHOLE):
            return _filtered(self, options)
        return _of_table(self.files[0], {**options, "entity": self.entity})[self.name]

    @property
    def stamp(self) -> list[list[int]]:
        """Sizes and times of its files: another stamp, other rows."""
        found = [Path(file).stat() for file in self.files]
        return [[one.st_size, one.st_mtime_ns] for one in found]


class RowJob:
    """A job that gives one row of plain values for each machine."""

    def lost(self, machine: Machine, why: str) -> JsonDict:
        """The row of a machine of which nothing came, or of a group of them."""
        return {"machine": machine.name, "trouble": why}


def _of_table(file: str, told: How) -> dict[str, Series]:
    """Every series of a long text table; the last one read is kept, so that a worker reads it once for all its machines."""
    key = (file, Path(file).stat().st_mtime_ns, repr(sorted(told.items())))
    if key not in _TABLES:
        _TABLES.clear()
        _TABLES[key] = Series.read_all(file, **told)
    return _TABLES[key]


def _filtered(machine: Machine, told: How) -> Series:
    """The rows of one machine from parquet files, in the order of their time."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    data = ds.dataset(list(machine.files), format="parquet")
    chosen = None
    if machine.entity:
        chosen = ds.field(machine.entity).cast(pa.string()) == machine.name
    table = data.to_table(filter=chosen)
    if machine.entity:
        table = table.drop_columns([machine.entity])
    options = {key: told[key] for key in ("time", "label", "channels", "drop") if key in told}
    try:
        return Series.from_table(table, name=machine.name, **options)
    except DataFileError:
        raise
    except Exception as error:  # pyarrow and pandas have a dozen of their own
        raise DataFileError(f"{machine.files[0]}: {error}") from None


def model_file(model: str | Path, machine: str) -> Path:
    """The file of the model of a machine: the one given, or its own in the folder given."""
    path = Path(model)
    if not path.is_dir():
        return path
    own = path / f"{machine}{SUFFIX}"
    if not own.is_file():
        raise DataFileError(f"The folder {str(path)!r} must hold a model of {machine!r}. There is no {own.name!r}.")
    return own


def find_machines(paths: Sequence[str | Path], how: How | None = None) -> list[Machine]:
    """The machines that some paths mean, by name; their rows are not read.

    Parameters
    ----------
    paths : sequence of file, folder or pattern
        A folder may be a partitioned data set: ``data/id=pump-1/part-0.parquet``.
    how : mapping, optional
        As :meth:`tisat.Series.read` takes it; ``entity`` names the column of a long table.
    """
    told = dict(how or {})
    machines: dict[str, Machine] = {}
    for path in paths:
        for machine in _machines_of(Path(path), str(told.get("entity") or ""), told):
            if machine.name in machines:
                raise DataFileError(
                    f"Each machine must be named once. Got {machine.name!r} again in {machine.files[0]!r}."
                )
            machines[machine.name] = machine
    return list(machines.values())


def _machines_of(path: Path, entity: str, told: How) -> Iterator[Machine]:
    if path.is_dir():
        parts = sorted(one for one in path.iterdir() if one.is_dir() and "=" in one.name)
        if parts:
            yield from _partitions(path, parts, entity)
            return
    for file in files_of(path):
        yield from _in_file(file, entity, told)


def _partitions(path: Path, parts: Sequence[Path], entity: str) -> Iterator[Machine]:
    for part in parts:
        column, _, name = part.name.partition("=")
        if entity and column != entity:
            raise DataFileError(
                f"The data set {str(path)!r} must be partitioned by {entity!r}, as --entity says. Got {column!r} instead."
            )
        files = tuple(str(file) for file in sorted(part.rglob("*.parquet")))
        if not files:
            raise DataFileError(f"The part {str(part)!r} of a data set must hold parquet files. There are none.")
        yield Machine(unquote(name), files)


def _header(file: Path) -> str:
    """The beginning of a text file, packed or not, to look for a name in."""
    from tisat.io.compression import open_bytes

    with open_bytes(file) as opened:
        return opened.read(1 << 16).split(b"\n", 1)[0].decode("utf-8", "replace")


def _in_file(file: Path, entity: str, told: How) -> Iterator[Machine]:
    from tisat.io.files import stem_of

    if not file.name.lower().endswith(".parquet"):
        column = entity or (ENTITY if ENTITY in _header(file) else "")
        if not column:
            yield Machine(stem_of(file), (str(file),))
            return
        for name in _of_table(str(file), {**{key: value for key, value in told.items() if value}, "entity": column}):
            yield Machine(name, (str(file),), column)
        return
    import pyarrow.parquet as pq

    try:
        columns = pq.read_schema(file).names
        column = entity or (ENTITY if ENTITY in columns else "")
        names = pq.read_table(file, columns=[column]).column(0).unique().to_pylist() if column in columns else []
    except (OSError, ValueError) as error:
        raise DataFileError(f"The file {str(file)!r} must be a whole parquet file. It is not: {error}.") from None
    if entity and entity not in columns:
        raise DataFileError(f"The file {str(file)!r} must have the column {entity!r}. It has {', '.join(columns)}.")
    if not names:
        yield Machine(stem_of(file), (str(file),))
    for name in names:
        yield Machine(str(name), (str(file),), column)
