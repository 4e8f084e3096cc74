"""A large text file is loaded in memory that follows the result."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

CHANNELS = 51

PROGRAM = """
import sys
import pyarrow.csv  # its own megabytes are not the file's
from tisat.series import Series
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
before = peak()
series = Series.read(sys.argv[1])
print(peak() - before, series.values.nbytes + series.timestamps.nbytes, len(series), series.n_channels)
"""


def peak_of_reading(path) -> tuple[int, int]:
    """Bytes at the peak above those before, and bytes of the result, measured in a process of its own."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=True)
    peak, result, _, channels = (int(word) for word in done.stdout.split())
    assert channels == CHANNELS
    return peak, result


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_memory_follows_the_result(tmp_path):
    """From 100,000 to 500,000 rows of 51 columns the peak grows by at most 1.4 times what the result grows by."""
    header = ",".join(["timestamp", *(f"c{c}" for c in range(CHANNELS))])
    block = np.random.default_rng(0).normal(size=(1000, CHANNELS))
    cells = [",".join(f"{x:.6f}" for x in row) for row in block]
    measured = []
    for rows in (100_000, 500_000):
        file = tmp_path / f"{rows}.csv"
        with file.open("w") as opened:
            opened.write(header + "\n")
            opened.writelines(f"{t},{cells[t % 1000]}\n" for t in range(rows))
        measured.append(peak_of_reading(file))
    (small, small_result), (large, large_result) = measured
    assert (large - small) / (large_result - small_result) < 1.4
    assert large / large_result < 2
