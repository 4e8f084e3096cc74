"""Scalers learn from the training split alone, undo themselves, and survive JSON; windows and tails are views."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import sklearn.preprocessing
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import naive_datasets as naive
from tisat import Series
from tisat.datasets import (
    MinMaxScaler,
    RobustScaler,
    Scaler,
    StandardScaler,
    load,
    scaler_from_state,
    split_tail,
    windows,
)
from tisat.errors import InputError, ParameterError, SeriesError

SCALERS = [MinMaxScaler, StandardScaler, RobustScaler]
tables = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=st.floats(-1e6, 1e6) | st.just(np.nan)
)


@pytest.mark.parametrize("kind", SCALERS)
def test_nothing_of_the_test_split_reaches_a_scaler(smd, kind):
    """Whatever happens to the test files, the scaler of the training split is the same, bit for bit."""
    before = kind.fit(load("smd", smd, strict=False)["machine-1-1"].train)
    folder = smd / "ServerMachineDataset"
    (folder / "test" / "machine-1-1.txt").write_text((",".join(["1e9"] * 38) + "\n") * 20)
    (folder / "test_label" / "machine-1-1.txt").write_text("1\n" * 20)
    entity = load("smd", smd, strict=False)["machine-1-1"]
    scaler = kind.fit(entity.train)
    scaler.transform(entity.test)
    assert scaler == before
    with pytest.raises(FrozenInstanceError):
        scaler.center = (0.0,) * 38


@pytest.mark.parametrize("kind", SCALERS)
@given(train=tables, data=st.data())
def test_what_comes_after_does_not_change_what_was_learned(kind, train, data):
    scaler = kind.fit(train)
    test = data.draw(hnp.arrays(np.float64, (3, train.shape[1]), elements=st.floats(-1e9, 1e9)))
    scaler.transform(test)
    assert scaler == kind.fit(np.vstack([train, test])[: len(train)])


@pytest.mark.parametrize("kind", SCALERS)
@given(train=tables)
def test_inverse_undoes_transform_and_missing_stays_missing(kind, train):
    scaler = kind.fit(train)
    back = scaler.inverse(scaler.transform(train)).values
    np.testing.assert_array_equal(np.isnan(back), np.isnan(train))
    # The channel's own size bounds the error: x - center may cancel.
    np.testing.assert_allclose(back, train, rtol=1e-9, atol=1e-9 * max(1.0, np.nanmax(np.abs(train), initial=0.0)))


@pytest.mark.parametrize("kind", SCALERS)
@given(train=tables)
def test_a_scaler_survives_json_exactly(kind, train):
    scaler = kind.fit(train)
    again = scaler_from_state(json.loads(json.dumps(scaler.to_state())))
    assert type(again) is kind
    assert again == scaler


@pytest.mark.parametrize(
    ("kind", "twin"),
    [
        (MinMaxScaler, sklearn.preprocessing.MinMaxScaler),
        (StandardScaler, sklearn.preprocessing.StandardScaler),
        (RobustScaler, sklearn.preprocessing.RobustScaler),
    ],
)
def test_scalers_agree_with_scikit_learn(kind, twin, rng):
    train, test = rng.normal(size=(50, 4)), rng.normal(size=(20, 4))
    train[rng.random(train.shape) < 0.1] = np.nan
    train[:, 2] = 3.0  # constant: shifted, not scaled
    np.testing.assert_allclose(kind.fit(train).transform(test).values, twin().fit(train).transform(test), rtol=1e-12)


@pytest.mark.parametrize("kind", SCALERS)
def test_a_constant_or_unseen_channel_is_only_shifted(kind):
    scaler = kind.fit([[5.0, np.nan], [5.0, np.nan]])
    assert scaler.scale == (1.0, 1.0)
    assert scaler.transform([[7.0, 7.0]]).values.tolist() == [[2.0, 7.0]]


def test_values_outside_the_training_range_are_kept():
    assert MinMaxScaler.fit([0.0, 1.0]).transform([-3.0, 9.0]).values.ravel().tolist() == [-3, 9]


def test_a_scaled_series_keeps_the_rest(rng):
    series = Series(
        rng.normal(size=(5, 2)).astype(np.float32), labels=[0, 1, 0, 0, 1], channels=("a", "b"), name="pump"
    )
    scaled = MinMaxScaler.fit(series).transform(series)
    assert scaled.values.dtype == np.float32
    assert replace(scaled, values=series.values).channels == series.channels
    assert scaled.labels.tolist() == series.labels.tolist()
    assert scaled.name == "pump"


def test_other_channels_are_refused():
    scaler = MinMaxScaler.fit(Series([[1.0, 2.0]], channels=("a", "b")))
    with pytest.raises(SeriesError, match=r"must have the channels of the training split: a, b. Got b, a"):
        scaler.transform(Series([[1.0, 2.0]], channels=("b", "a")))


@pytest.mark.parametrize(
    "state",
    [{}, {"kind": "pickle"}, {"kind": "minmax"}, {"kind": "minmax", "channels": ["a"], "center": [0], "scale": [0]}],
)
def test_a_state_that_is_none_is_refused(state):
    with pytest.raises(InputError):
        scaler_from_state(state)


def test_a_scaler_of_unequal_parts_is_refused():
    with pytest.raises(ParameterError, match=r"same length. Got 1, 2 and 1"):
        MinMaxScaler(("a",), (0.0, 1.0), (1.0,))
    assert issubclass(MinMaxScaler, Scaler)


@given(rows=st.integers(1, 12), length=st.integers(1, 12), step=st.integers(1, 5))
def test_windows_are_those_cut_out_one_by_one(rows, length, step):
    values = np.arange(rows * 2, dtype=float).reshape(rows, 2)
    if length > rows:
        with pytest.raises(SeriesError, match=f"at least {length} instants. Got {rows}"):
            windows(values, length=length, step=step)
        return
    assert windows(values, length=length, step=step).tolist() == naive.windows(values.tolist(), length, step)


def test_windows_share_the_memory_of_the_series():
    values = np.random.default_rng(0).normal(size=(1000, 5))
    view = windows(Series(values), length=100)
    assert view.shape == (901, 100, 5)
    assert np.shares_memory(view, values)
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0, 0] = 1


@given(rows=st.integers(2, 30), data=st.data())
def test_head_and_tail_are_the_series_again(rows, data):
    values = np.arange(float(rows))
    tail_rows = data.draw(st.integers(1, rows - 1))
    head, tail = split_tail(values, rows=tail_rows)
    assert len(tail) == tail_rows
    assert np.concatenate([head.values, tail.values]).ravel().tolist() == values.tolist()
    assert np.shares_memory(head.values, values)
    assert np.shares_memory(tail.values, values)


def test_a_tail_is_a_fifth_unless_said_otherwise():
    assert [len(part) for part in split_tail(np.zeros(100))] == [80, 20]
    assert [len(part) for part in split_tail(np.zeros(100), share=0.5)] == [50, 50]


@pytest.mark.parametrize(
    "arguments", [{"share": 0.0}, {"share": 1.0}, {"rows": 0}, {"rows": 10}, {"share": 0.5, "rows": 3}]
)
def test_an_empty_head_or_tail_is_refused(arguments):
    with pytest.raises(ParameterError):
        split_tail(np.zeros(10), **arguments)


@pytest.mark.parametrize("kind", SCALERS)
def test_a_range_below_all_measure_is_no_range(kind):
    scaler = kind.fit(np.array([[2.2e-309], [0.0], [1e-309]]))
    assert np.isfinite(scaler.transform(np.array([[1e9]])).values).all()
