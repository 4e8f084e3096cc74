"""How much quicker a converted data set loads, and how much memory a large text file takes; ratios, side by side in one run.

    python benchmarks/bench_datasets.py load --data DIR [--machines 4] [--repeats 7]
    python benchmarks/bench_datasets.py formats --data DIR [--machine machine-1-2] [--repeats 15]
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


def bench_load(data: str, machines: int, repeats: int) -> None:
    """Text against conversion, both through ``load``, same machines, taken in turn."""
    from tisat_bench.datasets import convert, load

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


def bench_formats(data: str, machine: str, repeats: int) -> None:
    """What a conversion could have been: each candidate gives the same (T, C) array of one training split."""
    import pyarrow as pa
    from pyarrow import parquet

    from tisat.io.tables import read_numbers

    text = Path(data) / "ServerMachineDataset" / "train" / f"{machine}.txt"
    names = [str(c) for c in range(38)]
    values = read_numbers(text, names=names)
    rows, channels = values.shape

    def columns(file: Path, order: str) -> np.ndarray:
        table = parquet.ParquetFile(file, memory_map=True, pre_buffer=False).read(use_threads=False)
        out = np.empty((rows, channels), order=order)
        for c in range(channels):
            out[:, c] = table.column(c).to_numpy()
        return out

    def binary(file: Path) -> np.ndarray:
        column = parquet.ParquetFile(file, memory_map=True, pre_buffer=False).read(use_threads=False).column(0)
        parts = [np.frombuffer(chunk.buffers()[1], np.float64) for chunk in column.chunks]
        return np.concatenate(parts).reshape(-1, channels)

    with tempfile.TemporaryDirectory() as folder:
        wide, packed, array = (Path(folder) / name for name in ("wide.parquet", "packed.parquet", "values.npy"))
        table = pa.table({name: np.ascontiguousarray(values[:, c]) for c, name in enumerate(names)})
        parquet.write_table(table, wide, compression="lz4")
        buffers = [None, pa.py_buffer(values.tobytes())]
        cells = pa.FixedSizeBinaryArray.from_buffers(pa.binary(channels * 8), rows, buffers)
        parquet.write_table(pa.table({"row": cells}), packed, compression="none", use_dictionary=False)
        np.save(array, values)
        ways = {
            "text": lambda: read_numbers(text, names=names),
            "parquet, row-major": lambda: columns(wide, "C"),
            "parquet, column-major": lambda: columns(wide, "F"),
            "parquet, one binary column": lambda: binary(packed),
            "mapped array, summed": lambda: np.load(array, mmap_mode="r").sum(),
        }
        for name, way in list(ways.items())[:-1]:
            assert np.array_equal(way(), values), name
        base = best(ways["text"], repeats)
        for name, way in ways.items():
            print(f"{name:<28}{base / best(way, repeats):>6.1f} times as quick as text")


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
    load_parser = verbs.add_parser("load")
    load_parser.add_argument("--data", required=True)
    load_parser.add_argument("--machines", type=int, default=4)
    load_parser.add_argument("--repeats", type=int, default=7)
    formats_parser = verbs.add_parser("formats")
    formats_parser.add_argument("--data", required=True)
    formats_parser.add_argument("--machine", default="machine-1-2")
    formats_parser.add_argument("--repeats", type=int, default=15)
    memory_parser = verbs.add_parser("memory")
    memory_parser.add_argument("--rows", type=int, default=500_000)
    memory_parser.add_argument("--channels", type=int, default=51)
    workbook_parser = verbs.add_parser("workbook")
    workbook_parser.add_argument("--rows", type=int, default=20_000)
    arguments = vars(parser.parse_args())
    verb = arguments.pop("verb")
    {"load": bench_load, "formats": bench_formats, "memory": bench_memory, "workbook": bench_workbook}[verb](
        **arguments
    )
