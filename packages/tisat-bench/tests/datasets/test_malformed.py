"""Every malformed file names itself, the row, and what was expected."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tisat import Series
from tisat.errors import DataFileError, InputError
from tisat_bench import datasets

GARBAGE = bytes(range(256)) * 20


def cut(file, *, at: int) -> None:
    """Keep this many lines and half of the next."""
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:at]) + lines[at][: len(lines[at]) // 2])


def swap(file, *, line: int, cell: int, text: str) -> None:
    lines = file.read_text().splitlines()
    cells = lines[line].split(",")
    cells[cell] = text
    file.write_text("\n".join([*lines[:line], ",".join(cells), *lines[line + 1 :]]) + "\n")


def append(file, text: str) -> None:
    with file.open("a") as opened:
        opened.write(text)


SMD = "ServerMachineDataset"
# What is done to which file, and what the message must say. The rows count from 0, the lines as an editor does.
SMD_CASES = {
    "cut": ("train", lambda file: cut(file, at=7), r"must have 38 cells in each row. Got 20 at row 7 \(line 8\)"),
    "text": (
        "train",
        lambda file: swap(file, line=4, cell=3, text="off"),
        r"number in column '3'. Got 'off' at row 4 \(line 5\)",
    ),
    "hole": (
        "test",
        lambda file: swap(file, line=4, cell=3, text=""),
        r"number in column '3'. Got an empty cell at row 4 \(line 5\)",
    ),
    "infinity": (
        "test",
        lambda file: swap(file, line=4, cell=3, text="inf"),
        r"finite or NaN.*Got inf at row 4, channel '3'",
    ),
    "wide": (
        "test",
        lambda file: append(file, "1," * 38 + "1\n"),
        r"38 cells in each row. Got 39 at row 20 \(line 21\)",
    ),
    "garbage": ("train", lambda file: file.write_bytes(GARBAGE), r"Got .* at row 0 \(line 1\)|must be text"),
    "empty": ("train", lambda file: file.write_bytes(b""), r"rows of 38 numbers. Got an empty file"),
    "long": ("test_label", lambda file: append(file, "0\n"), r"one row for each of the 20 rows of test/.*Got 21 rows"),
    "short": (
        "test_label",
        lambda file: cut(file, at=18),
        r"one row for each of the 20 rows of test/.*Got 19 rows|Got 18",
    ),
    "three": (
        "test_label",
        lambda file: swap(file, line=6, cell=0, text="3"),
        r"only 0 and 1. Got 3 at row 6 \(line 7\)",
    ),
}


@pytest.mark.parametrize("case", SMD_CASES)
def test_smd(smd, case):
    part, damage, message = SMD_CASES[case]
    file = smd / SMD / part / "machine-1-1.txt"
    damage(file)
    entity = datasets.load("smd", smd, strict=False)["machine-1-1"]
    with pytest.raises(DataFileError, match=message) as caught:
        entity.train if part == "train" else entity.test  # noqa: B018
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("text", ["5-9", "9-5:1", "5-9:0", "5-9:39", "5-9:1,", "\x00\xff"])
def test_smd_interpretation(smd, text):
    file = smd / SMD / "interpretation_label" / "machine-1-1.txt"
    append(file, text + "\n")
    with pytest.raises(DataFileError, match=r"machine-1-1.txt' must hold 'start-stop:channel.* at row 1 \(line 2\)"):
        datasets.load("smd", smd, strict=False)["machine-1-1"].interpretation  # noqa: B018


LABELS_CASES = {
    "header": (
        lambda file: swap(file, line=0, cell=0, text="channel"),
        r"begin with the columns chan_id, .* \(line 1\)",
    ),
    "cells": (lambda file: append(file, "X-1,SMAP,[[1; 2]]\n"), r"5 cells in each row. Got 3 at row 4 \(line 6\)"),
    "count": (
        lambda file: append(file, 'X-1,SMAP,"[[1, 2]]",[point],many\n'),
        r"whole number in column 'num_values'.*row 4",
    ),
    "interval": (
        lambda file: append(file, 'X-1,SMAP,"[[1, 20]]",[point],20\n'),
        r"within 0 to 19 .* at row 4 \(line 6\)",
    ),
    "pairs": (
        lambda file: append(file, 'X-1,SMAP,"[[1]]",[point],20\n'),
        r"intervals \[\[first, last\], ...\].* at row 4",
    ),
    "twice": (
        lambda file: append(file, 'P-1,SMAP,"[[1, 2]]",[point],21\n'),
        r"give P-1 the same num_values.* at row 4",
    ),
    "garbage": (lambda file: file.write_bytes(GARBAGE), r"must be text in UTF-8"),
}


@pytest.mark.parametrize("case", LABELS_CASES)
def test_telemanom_labels(telemanom, case):
    damage, message = LABELS_CASES[case]
    damage(telemanom / "telemanom" / "labeled_anomalies.csv")
    with pytest.raises(DataFileError, match=rf"labeled_anomalies.csv'.*({message})"):
        datasets.load("smap", telemanom, strict=False)


ARRAY_CASES = {
    "cut": (lambda file: file.write_bytes(file.read_bytes()[:-50]), "must be a whole .npy array"),
    "garbage": (lambda file: file.write_bytes(GARBAGE), "must be a whole .npy array"),
    "empty": (lambda file: file.write_bytes(b""), "must be a whole .npy array"),
    "narrow": (lambda file: np.save(file, np.zeros((20, 24))), r"\(rows, 25\) array of floats. Got shape \(20, 24\)"),
    "flat": (lambda file: np.save(file, np.zeros(20)), r"Got shape \(20,\)"),
    "objects": (lambda file: np.save(file, np.array([{}] * 20), allow_pickle=True), "must be a whole .npy array"),
    "hole": (lambda file: np.save(file, np.diag([np.nan] * 25)[:20]), r"finite numbers. Got another value at row 0"),
    "short": (lambda file: np.save(file, np.zeros((19, 25))), r"test/P-1.npy has rows, 19. Got 20"),
}


@pytest.mark.parametrize("case", ARRAY_CASES)
def test_telemanom_arrays(telemanom, case):
    damage, message = ARRAY_CASES[case]
    damage(telemanom / "telemanom" / "test" / "P-1.npy")
    with pytest.raises(DataFileError, match=message):
        datasets.load("smap", telemanom, strict=False)["P-1"].test  # noqa: B018


PSM_CASES = {
    "cut": ("train.csv", lambda file: cut(file, at=6), r"26 cells in each row. Got \d+ at row 5 \(line 7\)"),
    "text": (
        "train.csv",
        lambda file: swap(file, line=6, cell=2, text="?"),
        r"number in column 'feature_1'. Got '\?' at row 5 \(line 7\)",
    ),
    "index": (
        "train.csv",
        lambda file: swap(file, line=0, cell=0, text=",timestamp_(min)"),
        r"begin with the columns .*line 1",
    ),
    "narrow": (
        "train.csv",
        lambda file: swap(file, line=0, cell=25, text="feature_25"),
        r"feature_0 to feature_24.*line 1",
    ),
    "garbage": ("train.csv", lambda file: file.write_bytes(GARBAGE), "must be text"),
    "empty": ("train.csv", lambda file: file.write_bytes(b""), "begin with the columns"),
    "bare": (
        "train.csv",
        lambda file: file.write_text(file.read_text().splitlines()[0] + "\n"),
        "rows below its header",
    ),
    "order": (
        "train.csv",
        lambda file: swap(file, line=6, cell=0, text="2.0"),
        r"strictly increase. Got an earlier time, 120.0, at row 5",
    ),
    "labels short": (
        "test_label.csv",
        lambda file: cut(file, at=9),
        "one row for each of the 10 rows of test.csv|2 cells",
    ),
    "labels long": ("test_label.csv", lambda file: append(file, "110.0,0\n"), "10 rows of test.csv. Got 11 rows"),
    "labels moved": (
        "test_label.csv",
        lambda file: swap(file, line=4, cell=0, text="999"),
        r"minute of test.csv, 103. Got 999 at row 3 \(line 5\)",
    ),
    "labels two": (
        "test_label.csv",
        lambda file: swap(file, line=4, cell=1, text="2"),
        r"only 0 and 1. Got 2 at row 3 \(line 5\)",
    ),
}


@pytest.mark.parametrize("case", PSM_CASES)
def test_psm(psm, case):
    name, damage, message = PSM_CASES[case]
    file = psm / "PSM" / name
    damage(file)
    entity = datasets.load("psm", psm, strict=False)["psm"]
    with pytest.raises(DataFileError, match=message) as caught:
        entity.train if name == "train.csv" else entity.test  # noqa: B018
    assert str(file) in str(caught.value)


SWAT_CASES = {
    "cut": (lambda file: cut(file, at=6), r"53 cells in each row. Got \d+ at row 4 \(line 7\)"),
    "text": (
        lambda file: swap(file, line=6, cell=2, text="Bad"),
        r"number in column 'LIT101'. Got 'Bad' at row 4 \(line 7\)",
    ),
    "label": (
        lambda file: swap(file, line=6, cell=52, text="Atack"),
        r"Normal or Attack .*Got 'Atack' at row 4 \(line 7\)",
    ),
    "no label": (lambda file: swap(file, line=6, cell=52, text=""), r"Normal or Attack .* at row 4 \(line 7\)"),
    "time": (lambda file: swap(file, line=6, cell=0, text="noon"), r"time such as .*Got 'noon' at row 4 \(line 7\)"),
    "renamed": (lambda file: swap(file, line=1, cell=2, text="LIT999"), r"Got none called 'LIT101' \(line 2\)"),
    "added": (lambda file: swap(file, line=1, cell=2, text="LIT101,X"), r"Got one called 'X' \(line 2\)"),
    "doubled": (lambda file: swap(file, line=1, cell=2, text="FIT101"), r"name each column once.*line 2"),
    "headless": (lambda file: swap(file, line=1, cell=0, text="t"), r"name its columns, Timestamp first.*line 1"),
    "garbage": (lambda file: file.write_bytes(GARBAGE), "must be text"),
    "bare": (
        lambda file: file.write_text("\n".join(file.read_text().splitlines()[:2]) + "\n"),
        "rows below its header",
    ),
}


@pytest.mark.parametrize("case", SWAT_CASES)
def test_swat(swat, case):
    damage, message = SWAT_CASES[case]
    file = swat / "SWaT" / "SWaT_Dataset_Attack_v0.csv"
    damage(file)
    with pytest.raises(DataFileError, match=message) as caught:
        datasets.load("swat", swat, strict=False)["swat"].test  # noqa: B018
    assert str(file) in str(caught.value)


def test_a_normal_log_with_attacks_is_refused(swat):
    swap(swat / "SWaT" / "SWaT_Dataset_Normal_v1.csv", line=4, cell=52, text="Attack")
    with pytest.raises(DataFileError, match=r"normal operation only. Got Attack at row 2 \(line 5\)"):
        datasets.load("swat", swat, strict=False)["swat"].train  # noqa: B018


def test_a_workbook_that_is_none_is_refused(swat):
    pytest.importorskip("python_calamine", reason="the excel extra is not installed")
    file = swat / "SWaT" / "SWaT_Dataset_Attack_v0.csv"
    file.unlink()
    file.with_suffix(".xlsx").write_bytes(GARBAGE)
    with pytest.raises(DataFileError, match=r"Attack_v0.xlsx' must be a whole workbook"):
        datasets.load("swat", swat, strict=False)["swat"].test  # noqa: B018


def test_a_workbook_with_text_for_a_number_names_the_row(swat, swat_sheets):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl writes the workbook this test reads")
    pytest.importorskip("python_calamine", reason="the excel extra is not installed")
    sheet = swat_sheets["SWaT_Dataset_Attack_v0"]
    sheet[7][4] = "Bad Input"
    workbook = openpyxl.Workbook()
    for row in sheet:
        workbook.active.append(row)
    (swat / "SWaT" / "SWaT_Dataset_Attack_v0.csv").unlink()
    workbook.save(swat / "SWaT" / "SWaT_Dataset_Attack_v0.xlsx")
    with pytest.raises(DataFileError, match=r"number in column 'P101'. Got 'Bad Input' at row 5 \(line 8\)"):
        datasets.load("swat", swat, strict=False)["swat"].test  # noqa: B018


OWN = "timestamp,a,b,is_anomaly\n2024-01-01,1,2,0\n2024-01-02,3,,1\n2024-01-03,5,6,0\n"
OWN_CASES = {
    "cut": (OWN[:-7], r"4 cells in each row. Got 1 at row 2 \(line 4\)"),
    "late text": (OWN + "2024-01-04," + "7,8,0\n2024-01-05,x,8,0\n", r"column 'a'"),
    "label": (OWN.replace(",6,0", ",6,2"), r"only 0 and 1. Got 2 at row 2"),
    "order": (OWN.replace("-03", "-01"), r"strictly increase. Got an earlier time.* at row 2"),
    "names": (OWN.replace(",b,", ",a,"), r"name each column once. Got 'a' twice"),
    "saved index": (",a\n0,1.5\n5,2.5\n", r"must hold dates, or count the rows. Got 0, 5"),
    "only time": ("timestamp\n2024-01-01\n", r"at least one column of values"),
    "no rows": ("a,b\n", r"at least one row|a table"),
    "nothing": ("", r"names of its columns. Got an empty file"),
}


@pytest.mark.parametrize("case", OWN_CASES)
def test_own_files(tmp_path, case):
    text, message = OWN_CASES[case]
    file = tmp_path / "own.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        Series.read(file)
    assert str(file) in str(caught.value)


def test_a_number_that_turns_to_text_past_the_first_block_names_its_row(tmp_path):
    file = tmp_path / "own.csv"
    rows = 200_000
    file.write_text("a,b\n" + "0.25,0.5\n" * rows + "0.25,late\n")
    with pytest.raises(DataFileError, match=rf"number in column 'b'. Got 'late' at row {rows} \(line {rows + 2}\)"):
        Series.read(file)


@pytest.mark.parametrize("name", ["own.csv", "own.csv.gz", "own.parquet"])
def test_binary_garbage_is_refused_whatever_it_is_called(tmp_path, name):
    file = tmp_path / name
    file.write_bytes(GARBAGE)
    with pytest.raises(DataFileError, match=name):
        Series.read(file)


def test_a_gzip_that_breaks_off_is_refused(tmp_path):
    file = tmp_path / "own.csv.gz"
    file.write_bytes(gzip.compress(b"a,b\n" + b"1.5,2.5\n" * 10_000)[:-20])
    with pytest.raises(DataFileError, match=r"own\.csv\.gz"):
        Series.read(file)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_no_content_makes_the_reader_fail_in_any_other_way(tmp_path, content):
    file = tmp_path / "any.csv"
    file.write_bytes(content)
    try:
        outcome = repr(Series.read(file))
    except InputError as error:
        outcome = str(error)
    assert "any" in outcome
