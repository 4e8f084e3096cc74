"""How much quicker a converted data set loads, and how much memory a large text file takes; ratios, side by side in one run.

    python benchmarks/bench_datasets.py load --data DIR [--machines 4] [--repeats 7]
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


def best(action, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def bench_load(data: str, machines: int, repeats: int) -> None:
    """Text against conversion, both through ``load``, same machines, taken in turn."""
    from tisat.datasets import convert, load

    with tempfile.TemporaryDirectory() as out:
        convert("smd", data, out)

        def read(root: str, name: str) -> None:
            entity = load("smd", root)[name]
            assert len(entity.train)
            assert len(entity.test)

        ratios = []
        print(f"{'machine':<14}{'text s':>9}{'converted s':>13}{'ratio':>8}")
        for name in load("smd", data).names[:machines]:
            text, quick = best(lambda n=name: read(data, n), repeats), best(lambda n=name: read(out, n), repeats)
            ratios.append(text / quick)
            print(f"{name:<14}{text:>9.4f}{quick:>13.4f}{ratios[-1]:>8.1f}")
        size = sum(file.stat().st_size for file in (Path(out) / "converted" / "smd").glob("*.parquet"))
        parts = [Path(data) / "ServerMachineDataset" / part for part in ("train", "test", "test_label")]
        original = sum(file.stat().st_size for part in parts for file in part.iterdir())
        print(
            f"median ratio {np.median(ratios):.1f}, lowest {min(ratios):.1f}; parquet is {size / original:.2f} of the text"
        )


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
        print(
            f"{rows} rows x 53: openpyxl {slow:.2f} s, python-calamine {quick:.2f} s of CPU, ratio {slow / quick:.1f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    load_parser = verbs.add_parser("load")
    load_parser.add_argument("--data", required=True)
    load_parser.add_argument("--machines", type=int, default=4)
    load_parser.add_argument("--repeats", type=int, default=7)
    memory_parser = verbs.add_parser("memory")
    memory_parser.add_argument("--rows", type=int, default=500_000)
    memory_parser.add_argument("--channels", type=int, default=51)
    workbook_parser = verbs.add_parser("workbook")
    workbook_parser.add_argument("--rows", type=int, default=20_000)
    arguments = vars(parser.parse_args())
    {"load": bench_load, "memory": bench_memory, "workbook": bench_workbook}[arguments.pop("verb")](**arguments)
