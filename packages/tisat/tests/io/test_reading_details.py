"""Details of reading that mutants of the code once lived through."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from tisat import Series
from tisat.errors import DataFileError, InputError
from tisat.io.durations import nanoseconds_of
from tisat.io.text_encoding import check_encoding
from tisat.io.time_columns import arrow_times, in_time_order
from tisat.io.time_zones import in_zone
from tisat.io.timestamps import Times, read_time, read_times


@pytest.mark.parametrize("name", ["hex", "rot13", "base64", "idna", "punycode", "undefined"])
def test_an_encoding_of_something_else_than_text_is_refused(name):
    with pytest.raises(InputError, match="must be one such as utf-8"):
        check_encoding(name)


def test_the_delimiter_is_a_note_where_it_was_found_and_is_no_comma(tmp_path):
    for sign, told, said in ((",", None, False), (";", None, True), (";", ";", False)):
        file = tmp_path / "rows.csv"
        file.write_text("".join(f"{a}{sign}{b}\n" for a, b in [("a", "b"), *((f"{i}.5", i * i) for i in range(30))]))
        notes = Series.read(file, **({} if told is None else {"delimiter": told})).notes
        assert any("cells are divided by" in note for note in notes) == said


def test_rows_are_put_in_order_only_where_that_is_asked_for():
    values = np.arange(3.0)[:, None]
    mixed = Times(np.array([2, 1, 3], dtype="datetime64[ns]"))
    times, rows, _, notes = in_time_order(mixed, values, None, sort=False, dedup="first")
    assert (times.values.astype(int).tolist(), rows[:, 0].tolist(), notes) == ([2, 1, 3], [0.0, 1.0, 2.0], [])
    ordered = Times(np.array([1, 2, 3], dtype="datetime64[ns]"))
    assert in_time_order(ordered, values, None, sort=True, dedup=None)[3] == []


def test_a_text_column_with_a_time_missing_is_read_or_refused_as_any_other():
    texts = ["2026-01-01T00:00:00+01:00", None, "2026-01-01T00:02:00+01:00"]
    outcomes = []
    for read in (lambda: arrow_times(pa.chunked_array([texts])), lambda: read_times(np.array(texts, dtype=object))):
        try:
            outcomes.append(read().values.astype(str).tolist())
        except InputError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def test_the_hour_that_comes_twice_is_found_in_every_year():
    first = [
        f"{year}-10-{day} {hour}" for year, day in ((2025, 26), (2026, 25)) for hour in ("02:30", "02:30", "03:30")
    ]
    found = in_zone(read_times(np.array(first)), "Europe/Berlin")
    assert found.offsets.tolist() == [120, 60, 60, 120, 60, 60]


def test_a_day_may_carry_an_offset_and_a_duration_its_microseconds():
    assert read_time("2026-01-01+02:00") == read_time("2026-01-01T00:00+02:00")
    assert nanoseconds_of(datetime.timedelta(microseconds=3), name="x", whose="y") == 3000


def test_an_encoding_that_is_told_and_is_not_the_files_is_refused_with_the_one_to_type(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes("time;Durchfluß\n0;1,5\n60;2,5\n".encode("cp1252"))
    with pytest.raises(DataFileError, match=r"must be text in utf-8, as --encoding says; for this file: --encoding cp1252\. .* \(line 1\)"):  # fmt: skip
        Series.read(file, encoding="utf-8")
    assert Series.read(file, encoding="latin-1").channels == ("Durchfluß",)


def test_a_decimal_sign_that_is_told_and_is_not_the_files_is_refused_with_the_one_to_type(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("time;a;b\n" + "".join(f"{60 * t};{t},5;Bad\n" for t in range(20)))
    with pytest.raises(DataFileError, match=r"as --decimal \. says \(for these: --decimal ,\)\. Got '0,5' in column 'a'"):  # fmt: skip
        Series.read(file, decimal=".")
    file.write_text("time,a\n" + "".join(f"{60 * t},{t}.5\n" for t in range(20)))
    with pytest.raises(DataFileError, match=r"as --decimal , says \(for these: --decimal \.\)"):
        Series.read(file, decimal=",")
