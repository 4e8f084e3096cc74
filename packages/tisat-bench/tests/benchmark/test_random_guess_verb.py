import os
from pathlib import Path

import numpy as np
import pytest

from tisat.cli import main

PRINTED = Path(__file__).resolve().parents[4] / "experiments" / "paper.json"


def data(capsys, *words):
    with pytest.raises(SystemExit) as end:
        main(["data", "random-guess", *map(str, words)])
    return (end.value.code or 0, *capsys.readouterr())


def test_random_guess_compares_with_what_was_printed_where_it_is_told(monkeypatch, capsys):
    labels = {"psm": np.arange(2000) // 100 == 7}
    monkeypatch.setattr("tisat_bench.datasets.NAMES", ("psm",))
    monkeypatch.setattr("tisat_bench.datasets.labels", lambda name, data: labels)
    code, out, _ = data(capsys, "--simulations", 1)
    assert code == 0
    assert "difference" not in out
    code, out, _ = data(capsys, "--simulations", 1, "--printed", PRINTED)
    assert code == 0
    assert "98.83 / 98.14 / 98.48" in out
    assert "largest difference" in out


def test_random_guess_without_data_is_one_sentence(tmp_path, capsys):
    code, _, err = data(capsys, "--data", tmp_path)
    assert code == 1
    assert "must hold at least one of smd, msl, smap, swat, psm" in err


@pytest.mark.data
def test_random_guess_prints_the_check_table(capsys):
    folder = os.environ.get("TISAT_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("TISAT_DATA does not name a folder with the data sets")
    code, out, _ = data(capsys, "--data", folder, "--simulations", 2, "--printed", PRINTED)
    assert code == 0
    for row in (
        ("SMD", "708,420", "327", "4.16", "78.73 / 85.38 / 81.92", "90.54 / 96.43 / 93.39"),
        ("MSL", "73,729", "36", "10.53", "91.23 / 88.37 / 89.78", "94.95 / 98.13 / 96.51"),
        ("SMAP", "435,826", "68", "12.84", "93.50 / 97.60 / 95.50", "95.43 / 97.74 / 96.48"),
        ("SWaT", "449,919", "35", "12.14", "93.22 / 99.48 / 96.25", "93.21 / 99.47 / 96.24"),
        ("PSM", "87,841", "72", "27.76", "97.40 / 97.53 / 97.47", "98.83 / 98.14 / 98.48"),
    ):
        line = next(line for line in out.splitlines() if line.startswith(row[0]))
        assert all(part in line for part in row)
