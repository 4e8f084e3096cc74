"""Attribution against an expert's: bounds, perfect and worst rankings, and the random ranking's expectation."""

import numpy as np
import pytest
from attribution_figures import hit_rate, ndcg
from hypothesis import given
from hypothesis import strategies as st

from tisat.errors import InputError


@given(st.permutations(range(8)), st.sets(st.integers(0, 7), min_size=1))
def test_figures_are_shares_and_look_at_more_with_a_larger_share(ranking, contributing):
    for figure in (hit_rate, ndcg):
        values = [figure(ranking, contributing, share=share) for share in (1.0, 1.5, 8.0)]
        assert 0 <= values[0] <= values[1] <= values[2] <= 1 + 1e-12
    assert hit_rate(ranking, contributing, share=8.0) == 1.0


@given(st.permutations(range(8)), st.integers(1, 8))
def test_naming_the_contributing_first_is_perfect_and_last_is_worst(ranking, count):
    assert hit_rate(ranking, ranking[:count]) == ndcg(ranking, ranking[:count]) == 1.0
    if count <= 4:
        assert hit_rate(ranking, ranking[-count:]) == ndcg(ranking, ranking[-count:]) == 0.0


def test_a_random_ranking_finds_as_many_as_it_looks_at():
    rng = np.random.default_rng(0)
    found = np.mean([hit_rate(rng.permutation(38).tolist(), range(4)) for _ in range(4000)])
    assert found == pytest.approx(4 / 38, abs=0.01)


def test_half_a_hit():
    # worked by hand: the first two hold one of two, on place 2: 1/log2(3) over 1 + 1/log2(3)
    assert ndcg([3, 1, 0, 2], [1, 2]) == pytest.approx(0.63093 / 1.63093, abs=1e-4)


def test_bad_arguments_are_refused():
    with pytest.raises(InputError, match="name every channel once"):
        hit_rate([0, 1], [2])
    with pytest.raises(InputError, match="name every channel once"):
        ndcg([0, 0], [0])
