"""SWaT, Secure Water Treatment: the normal and the attack log of December 2015, as csv or xlsx.

The quirks of the published sheets are on the card: a title row, stray spaces, "A ttack", two versions of the normal
log. The set is given out by iTrust on request only. This module does not know where the folder lies.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tisat.errors import ParameterError
from tisat.events import labels_from_events
from tisat.io.compression import problem, sheet_text
from tisat.io.dialect import Format
from tisat.io.tables import count_lines, first_lines, gather, read_numbers, text_batches
from tisat.series import Series
from tisat.utils.types import Flags
from tisat_bench.datasets.base import Dataset, Entity
from tisat_bench.datasets.cards import Card
from tisat_bench.datasets.rows import check_rows, regular_clock, series_of

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "swat"  # the one entity
TIME = "Timestamp"
LABEL = "Normal/Attack"
TIME_FORMATS = ("%d/%m/%Y %I:%M:%S %p", "%d/%m/%Y %H:%M:%S", "%Y-%m-%d %H:%M:%S")  # the log; as spreadsheets re-save it
LOG = re.compile(r"swat_dataset_(normal|attack)_(v\d)\.(csv|csv\.gz|xlsx)", re.IGNORECASE)
VERSIONS = ("v0", "v1")  # of the normal log; the attack log is v0
EVENTS = "events.csv"  # start,stop: the intervals alone, for who has no access to the log
HEADER_WITHIN = 5  # lines


def _logs(folder: Path) -> dict[tuple[str, str], Path]:
    """(kind, version) -> file, looked for in the folder and one below it.

    Csv before xlsx.
    """
    logs: dict[tuple[str, str], Path] = {}
    for file in sorted([*folder.glob("*"), *folder.glob("*/*")], key=lambda file: (file.suffix == ".xlsx", str(file))):
        match = LOG.fullmatch(file.name)
        if match is not None:
            logs.setdefault((match[1].lower(), match[2].lower()), file)
    return logs


def _find_header(file: Path, lines: list[list[str]], card: Card) -> tuple[int, list[str]]:
    """Which of the first lines holds the names, and the names."""
    for number, cells in enumerate(lines):
        names = [cell.strip() for cell in cells]
        if TIME in names:
            if len(set(names)) != len(names):
                raise problem(file, "name each column once", "a name twice", line=number + 1)
            strange = sorted(set(names) - {TIME, LABEL, *card.channel_names})
            absent = [name for name in (*card.channel_names, LABEL) if name not in names]
            if strange or absent:
                got = f"none called {absent[0]!r}" if absent else f"one called {strange[0]!r}"
                must = f"have the columns {TIME}, the {card.channels} sensors and actuators, and {LABEL}"
                raise problem(file, must, got, line=number + 1)
            return number, names
    first = ",".join(lines[0])[:60] if lines else ""
    raise problem(
        file, f"name its columns, {TIME} first, in one of its first {HEADER_WITHIN} lines", f"{first!r}", line=1
    )


def _open_log(file: Path, card: Card, *, only: Sequence[str] | None = None) -> tuple[Iterator[Any], int, int]:
    """Batches with these columns (or all), a bound on the rows, and the lines above the first row; a workbook is read as text."""
    sheet_form = Format((), text=sheet_text(file)[0] if file.suffix == ".xlsx" else None)
    lines = first_lines(file, sheet_form, count=HEADER_WITHIN)
    if not any(TIME in cells for cells in lines):
        divided = replace(sheet_form, delimiter=";")
        semicolon = first_lines(file, divided, count=HEADER_WITHIN)
        if any(TIME in cells for cells in semicolon):
            sheet_form, lines = divided, semicolon
    above, names = _find_header(file, lines, card)
    commas = any(re.fullmatch(r"-?\d+,\d+", cell) for cells in lines[above + 1 :] for cell in cells)
    decimal = "," if sheet_form.delimiter == ";" and commas else "."
    form = replace(sheet_form, header=tuple(names), skip=above + 1, decimal=decimal)
    batches = text_batches(file, form, numeric=card.channel_names, only=only)
    return batches, count_lines(file, form), above + 1


def _labels(file: Path, column: pa.ChunkedArray, above: int) -> Flags:
    """Normal -> False, Attack -> True, whatever the spaces."""
    import pyarrow.compute as pc

    words = pc.utf8_lower(pc.replace_substring(pc.fill_null(column, ""), pattern=" ", replacement=""))
    attack = np.asarray(pc.equal(words, "attack"), dtype=np.bool_)
    wrong = ~(attack | np.asarray(pc.equal(words, "normal"), dtype=np.bool_))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise problem(
            file,
            f"hold Normal or Attack in column {LABEL!r}",
            f"{column[row].as_py()!r}",
            row=row,
            line=row + above + 1,
        )
    return attack


def _clock(file: Path, column: pa.ChunkedArray, above: int, card: Card) -> npt.NDArray[Any]:
    """The log's timestamps.

    Where they repeat or go back, rows counted by the sampling period, and a warning.
    """
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(pc.fill_null(column, ""))
    candidates = []
    for form in TIME_FORMATS:
        candidates.append(pc.strptime(text, format=form, unit="s", error_is_null=True))
        if not candidates[-1].null_count:
            break
    stamps = min(candidates, key=lambda candidate: candidate.null_count)
    if stamps.null_count:
        row = int(np.argmax(np.asarray(stamps.is_null())))
        must = f"hold a time such as '28/12/2015 10:00:00 AM' in column {TIME!r}"
        raise problem(file, must, f"{column[row].as_py()!r}", row=row, line=row + above + 1)
    times = stamps.to_numpy(zero_copy_only=False)
    late = np.flatnonzero(times[1:] <= times[:-1])
    if not late.size:
        return np.asarray(times)
    warnings.warn(
        f"The timestamps of {file} do not increase at {late.size} rows, first at row {late[0] + 1}; "
        f"all rows are kept and counted {card.period:g} s apart instead.",
        UserWarning,
        stacklevel=2,
    )
    return regular_clock(len(times), card)


def _series(card: Card, file: Path, split: str, version: str, *, strict: bool) -> Series:
    batches, rows, above = _open_log(file, card)
    values, texts = gather(batches, rows=rows, numeric=card.channel_names)
    if not len(values):
        raise problem(file, "have rows below its header", "none")
    check_rows(file, len(values), card, f"normal {version}" if split == "train" else NAME, split, strict=strict)
    attack = _labels(file, texts[LABEL], above)
    if split == "train" and attack.any():
        row = int(np.argmax(attack))
        raise problem(file, "hold normal operation only", "Attack", row=row, line=row + above + 1)
    return series_of(
        file,
        values,
        timestamps=_clock(file, texts[TIME], above, card),
        channels=card.channel_names,
        labels=attack if split == "test" else None,
        name=NAME,
    )


def _labels_of_log(file: Path, card: Card, *, strict: bool) -> Flags:
    batches, _, above = _open_log(file, card, only=[LABEL])
    _, others = gather(batches, rows=0, numeric=())
    labels = _labels(file, others[LABEL], above)
    check_rows(file, len(labels), card, NAME, "test", strict=strict)
    return labels


def _labels_of_events(file: Path, card: Card) -> Flags:
    if first_lines(file, count=1) != [["start", "stop"]]:
        raise problem(file, "begin with the columns start,stop", "something else", line=1)
    pairs = read_numbers(file, names=("start", "stop"), skip=1)
    start, stop = pairs.T
    wrong = (start < 0) | (start >= stop) | (stop > card.test_rows) | (pairs % 1 != 0).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        got = f"{pairs[row, 0]:g},{pairs[row, 1]:g}"
        raise problem(file, f"hold whole numbers 0 <= start < stop <= {card.test_rows}", got, row=row, line=row + 2)
    return labels_from_events(pairs, length=card.test_rows)


def labels(folder: Path, card: Card, *, strict: bool) -> dict[str, Flags]:
    """The labels of the attack log.

    Where it is not there, those of ``events.csv`` (columns start,stop, half-open).
    """
    log = _logs(folder).get(("attack", "v0"))
    if log is not None:
        return {NAME: _labels_of_log(log, card, strict=strict)}
    events = folder / EVENTS
    if not events.is_file():
        raise problem(folder / "SWaT_Dataset_Attack_v0.csv", "exist (csv or xlsx)", "no such file")
    return {NAME: _labels_of_events(events, card)}


def newest(folder: Path) -> str | None:
    """The version of the normal log that is taken unless asked otherwise: v1 before v0."""
    logs = _logs(folder)
    return next((candidate for candidate in reversed(VERSIONS) if ("normal", candidate) in logs), None)


def dataset(folder: Path, card: Card, *, version: str | None, strict: bool) -> Dataset:
    """The one entity, where both logs are there.

    The normal log v1 is taken before v0 unless asked otherwise.
    """
    logs = _logs(folder)
    present = [candidate for candidate in reversed(VERSIONS) if ("normal", candidate) in logs]
    if version is not None and version not in present and present:
        raise ParameterError(
            f"The 'version' parameter of load must be a normal log of the folder: {', '.join(present)}. "
            f"Got {version!r} instead."
        )
    newest_version = version or newest(folder)
    if newest_version is None or not present or ("attack", "v0") not in logs:
        return Dataset(card=card, entities=(), missing=(NAME,))
    normal, attack = logs["normal", newest_version], logs["attack", "v0"]
    entity = Entity(
        name=NAME,
        period=card.period,
        read_train=partial(_series, card, normal, "train", newest_version, strict=strict),
        read_test=partial(_series, card, attack, "test", "v0", strict=strict),
    )
    return Dataset(card=card, entities=(entity,))
