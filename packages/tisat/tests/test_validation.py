"""Arguments at their edges: what is taken comes back as a plain value, everything else is refused in one sentence."""

import numpy as np
import pytest

from tisat.errors import InputError, ParameterError
from tisat.events import check_events, events_from_labels, labels_from_events
from tisat.utils.random import generator
from tisat.utils.validation import (
    check_choice,
    check_flag,
    check_integer,
    check_labels,
    check_real,
    check_same_length,
    check_vector,
)

HUGE = 10**400  # a whole number beyond every float


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({}, "an integer"),
        ({"minimum": 2}, "an integer >= 2"),
        ({"maximum": 4}, "an integer <= 4"),
        ({"minimum": 2, "maximum": 4}, "an integer from 2 to 4"),
    ],
)
def test_integers_keep_their_bounds_and_the_sentence_says_them(bounds, said):
    for good in (2, 3, 4, np.int8(3)):
        assert type(check_integer(good, "n", "w", **bounds)) is int
    outside = [*([1] if "minimum" in bounds else []), *([5, HUGE] if "maximum" in bounds else [])]
    for bad in (True, np.True_, 2.0, "3", None, *outside):
        with pytest.raises(ParameterError, match=f"^The 'n' parameter of w must be {said} or so. Got .* instead.$"):
            check_integer(bad, "n", "w", also=" or so", **bounds)


@pytest.mark.parametrize(
    ("bounds", "good", "bad", "said"),
    [
        ({"above": 0, "below": 1}, [0.5, 1e-300], [0, 1, -1, 2], "a number > 0 and < 1"),
        ({"at_least": 0, "at_most": 1}, [0, 1, np.float32(0.5)], [-1e-9, 1.1], "a number >= 0 and <= 1"),
        ({}, [-1e308, np.int64(7)], [], "a number"),
    ],
)
def test_reals_keep_their_bounds_and_are_finite(bounds, good, bad, said):
    for value in good:
        assert check_real(value, "n", "w", **bounds) == float(value)
    for value in (*bad, np.inf, -np.inf, np.nan, HUGE, -HUGE, True, "1", None, 1j):
        with pytest.raises(ParameterError, match=f"^The 'n' parameter of w must be {said}. Got .* instead.$"):
            check_real(value, "n", "w", **bounds)


def test_words_flags_and_seeds():
    assert check_choice("a", "n", "w", choices=("a", "b")) == "a"
    assert check_flag(np.True_, "n", "w") is True
    for bad in (0, 1, "no", None):
        with pytest.raises(ParameterError, match="must be True or False"):
            check_flag(bad, "n", "w")
    for bad in ("c", None, 1):
        with pytest.raises(ParameterError, match="must be one of 'a', 'b' or None"):
            check_choice(bad, "n", "w", choices=("a", "b"), also=" or None")
    mine = np.random.default_rng(1)
    assert generator(mine) is mine
    for bad in (-1, "x", 1.0, True):
        with pytest.raises(ParameterError, match=r"'random_state' parameter of tisat must be an integer >= 0"):
            generator(bad)


@pytest.mark.parametrize(("check", "must"), [(check_vector, "be an array of numbers"), (check_labels, "hold only 0 and 1")])  # fmt: skip
@pytest.mark.parametrize("bad", [["a", "b"], [[1], [2, 3]], [HUGE], [object()]], ids=["text", "ragged", "huge", "object"])  # fmt: skip
def test_what_is_no_array_of_numbers_is_refused(check, must, bad):
    with pytest.raises(InputError, match=f"'n' argument of w must {must}. Got list instead"):
        check(bad, "n", "w")


def test_vectors_and_labels_name_the_row():
    np.testing.assert_array_equal(check_vector([1, None, np.nan], "n", "w"), [1.0, np.nan, np.nan])
    with pytest.raises(InputError, match=r"finite or NaN. Got -inf at row 2"):
        check_vector([0.0, np.nan, -np.inf, np.inf], "n", "w")
    assert check_labels([0, 1.0, True], "n", "w").tolist() == [False, True, True]
    for bad, said in (([0, 1, np.nan], "nan at row 2"), ([0, -1], "-1 at row 1"), ([[0]], r"shape \(1, 1\)")):
        with pytest.raises(InputError, match=said):
            check_labels(bad, "n", "w")
    with pytest.raises(InputError, match=r"'a' and 'b' arguments of w must have the same length. Got 1 and 2"):
        check_same_length(np.zeros(1), np.zeros(2), ("a", "b"), "w")


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ([[0, 1], [2]], "rows of different length"),
        ([0, 1], r"Got shape \(2,\)"),
        ([["a", "b"]], r"integer pairs \[start, stop\). Got shape"),
        ([[0, 1.5]], "Got fractions"),
        ([[-1, 2]], r"Got \[-1, 2\) at row 0"),
        ([[0, 1], [3, 3]], r"Got \[3, 3\) at row 1"),
        ([[0, 7]], r"0 <= start < stop <= 6. Got \[0, 7\)"),
    ],
)
def test_events_that_are_none_are_refused(bad, said):
    with pytest.raises(InputError, match=said):
        check_events(bad, whose="w", length=6)


def test_events_may_come_in_any_order_and_overlap():
    labels = labels_from_events(iter([(4, 6), (0, 2), (1, 3)]), length=6)
    assert labels.tolist() == [True, True, True, False, True, True]
    assert events_from_labels(labels).tolist() == [[0, 3], [4, 6]]
    assert check_events([[2, 9]], whose="w").tolist() == [[2, 9]]
    assert labels_from_events([], length=2).tolist() == [False, False]
