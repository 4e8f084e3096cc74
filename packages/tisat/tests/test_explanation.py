"""Why, in words: the channels that matter, with as many digits as their spread gives meaning to."""

import numpy as np
import pytest

from tisat.alarms.explanation import Explanation, Reason
from tisat.alarms.sentences import UNKNOWN_HABITS, worded

NAN = np.nan


def test_a_sentence_for_each_channel_that_matters_and_one_at_least():
    why = Explanation("spike", np.array([0.02, 0.9, 0.08]), np.array([1.0, NAN, 3.0]), np.array([1.0, 2.0, NAN]), np.array([0.1, 0.2, NAN]), "x")  # fmt: skip
    names = ("a", "load%", "c")
    assert why.sentences(names) == ["load% missing, expected 2.00 ± 0.20 (90 % of the evidence)", "c 3 (8 % of the evidence)"]  # fmt: skip
    assert why.sentences(names, most=1) == why.sentences(names)[:1]
    assert [one.channel for one in why.reasons(names, np.array([0.04, 0.0, 0.03]))] == ["a"]
    assert why.ranking().tolist() == [1, 2, 0]


@pytest.mark.parametrize(("seen", "spread", "said"), [
    (58.23456, 1.9, "58.2"), (58.23456, 19.0, "58"), (58.23456, 0.019, "58.235"), (58.23456, None, "58.2346"), (58.23456, 0.0, "58.2346"),
    (58.23456, 1e-6, "58.2346"), (2e12, 5.0, "2e+12"), (None, 1.0, "missing"), (5e9, 2e9, "5e+09"),
])  # fmt: skip
def test_digits_follow_the_spread(seen, spread, said):
    assert str(Reason("flow", 1.0, seen, None, spread)) == f"flow {said}"


def test_an_expectation_without_a_spread_is_said_alone():
    assert str(Reason("flow", 1.0, 2.0, 1.5, None)) == "flow 2, expected 1.5"


def test_a_channel_that_is_where_it_is_expected_is_no_reason_beside_one_that_is_not():
    why = Explanation(
        "spike", np.array([0.6, 0.4]), np.array([1.0, 9.0]), np.array([1.0, 2.0]), np.array([0.1, 0.2]), "x"
    )
    still = np.zeros(2, dtype=np.int64)
    said = worded(why.reasons(("valve", "flow")), why, ("valve", "flow"), still, UNKNOWN_HABITS)
    assert [str(one) for one in said] == ["flow 9.00, expected 2.00 ± 0.20"]
    alone = worded(why.reasons(("valve", "flow"), most=1), why, ("valve", "flow"), still, UNKNOWN_HABITS)
    assert [one.channel for one in alone] == ["valve"]
