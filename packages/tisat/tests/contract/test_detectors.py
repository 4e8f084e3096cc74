"""Every contract test over every registered detector, and over a toy registered here: one class and one line get them all."""

from functools import lru_cache

import numpy as np
import pytest

from contract.toy import Distance
from tisat import registry
from tisat.detectors.base import Detector
from tisat.testing import contracts as checks

CASES = [
    pytest.param(name, contract, id=f"{name}:{contract}")
    for name in (*registry.names(), "toy")
    for contract in checks.CONTRACTS
]


@pytest.fixture(autouse=True, scope="module")
def _toy():
    registry.register("toy", Distance)
    yield
    registry.DETECTORS.pop("toy", None)


@lru_cache
def subject(name):
    return checks.Subject(registry.resolve(name))


@pytest.mark.parametrize(("name", "contract"), CASES)
def test_contract(name, contract):
    reason = registry.resolve(name).traits.contract_exemptions.get(contract)
    if reason is not None:
        pytest.skip(f"exempt: {reason}")
    checks.CONTRACTS[contract](subject(name))


def test_exemptions_name_contracts_that_exist():
    for name in registry.names():
        checks.contracts_for(registry.resolve(name))


class Peeking(Distance):
    """Looks at the whole series before it scores: what the contract tests are there to catch."""

    def _points(self, part):
        return np.abs(part - part.mean(axis=0)).max(axis=1, keepdims=True)


class Forgetful(Distance):
    """Remembers the last series it scored."""

    def _points(self, part):
        points = super()._points(part) + getattr(self, "offset", 0.0)
        self.offset = float(np.abs(part).max())
        return points


class Mutating(Distance):
    def decision_function(self, series):
        return super().decision_function(series)


@pytest.mark.parametrize(
    ("cls", "contract"),
    [
        (Peeking, "later_rows_never_change_earlier_scores"),
        (Peeking, "rows_one_by_one_equal_the_batch"),
        (Forgetful, "scoring_learns_nothing"),
        (Mutating, "public_methods_are_inherited"),
    ],
)
def test_the_contracts_catch_those_who_break_them(cls, contract):
    with pytest.raises(AssertionError):
        checks.CONTRACTS[contract](checks.Subject(cls))


def test_a_toy_passes_the_public_check():
    checks.check_detector(Distance)
    assert issubclass(Distance, Detector)
