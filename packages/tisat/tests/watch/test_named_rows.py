"""A row that carries names goes by name: of a pandas Series, a named tuple or a mapping, in a monitor and in a fleet."""

from collections import namedtuple

import numpy as np
import pandas as pd
import pytest

import tisat
from tisat.errors import SeriesError
from tisat.watch.row_intake import RowReader

CHANNELS = ("cpu", "disk", "net")


@pytest.fixture(scope="module")
def watch():
    values = np.random.default_rng(0).normal(size=(1500, 3)) * [1.0, 10.0, 100.0]
    return tisat.Watch("ewma", budget="1/200 rows").fit(tisat.Series(values, channels=CHANNELS))


def test_names_of_a_row_decide_and_not_its_order(watch):
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(150, 3)), columns=list(CHANNELS))
    turned = frame[list(CHANNELS[::-1])]
    monitors = [watch.monitor() for _ in range(4)]
    for (_, row), named in zip(turned.iterrows(), turned.itertuples(index=False), strict=True):
        scores = [
            monitor.update(given).score
            for monitor, given in zip(monitors, (row[list(CHANNELS)].tolist(), row, row.to_dict(), named), strict=True)
        ]
        np.testing.assert_array_equal(scores, scores[:1] * 4)
    assert np.isfinite(scores).all()
    fleet, plain = watch.fleet(["a"]), watch.monitor()
    by_name = [fleet.update({"a": row})["a"].score for _, row in turned.iterrows()]
    np.testing.assert_array_equal(by_name, [plain.update(row).score for row in frame.to_numpy()])


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (pd.Series(1.0, index=list("abc")), "must have channels among"),
        (pd.Series([1.0, 2.0, 3.0], index=["cpu", "cpu", "net"]), "Got 'cpu' twice"),
        (namedtuple("Row", "a b c")(1.0, 2.0, 3.0), "must have channels among"),
    ],
)
def test_other_names_are_refused(watch, row, sentence):
    with pytest.raises(SeriesError, match=sentence):
        watch.monitor().update(row)


def test_an_index_that_counts_is_no_name_and_a_missing_name_is_a_missing_value():
    read = RowReader(CHANNELS)
    assert read(pd.Series([1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]
    assert np.isnan(read(pd.Series({"net": 3.0, "cpu": 1.0}))).tolist() == [False, True, False]
    assert RowReader(("2", "1"))(pd.Series([1.0, 2.0], index=[1, 2])).tolist() == [2.0, 1.0]
