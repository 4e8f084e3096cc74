"""Memory that a large text file takes, and readers of workbooks; ratios, side by side in one run.

    python benchmarks/bench_datasets.py memory [--rows 500000] [--channels 51]
    python benchmarks/bench_datasets.py workbook [--rows 20000]

Times are CPU seconds of this process (the best of the repeats), since the wall clock of a shared machine says little.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PEAK = """
import sys
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
import pyarrow.csv, pandas
from tisat.series import Series
before = peak()
how, path = sys.argv[1:]
table = Series.read(path) if how == "tisat" else pyarrow.csv.read_csv(path) if how == "arrow" else pandas.read_csv(path)
if how == "arrow":
    table = Series.from_table(table)
print(peak() - before)
"""

SHEET = """
import sys
import python_calamine
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
before = peak()
sheet = python_calamine.CalamineWorkbook.from_path(sys.argv[1]).get_sheet_by_index(0)
assert sum(1 for _ in sheet.iter_rows())
print(peak() - before)
"""


def best(action, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def bench_memory(rows: int, channels: int) -> None:
    """Peak memory of reading, each way in a process of its own, over the bytes of the result."""
    block = np.random.default_rng(0).normal(size=(1000, channels))
    cells = [",".join(f"{x:.6f}" for x in row) for row in block]
    result = rows * (channels + 1) * 8
    with tempfile.TemporaryDirectory() as folder:
        for count in (rows // 5, rows):
            file = Path(folder) / f"{count}.csv"
            with file.open("w") as opened:
                opened.write(",".join(["timestamp", *(f"c{c}" for c in range(channels))]) + "\n")
                opened.writelines(f"{t},{cells[t % 1000]}\n" for t in range(count))
        print(f"{rows} rows x {channels} channels, {result / 1e6:.0f} MB as float64")
        print(f"{'reader':<28}{'peak MB':>9}{'peak / result':>15}{'growth / growth of result':>28}")
        for how, title in (
            ("tisat", "Series.read"),
            ("arrow", "arrow, then from_table"),
            ("pandas", "pandas.read_csv"),
        ):
            small, large = (
                int(
                    subprocess.run(
                        [sys.executable, "-c", PEAK, how, f"{folder}/{count}.csv"],
                        capture_output=True,
                        text=True,
                        check=True,
                    ).stdout
                )
                for count in (rows // 5, rows)
            )
            growth = (large - small) / (result * 4 / 5)
            print(f"{title:<28}{large / 1e6:>9.0f}{large / result:>15.2f}{growth:>28.2f}")


def bench_workbook(rows: int) -> None:
    """Two readers of xlsx on the same sheet of 53 columns."""
    import openpyxl
    import python_calamine

    values = np.random.default_rng(0).uniform(0, 900, (rows, 51)).round(4)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sheet.xlsx"
        book = openpyxl.Workbook(write_only=True)
        page = book.create_sheet()
        for row in values.tolist():
            page.append([" 28/12/2015 10:00:00 AM", *row, "Normal"])
        book.save(file)

        def with_openpyxl() -> None:
            opened = openpyxl.load_workbook(file, read_only=True)
            assert sum(1 for _ in opened.active.iter_rows(values_only=True)) == rows
            opened.close()

        def with_calamine() -> None:
            sheet = python_calamine.CalamineWorkbook.from_path(str(file)).get_sheet_by_index(0)
            assert sum(1 for _ in sheet.iter_rows()) == rows

        slow, quick = best(with_openpyxl, 2), best(with_calamine, 3)
        peaks = []
        for count in (rows // 4, rows):
            part = Path(folder) / f"{count}.xlsx"
            book = openpyxl.Workbook(write_only=True)
            page = book.create_sheet()
            for row in values[:count].tolist():
                page.append([" 28/12/2015 10:00:00 AM", *row, "Normal"])
            book.save(part)
            done = subprocess.run([sys.executable, "-c", SHEET, str(part)], capture_output=True, text=True, check=True)
            peaks.append(int(done.stdout))
        cell = (peaks[1] - peaks[0]) / ((rows - rows // 4) * 53)
        print(f"python-calamine holds {cell:.0f} bytes a cell")
        print(
            f"{rows} rows x 53: openpyxl {slow:.2f} s, python-calamine {quick:.2f} s of CPU, ratio {slow / quick:.1f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    memory_parser = verbs.add_parser("memory")
    memory_parser.add_argument("--rows", type=int, default=500_000)
    memory_parser.add_argument("--channels", type=int, default=51)
    workbook_parser = verbs.add_parser("workbook")
    workbook_parser.add_argument("--rows", type=int, default=20_000)
    arguments = vars(parser.parse_args())
    verb = arguments.pop("verb")
    {"memory": bench_memory, "workbook": bench_workbook}[verb](**arguments)
