"""The file lists of TSB-AD and its published VUS-PR of every series.

Both lie in the folder ``tsb-ad`` of the data folder, as TSB-AD publishes them: ``TSB-AD-M-Eva.csv`` or ``TSB-AD-U-Eva.csv``, and
``multivariate_VUS-PR.csv`` or ``univariate_VUS-PR.csv`` (``multi_mergedTable_VUS-PR.csv`` and ``uni_mergedTable_VUS-PR.csv`` in its
repository). No value of a series is read here.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tisat.errors import DataFileError
from tisat.utils.validation import check_choice
from tisat_bench.datasets.loading import ENVIRONMENT, data_root

FOLDER = "tsb-ad"
TABLES = {
    "tsb-ad-m": ("TSB-AD-M", ("multivariate_VUS-PR.csv", "multi_mergedTable_VUS-PR.csv")),
    "tsb-ad-u": ("TSB-AD-U", ("univariate_VUS-PR.csv", "uni_mergedTable_VUS-PR.csv")),
}
FACTS = ("ts_len", "anomaly_len", "num_anomaly", "avg_anomaly_len", "anomaly_ratio", "point_anomaly", "seq_anomaly")
NAME = re.compile(r"\d+_(?P<dataset>.+?)_id_\d+_.*_tr_(?P<train>\d+)_1st_(?P<onset>\d+)\.csv")


@dataclass(frozen=True)
class ListedSeries:
    """One series of the list: what its name and the published table say of it."""

    file: str
    dataset: str
    train_rows: int
    onset: int  # the first anomalous row
    rows: int
    anomalous_rows: int
    events: int
    published: Mapping[str, float]  # VUS-PR by detector

    @property
    def stem(self) -> str:
        """The name of the file without its ending."""
        return self.file.removesuffix(".csv")


@dataclass(frozen=True)
class Benchmark:
    """A list of series for evaluation, and the detectors with published results."""

    name: str  # tsb-ad-m or tsb-ad-u
    title: str  # TSB-AD-M or TSB-AD-U
    series: tuple[ListedSeries, ...]
    detectors: tuple[str, ...]

    @property
    def univariate(self) -> bool:
        """Whether each series has one channel."""
        return self.name == "tsb-ad-u"


def _rows(file: Path, *columns: str) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        missing = [name for name in columns if name not in (reader.fieldnames or ())]
        if missing:
            raise DataFileError(
                f"The file {str(file)!r} must have the columns {', '.join(columns)}. {', '.join(missing)} is missing."
            )
        return list(reader)


def _parse_row(row: dict[str, str], detectors: tuple[str, ...], file: Path) -> ListedSeries:
    match = NAME.fullmatch(row["file"])
    if match is None:
        raise DataFileError(
            f"The column 'file' of {str(file)!r} must hold names such as 002_MSL_id_1_Sensor_tr_500_1st_900.csv. "
            f"Got {row['file']!r} instead."
        )
    try:
        rows, anomalous, events = (int(float(row[name])) for name in FACTS[:3])
        published = {name: float(row[name]) for name in detectors}
    except ValueError as error:
        raise DataFileError(f"The row {row['file']!r} of {str(file)!r} must hold numbers. Got {error}.") from None
    return ListedSeries(
        row["file"], match["dataset"], int(match["train"]), int(match["onset"]), rows, anomalous, events, published
    )


def read_benchmark(name: str, data: str | Path | None = None) -> Benchmark:
    """Read the list of series and the published results.

    Parameters
    ----------
    name : "tsb-ad-m" or "tsb-ad-u"
    data : folder, optional
        The data folder, which holds ``tsb-ad``; ``TISAT_DATA`` or ``~/.cache/tisat`` where not given.

    Raises
    ------
    DataFileError
        Where the list or the results are missing or malformed.
    """
    title, results = TABLES[check_choice(name, "name", "read_benchmark", choices=tuple(TABLES))]
    folder = data_root(data) / FOLDER
    list_file = folder / f"{title}-Eva.csv"
    table = next((folder / each for each in results if (folder / each).is_file()), folder / results[0])
    for file in (list_file, table):
        if not file.is_file():
            raise DataFileError(
                f"File not found: {file}. It is published in github.com/TheDatumOrg/TSB-AD (Datasets/File_List and "
                f"benchmark_exp/benchmark_eval_results); put it there, or name the folder that holds {FOLDER!r} with --data (data=...) or {ENVIRONMENT}."
            )
    names = {row["file_name"] for row in _rows(list_file, "file_name")}
    rows = _rows(table, "file", *FACTS[:3])
    detectors = tuple(column for column in rows[0] if column != "file" and column not in FACTS) if rows else ()
    listed = tuple(_parse_row(row, detectors, table) for row in rows if row["file"] in names)
    without = names - {one.file for one in listed}
    if without:
        raise DataFileError(
            f"The file {str(table)!r} must have a row for each series of {list_file.name}. "
            f"{len(without)} are missing, {min(without)!r} first."
        )
    return Benchmark(name, title, listed, detectors)
