"""Tables of alarms, of one machine or of many: csv, parquet and JSON lines, and back as the mask that evaluation wants."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tisat.errors import DataFileError, InputError
from tisat.persistence.model_file import write_bytes
from tisat.utils.near_names import meant_file
from tisat.utils.types import Flags, JsonDict

if TYPE_CHECKING:
    import pyarrow as pa

    from tisat.alarms.alarms import Alarm

COLUMNS = (
    "series", "raised", "onset", "cleared", "raised_time", "onset_time", "cleared_time", "peak", "threshold", "rule",
    "budget", "channels", "kind", "reasons", "suppressed", "further",
    "state", "ongoing_since", "back", "back_time", "mode", "known",
)  # fmt: skip
# Columns that documents of earlier versions do not have.
ADDED = ("suppressed", "further", "state", "ongoing_since", "back", "back_time", "mode", "known")
LEAST_SHARE = 0.005  # below it a channel is not worth a word
TIMES = ("raised_time", "onset_time", "cleared_time", "back_time")


def _cells(alarm: Alarm) -> JsonDict:
    """Format an alarm as one row of a table."""
    shares = "; ".join(f"{channel} {share:.0%}" for channel, share in alarm.channels.items() if share >= LEAST_SHARE)
    row: JsonDict = {**alarm.to_json(), "channels": shares, "reasons": alarm.why, "further": alarm.joined}
    return {name: _no_formula(value) if isinstance(value, str) else value for name, value in row.items()}


def _no_formula(text: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def csv_of(alarms: Sequence[Alarm]) -> str:
    """A csv table with a header that a spreadsheet reads."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_cells(alarm) for alarm in alarms)
    return text.getvalue()


def jsonl_of(alarms: Sequence[Alarm]) -> str:
    """JSON lines."""
    return "".join(json.dumps(alarm.to_json()) + "\n" for alarm in alarms)


def arrow_of(alarms: Sequence[Alarm]) -> pa.Table:
    """A pyarrow table."""
    import pyarrow

    number, text = pyarrow.int64(), pyarrow.string()
    types = dict.fromkeys(("raised", "onset", "cleared", "ongoing_since", "back"), number) | dict.fromkeys(
        ("peak", "threshold"), pyarrow.float64()
    )
    rows = [
        {name: value if name in types or value is None else str(value) for name, value in _cells(alarm).items()}
        for alarm in alarms
    ]
    return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema([(name, types.get(name, text)) for name in COLUMNS]))


def dated(table: pa.Table, alarms: Sequence[Alarm], *, keep_offset: bool = True) -> pa.Table:
    """The arrow table with its times as dates, or as numbers where they are none.

    Dates with an offset keep it where all have the same one; in UTC where they differ (summer time) or ``keep_offset`` is False.
    """
    import pyarrow as pa

    texts = [stamp for alarm in alarms for name in TIMES if isinstance(stamp := getattr(alarm, name), str)]
    ends = {"UTC" if text[-1] == "Z" else text[-6:] for text in texts}
    zone = ends.pop() if len(ends) == 1 and keep_offset else "UTC"
    for name in TIMES:
        stamps = [getattr(alarm, name) for alarm in alarms]
        dates = [stamp for stamp in stamps if stamp is not None]
        if dates and all(isinstance(stamp, float) for stamp in dates):
            column = pa.array(stamps, pa.float64())
        elif dates:
            zoned = any(stamp[-1] == "Z" or stamp[-6] in "+-" for stamp in dates)
            column = pa.array(stamps, pa.string()).cast(pa.timestamp("ns", zone if zoned else None))
        else:
            continue
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def table_suffix(path: str | Path) -> str:
    """The suffix of a table of alarms; refuse one that no table is written as."""
    suffix = Path(path).suffix
    if suffix not in (".csv", ".parquet", ".jsonl"):
        raise InputError(f"A table of alarms must end in .csv, .parquet or .jsonl. Got {str(path)!r} instead.")
    return suffix


def write_table(path: str | Path, alarms: Sequence[Alarm]) -> None:
    """Write a table of alarms.

    The suffix says how: ``.csv``, ``.parquet`` or ``.jsonl``.
    """
    suffix = table_suffix(path)
    if suffix == ".csv":
        write_bytes(path, csv_of(alarms).encode())
    elif suffix == ".jsonl":
        write_bytes(path, jsonl_of(alarms).encode())
    else:
        import pyarrow.parquet as parquet

        buffer = io.BytesIO()
        parquet.write_table(arrow_of(alarms), buffer)
        write_bytes(path, buffer.getvalue())


def _rows(file: Path) -> list[JsonDict]:
    if file.suffix == ".csv":
        with file.open(newline="", encoding="utf-8") as text:
            return list(csv.DictReader(text))
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    if file.suffix == ".parquet":
        import pyarrow.parquet as parquet

        rows: list[JsonDict] = parquet.read_table(file).to_pylist()
        return rows
    raise DataFileError(f"A table of alarms must end in .csv, .parquet or .jsonl. Got {str(file)!r} instead.")


def read_active(path: str | Path, *, length: int, series: str | None = None) -> Flags:
    """Read a table of alarms as a mask over ``length`` rows.

    ``series`` takes only those of one machine. Suppressed alarms are left out: nobody was called.
    """
    file = Path(path)
    if not file.is_file():
        raise DataFileError(f"File not found: {str(file)!r}. The table of alarms must be a file.{meant_file(file)}")
    try:
        rows = _rows(file)
    except (ValueError, OSError) as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(f"The table of alarms {str(file)!r} could not be read: {error}") from None
    active = np.zeros(length, dtype=np.bool_)
    for number, row in enumerate(rows):
        if row.get("suppressed") or (series is not None and str(row.get("series", "")).removeprefix("'") != series):
            continue
        try:
            raised_row = int(row["raised"])
            cleared = length if row.get("cleared") in (None, "") else int(row["cleared"])
        except (KeyError, TypeError, ValueError):
            raise DataFileError(
                f"The table of alarms {str(file)!r} must have rows in 'raised' and 'cleared'. Row {number} has not."
            ) from None
        if not 0 <= raised_row < cleared <= length:
            raise DataFileError(
                f"The alarms of {str(file)!r} must lie within the {length} rows of the series. "
                f"Got [{raised_row}, {cleared}) at row {number} instead."
            )
        active[raised_row:cleared] = True
    return active
