"""One table in many spellings: whichever program wrote it, the same moments and the same numbers are read."""

import datetime

import pyarrow as pa
import pytest

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
