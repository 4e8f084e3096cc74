"""Exact neighbours: every method gives the naive distance, one query or many to the bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import naive_sequential as naive
from tisat.alarms import Neighbours
from tisat.alarms.neighbours import METHODS
from tisat.errors import InputError, ParameterError

coarse = st.integers(-6, 6).map(lambda i: i / 4)  # ties and duplicates on purpose


@st.composite
def problems(draw):
    m = draw(st.integers(1, 12))
    n = draw(st.integers(1, 30))
    scale = draw(st.sampled_from([1.0, 1e-6, 1e6]))
    shift = draw(st.sampled_from([0.0, 1e5]))
    fine = st.floats(-3, 3).map(lambda value: round(value, 9))  # no squares that underflow in the twin
    elements = draw(st.sampled_from([coarse, fine]))
    points = draw(arrays(np.float64, (n, m), elements=elements)) * scale + shift
    queries = draw(arrays(np.float64, (draw(st.integers(1, 5)), m), elements=elements)) * scale + shift
    return points, queries, draw(st.integers(1, n))


@given(problems(), st.sampled_from(METHODS))
@settings(max_examples=75, deadline=None)
def test_every_method_gives_the_naive_distance(problem, method):
    points, queries, k = problem
    if method == "sorted" and points.shape[1] != 1:
        return
    found = Neighbours(points, k=k, method=method).distances(queries)
    np.testing.assert_allclose(found, [naive.kth_distance(q, points, k) for q in queries], rtol=1e-14)


@pytest.mark.parametrize("method", ["scan"])
@pytest.mark.parametrize("m", [2, 8, 38, 55])
def test_one_query_and_many_agree_to_the_bit(method, m):
    rng = np.random.default_rng(m)
    points = rng.standard_t(3, size=(400, m)) * rng.exponential(size=m)
    queries = np.concatenate([rng.standard_t(3, size=(50, m)), points[:5], 1e4 * rng.normal(size=(5, m))])
    neighbours = Neighbours(points, method=method)
    distance, where = neighbours.search(queries)
    assert [neighbours.distances(q[None])[0] for q in queries] == distance.tolist()
    again = np.sqrt(((queries - points[where]) ** 2).sum(axis=1))
    np.testing.assert_allclose(distance, again, rtol=1e-12)


def test_the_scan_measures_what_float32_cannot_tell_apart_or_hold():
    rng = np.random.default_rng(0)
    for scale, shift in ((1e-9, 1.0), (1e18, 0.0), (1.0, 1e9)):
        points, queries = (rng.normal(size=(n, 6)) * scale + shift for n in (200, 40))
        expected = [naive.kth_distance(q, points, 2) for q in queries]
        np.testing.assert_allclose(Neighbours(points, k=2, method="scan").distances(queries), expected, rtol=1e-14)


@pytest.mark.parametrize("method", ["sorted", "scan"])
def test_a_query_with_a_hole_has_no_distance_and_no_neighbour(method):
    m = 1 if method == "sorted" else 3
    neighbours = Neighbours(np.arange(6.0 * m).reshape(6, m), method=method)
    queries = np.ones((3, m))
    queries[1, 0] = np.nan
    distance, where = neighbours.search(queries)
    assert np.isnan(distance).tolist() == [False, True, False]
    assert where[1] == -1
    assert distance[0] == distance[2] == neighbours.distances(queries[:1])[0]


def test_bad_arguments_are_refused_in_a_sentence():
    with pytest.raises(ParameterError, match=r"'k' parameter of Neighbours must be an integer from 1 to 2\. Got 3"):
        Neighbours([[0.0], [1.0]], k=3)
    with pytest.raises(InputError, match="finite"):
        Neighbours([[0.0], [np.nan]])
    with pytest.raises(InputError, match="one dimension"):
        Neighbours([[0.0, 1.0]], method="sorted")
