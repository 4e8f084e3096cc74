"""Bring your own: every layout gives the series a person would read from it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tisat import Series
from tisat.datasets import read_series
from tisat.errors import DataFileError, InputError, ParameterError
from tisat_bench.datasets import load

WIDE = "timestamp,a,b,is_anomaly\n2024-01-01 00:00,1,2,0\n2024-01-01 00:01,3,,1\n2024-01-01 00:02,5,6,0\n2024-01-01 00:03,7,8,0\n"


def test_wide_csv(tmp_path):
    (tmp_path / "pump.csv").write_text(WIDE)
    series = read_series(tmp_path / "pump.csv")["pump"]
    np.testing.assert_array_equal(series.values, [[1, 2], [3, np.nan], [5, 6], [7, 8]])
    assert series.channels == ("a", "b")
    assert series.events.tolist() == [[1, 2]]
    assert series.period == 60


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "txt", "parquet"])
def test_every_kind_of_file_is_the_same_series(tmp_path, suffix):
    (tmp_path / "pump.csv").write_text(WIDE)
    expected = Series.read(tmp_path / "pump.csv")
    frame = pd.read_csv(tmp_path / "pump.csv", parse_dates=["timestamp"])
    file = tmp_path / f"copy.{suffix}"
    frame.to_parquet(file) if suffix == "parquet" else frame.to_csv(file, index=False)
    found = Series.read(file)
    assert found.name == "copy"
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.timestamps, expected.timestamps)
    np.testing.assert_array_equal(found.labels, expected.labels)


@pytest.mark.parametrize("library", [pd.read_csv, lambda file: pl.read_csv(file, try_parse_dates=True)])
def test_a_file_and_its_dataframe_are_the_same_series(tmp_path, library):
    (tmp_path / "pump.csv").write_text(WIDE.replace(" 00:0", "T00:0").replace("T00:00", "T00:00"))
    from_file, from_frame = Series.read(tmp_path / "pump.csv"), Series.from_table(library(tmp_path / "pump.csv"))
    np.testing.assert_array_equal(from_file.values, from_frame.values)
    np.testing.assert_array_equal(from_file.timestamps, from_frame.timestamps)


def test_named_columns_win_over_known_names(tmp_path):
    (tmp_path / "pump.csv").write_text("when,label,fault\n1,10,0\n2,11,1\n")
    series = read_series(tmp_path / "pump.csv", time="when", label="fault")["pump"]
    assert series.channels == ("label",)
    assert series.labels.tolist() == [False, True]
    assert series.timestamps.tolist() == [1, 2]


def test_booleans_and_time_zones_are_read(tmp_path):
    (tmp_path / "pump.csv").write_text(
        "ds,y,label\n2024-01-01T00:00:00+02:00,1,false\n2024-01-01T00:00:01+02:00,2,true\n"
    )
    series = Series.read(tmp_path / "pump.csv")
    assert series.labels.tolist() == [False, True]
    assert series.timestamps[0] == np.datetime64("2023-12-31T22:00:00")


def test_a_column_of_whole_numbers_may_turn_to_fractions_past_the_first_block(tmp_path):
    (tmp_path / "pump.csv").write_text("a,b\n" + "1,2\n" * 100_000 + "1.5,\n")
    series = Series.read(tmp_path / "pump.csv")
    assert series.values[-1, 0] == 1.5
    assert np.isnan(series.values[-1, 1])


@pytest.mark.parametrize("interleaved", [False, True])
def test_long_tables_give_one_series_a_name(tmp_path, interleaved):
    rows = [("a", 1, 1.0), ("a", 2, 2.0), ("b", 1, 10.0), ("b", 2, 20.0), ("b", 3, 30.0)]
    if interleaved:
        rows = [rows[i] for i in (0, 2, 1, 3, 4)]
    (tmp_path / "many.csv").write_text("unique_id,ds,y\n" + "".join(f"{n},{t},{y}\n" for n, t, y in rows))
    found = read_series(tmp_path / "many.csv")
    assert list(found) == ["a", "b"]
    assert found["a"].values.ravel().tolist() == [1, 2]
    assert found["b"].values.ravel().tolist() == [10, 20, 30]
    assert found["b"].timestamps.tolist() == [1, 2, 3]
    assert found["a"].channels == ("y",)


def test_long_tables_carry_labels_and_further_channels(tmp_path):
    frame = pd.DataFrame(
        {"unique_id": [7, 7, 8], "ds": [1, 2, 1], "y": [1.0, 2.0, 3.0], "load": [4, 5, 6], "label": [0, 1, 0]}
    )
    frame.to_parquet(tmp_path / "many.parquet")
    found = read_series(tmp_path / "many.parquet")
    assert list(found) == ["7", "8"]
    assert found["7"].values.tolist() == [[1, 4], [2, 5]]
    assert found["7"].labels.tolist() == [False, True]


def test_a_long_table_with_an_unnamed_series_or_text_is_refused(tmp_path):
    (tmp_path / "many.csv").write_text("unique_id,ds,y\na,1,1\n,2,2\n")
    with pytest.raises(InputError, match=r"name a machine in every row. Got an empty cell at row 1"):
        read_series(tmp_path / "many.csv")
    (tmp_path / "many.csv").write_text("unique_id,ds,y\na,1,x\n")
    with pytest.raises(InputError, match=r"column 'y' of a table must hold numbers.*--drop y"):
        read_series(tmp_path / "many.csv")
    (tmp_path / "many.csv").write_text("unique_id,ds,y\na,2,1\na,1,2\n")
    with pytest.raises(InputError, match=r"many.csv: .*strictly increase.*--sort"):
        read_series(tmp_path / "many.csv")


def test_timeeval_pairs_are_the_two_splits(tmp_path):
    (tmp_path / "ecg.train.csv").write_text(WIDE)
    (tmp_path / "ecg.test.csv").write_text(WIDE.replace("0\n", "1\n"))
    found = load(str(tmp_path))
    assert found.names == ("ecg",)
    assert found["ecg"].train.labels is None
    assert found["ecg"].test.labels.all()
    assert found["ecg"].test.name == "ecg"
    (tmp_path / "ecg.test.csv").unlink()
    with pytest.raises(DataFileError, match=r"'ecg.train' is there without 'ecg.test'"):
        load(str(tmp_path))


def test_tsb_ad_names_say_where_training_ends(tmp_path):
    name = "001_NAB_id_1_Facility_tr_3_1st_4"
    (tmp_path / f"{name}.csv").write_text("Data,Label\n" + "".join(f"{t},{int(t == 4)}\n" for t in range(6)))
    entity = load(str(tmp_path / f"{name}.csv"))[name]
    assert entity.train.values.ravel().tolist() == [0, 1, 2]
    assert entity.test.values.ravel().tolist() == [3, 4, 5]
    assert entity.test.events.tolist() == [[1, 2]]
    assert entity.period is None


@pytest.mark.parametrize(("train", "rows"), [(0.5, 2), (3, 3), (0.25, 1)])
def test_a_split_can_be_given(tmp_path, train, rows):
    (tmp_path / "pump.csv").write_text(WIDE)
    entity = load(str(tmp_path), train=train)["pump"]
    assert (len(entity.train), len(entity.test)) == (rows, 4 - rows)
    assert entity.train.labels is None
    assert entity.test.labels is not None


@pytest.mark.parametrize(
    ("train", "message"), [(None, "must say how many rows of 'pump'"), (1.5, "> 0 and < 1"), (9, "from 1 to 3")]
)
def test_a_split_nobody_gave_is_asked_for(tmp_path, train, message):
    (tmp_path / "pump.csv").write_text(WIDE)
    with pytest.raises(ParameterError, match=message):
        load(str(tmp_path / "pump.csv"), train=train)


def test_the_card_of_own_files_counts_them(tmp_path):
    (tmp_path / "pump.csv").write_text(WIDE)
    known = load(str(tmp_path), train=1).card
    assert (known.entities, known.train_rows, known.test_rows, known.events, known.channels) == (1, 1, 3, 1, 2)


def test_a_folder_without_files_and_a_path_that_is_none_are_refused(tmp_path):
    with pytest.raises(DataFileError, match="must hold csv, xlsx, jsonl or parquet files"):
        load(str(tmp_path))
    with pytest.raises(DataFileError, match="File not found"):
        load(str(tmp_path / "nothing.csv"))


def test_a_name_given_twice_is_refused(tmp_path):
    (tmp_path / "pump.csv").write_text(WIDE)
    (tmp_path / "pump.txt").write_text(WIDE)
    with pytest.raises(DataFileError, match=r"must name a series once. Got 'pump' again"):
        read_series(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "label\n" + "0\n" * 20 + "1\n" * 5 + "0\n" * 15,
        "start,stop\n20,25\n",
        "start,stop\n2026-01-01T00:20:00,2026-01-01T00:25:00\n",
    ],
)
def test_labels_in_a_file_of_their_own(tmp_path, text):
    rows = "".join(f"2026-01-01T00:{t:02d}:00,{t}.5\n" for t in range(40))
    (tmp_path / "pump.csv").write_text("time,flow\n" + rows)
    (tmp_path / "pump.labels.csv").write_text(text)
    found = load(tmp_path, train=10)
    assert found.names == ("pump",)
    test = found["pump"].test
    assert np.flatnonzero(test.labels).tolist() == [10, 11, 12, 13, 14]


@pytest.mark.parametrize(
    "text", ["label\n0\n1\n", "start,stop\n30,20\n", "start,stop\n0,99\n", "a,b\n1,2\n", "label\n" + "2\n" * 40]
)
def test_labels_that_do_not_fit_are_refused_with_the_file(tmp_path, text):
    (tmp_path / "pump.csv").write_text("flow\n" + "".join(f"{t}.5\n" for t in range(40)))
    (tmp_path / "pump.labels.csv").write_text(text)
    with pytest.raises(DataFileError, match=r"pump\.labels\.csv"):
        load(tmp_path, train=10)
