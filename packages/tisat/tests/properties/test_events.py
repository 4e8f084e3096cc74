import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tisat.errors import InputError
from tisat.events import check_events, events_from_labels, labels_from_events

labels = st.lists(st.booleans(), max_size=60)


def runs(y):
    """Maximal runs of ones, read one by one."""
    found, start = [], None
    for t, on in enumerate([*y, False]):
        if on and start is None:
            start = t
        if not on and start is not None:
            found.append([start, t])
            start = None
    return found


@given(labels)
def test_events_are_the_maximal_runs(y):
    assert events_from_labels(np.array(y, dtype=bool)).tolist() == runs(y)


@given(labels)
def test_labels_and_events_round_trip(y):
    again = labels_from_events(events_from_labels(np.array(y, dtype=bool)), length=len(y))
    assert again.tolist() == y


@pytest.mark.parametrize(
    ("events", "sentence"),
    [
        ([[3, 3]], r"start < stop <= 10. Got \[3, 3\) at row 0"),
        ([[0, 2], [5, 11]], "at row 1"),
        ([[-1, 2]], "at row 0"),
        ([[0.5, 2]], "fractions"),
        ([[0, 1, 2]], "pairs"),
        ([[0, 1], [2]], "different length"),
        ([["a", "b"]], "pairs"),
    ],
)
def test_bad_events(events, sentence):
    with pytest.raises(InputError, match=sentence):
        check_events(events, whose="x", length=10)


def test_no_events():
    assert events_from_labels([]).shape == (0, 2)
    assert not labels_from_events([], length=3).any()
