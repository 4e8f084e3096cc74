"""Generated rows that tests of several files share, and how a watch on them is made without its warning."""

import dataclasses
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

import tisat
from tisat.errors import CalibrationWarning
from tisat.gap_filling import MAX_GAP
from tisat.utils.types import Array

T = TypeVar("T")


def wave(length: int, *, seed: int, channels: int = 3) -> Array:
    """Sines of one frequency, each channel a little later, with noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(length)[:, None] + 7.0 * np.arange(channels)
    rows: Array = np.sin(time / 9.0) + 0.1 * rng.standard_normal((length, channels))
    return rows


def waves(length: int = 400, *, seed: int = 0, channels: int = 3) -> Array:
    """Sines of another frequency for each channel, around 5, with little noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(length)[:, None]
    rows: Array = np.sin(time / (4 + 3 * np.arange(channels))) + 0.05 * rng.standard_normal((length, channels)) + 5.0
    return rows


def troubled(length: int = 500) -> tisat.Series:
    """A series with an event, short and long holes, and a jump in time."""
    values = wave(length, seed=5)
    values[300:320, 1] += 2.0
    values[60:64, 0] = np.nan
    values[100 : 100 + 2 * MAX_GAP, 2] = np.nan
    seconds = 60.0 * np.arange(length)
    seconds[400:] += 60.0 * (MAX_GAP + 3)
    return tisat.Series(values, timestamps=seconds, channels=("cpu", "disk", "net"), name="machine")


def quietly(call: Callable[..., T], *args: Any, **options: Any) -> T:
    """The result of a call that may warn that little normal data cannot support a threshold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return call(*args, **options)


def assert_same_verdicts(found: Iterable[object], expected: Iterable[object]) -> None:
    """The same results, to the last digit."""
    assert [repr(one) for one in found] == [repr(one) for one in expected]  # repr: NaN equals NaN, floats to the bit


def assert_close(found: Any, wanted: Any, where: str = "") -> None:
    """Check that results or states are equal, numbers up to the rounding of sums in double precision."""
    if dataclasses.is_dataclass(wanted) and not isinstance(wanted, type):
        found, wanted = (
            {one.name: getattr(each, one.name) for one in dataclasses.fields(each)} for each in (found, wanted)
        )
    if isinstance(wanted, dict):
        assert list(found) == list(wanted), where
        for name in wanted:
            assert_close(found[name], wanted[name], f"{where}.{name}")
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted), where
        for place, one in enumerate(wanted):
            assert_close(found[place], one, f"{where}[{place}]")
    elif isinstance(wanted, float | np.ndarray):
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9, err_msg=where)
    else:
        assert found == wanted, where
