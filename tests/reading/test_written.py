"""One table in many spellings: whichever program wrote it, the same moments and the same numbers are read."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tisat import Series
from tisat.reading.clock import read_time
from tisat.reading.dates import DateReader
from tisat.reading.times import arrow_times


@pytest.mark.parametrize(("offset", "minutes"), [("+02:00", 120), ("+0200", 120), ("+02", 120), ("-0530", -330), ("-05", -300), ("Z", 0)])  # fmt: skip
def test_an_offset_is_the_same_however_it_is_written(offset, minutes):
    zone = datetime.timezone(datetime.timedelta(minutes=minutes))
    meant = read_time(datetime.datetime(2026, 3, 9, 12, 0, 30, tzinfo=zone))
    assert meant.offset == minutes
    assert read_time(f"2026-03-09T12:00:30{offset}") == meant
    assert DateReader("day-first")(f"09.03.2026 12:00:30 {offset}") == meant
    assert DateReader("%d/%m/%y %T%z")(f"09/03/26 12:00:30{offset}") == meant
    column = arrow_times(pa.array([f"2026-03-09 12:00:30{offset}"] * 2))
    assert column.offsets.tolist() == [minutes] * 2
    assert column.values.astype("int64").tolist() == [meant.value] * 2


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str)  # fmt: skip
def test_text_of_every_kind_in_parquet_is_text(tmp_path, kind):
    def written(**columns):
        texts = {name: pa.array(column).cast(kind) for name, column in columns.items()}
        pq.write_table(pa.table({**texts, "flow": [1.0, 2.0, 3.0]}), tmp_path / "a.parquet")
        return Series.read(tmp_path / "a.parquet")

    minutes = np.arange("2026-03-13T10:00", "2026-03-13T10:03", dtype="datetime64[m]")
    dotted = written(time=[f"13.03.2026 10:0{i}" for i in range(3)])
    assert (dotted.timestamps == minutes).all()
    apart = written(Date=["2026-03-13"] * 3, Time=[f"10:0{i}" for i in range(3)])
    assert (apart.timestamps == minutes).all()
    assert apart.channels == ("flow",)


def test_decimals_in_parquet_are_numbers(tmp_path):
    pq.write_table(pa.table({"flow": [decimal.Decimal("1.25"), None, decimal.Decimal(3)]}), tmp_path / "a.parquet")
    np.testing.assert_array_equal(Series.read(tmp_path / "a.parquet").values[:, 0], [1.25, np.nan, 3.0])
