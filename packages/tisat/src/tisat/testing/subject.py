"""A detector class under examination: what the contract tests of :mod:`tisat.testing.contracts` are tried on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tisat.detectors.base import Array, Detector
from tisat.errors import InputError

N_TRAIN, N_TEST = 400, 160


def example(length: int, *, channels: int, seed: int) -> Array:
    """A small coupled series: a cycle seen by every channel with its own lag, level and noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(length)[:, None] + 7.0 * np.arange(channels)
    return np.sin(time / 9.0) * (1 + np.arange(channels)) + 0.1 * rng.standard_normal((length, channels)) + 3.0


@dataclass(frozen=True)
class Second:
    """The results of a second fit on copies of the data."""

    scores: Array
    train: Array  # the copies, as they are afterwards
    test: Array
    moved: str  # whose global random state it moved; "" for nobody's


class Subject:
    """A detector class under examination, with the data it is examined on.

    One fit serves the contract tests that only look.
    """

    def __init__(self, cls: type[Detector]) -> None:
        self.cls = cls
        self.train = example(N_TRAIN, channels=3, seed=1)
        self.test = example(N_TEST, channels=3, seed=2)

    def make(self) -> Detector:
        """A fresh detector with the class's quick parameters."""
        return self.cls(**self.cls._test_params())

    @cached_property
    def fitted(self) -> Detector:
        """One fitted detector; contract tests must not change it."""
        return self.make().fit(self.train)

    @cached_property
    def second(self) -> Second:
        """A second fit, watched for what it touches."""
        train, test = self.train.copy(), self.test.copy()
        torch = sys.modules.get("torch")
        np.random.seed(3)  # noqa: NPY002 - a contract is about this state
        before = _states(torch)
        scores = self.make().fit(train).decision_function(test)
        moved = [name for name, state in _states(torch).items() if state != before[name]]
        return Second(scores, train, test, " and ".join(moved))

    def assert_equal(self, found: Array, expected: Array, *, what: str) -> None:
        """Equal up to the rounding the class admits to; NaN equals NaN."""
        assert found.shape == expected.shape, f"{what}: shape {found.shape} is not {expected.shape}"
        unit = float(np.nanmedian(np.abs(expected))) if np.isfinite(expected).any() else 0.0
        np.testing.assert_allclose(
            found,
            expected,
            rtol=self.cls.traits.rounding,
            atol=self.cls.traits.rounding * unit,
            equal_nan=True,
            err_msg=what,
        )


def _states(torch: Any) -> dict[str, bytes]:
    """The states of the global generators."""
    found = {"numpy": np.random.get_state(legacy=False)["state"]["key"].tobytes()}  # noqa: NPY002
    return found if torch is None else {**found, "torch": torch.get_rng_state().numpy().tobytes()}


def assert_refused(call: Callable[[], object]) -> None:
    """The call is refused in a sentence of ours."""
    try:
        call()
    except InputError:
        return
    raise AssertionError("bad input was accepted")
