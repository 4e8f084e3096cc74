"""Attention against its reference implementation, and the contract tests of the masked form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import naive_attention as naive  # noqa: E402
from tisat.detectors.networks.attention import (  # noqa: E402
    EXACT_LENGTH,
    MultiHeadAttention,
    dense_attention,
    informer_attention,
    keys_per_query,
    n_chosen,
    probsparse_attention,
    sampled_keys,
    sparsity_measure,
)

QUICK = settings(max_examples=20, deadline=None)


def draw(seed, length, width=4, *, batch=1, heads=1, scale=2.0):
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, heads, length, width)
    return [scale * torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(3)]


def lists(tensor):
    return tensor[0, 0].tolist()


@QUICK
@given(st.integers(0, 10_000), st.integers(1, 12), st.booleans())
def test_dense_is_the_definition(seed, length, causal):
    q, k, v = draw(seed, length)
    expected = naive.full_attention(lists(q), lists(k), lists(v), causal=causal)
    np.testing.assert_allclose(dense_attention(q, k, v, causal=causal)[0, 0], expected, rtol=1e-9, atol=1e-12)


@QUICK
@given(st.integers(0, 10_000), st.integers(2, 14), st.booleans())
def test_all_queries_chosen_is_full_attention(seed, length, causal):
    q, k, v = draw(seed, length, batch=2, heads=3)
    factor = length  # u = L
    assert n_chosen(length, factor=factor) == length
    sparse = probsparse_attention(q, k, v, factor=factor, causal=causal)
    torch.testing.assert_close(sparse, dense_attention(q, k, v, causal=causal))


@QUICK
@given(st.integers(0, 10_000), st.integers(6, 24), st.booleans(), st.booleans())
def test_probsparse_is_the_definition(seed, length, causal, sampled):
    q, k, v = draw(seed, length)
    sample = sampled_keys(length, factor=1, seed=seed) if sampled else None
    how = {"causal": causal, "sample": None if sample is None else sample.tolist()}
    count = n_chosen(length, factor=1)
    ranked = sorted(naive.measures(lists(q), lists(k), **how), reverse=True)
    assume(ranked[count - 1] - ranked[count] > 1e-9)  # a query that sees one sampled key has measure 0: ties
    expected = naive.sparse_attention(lists(q), lists(k), lists(v), count=count, **how)
    found = probsparse_attention(q, k, v, factor=1, causal=causal, sample=sample)
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-9, atol=1e-12)


def test_the_measure_is_the_papers():
    q, k, _ = draw(3, 9)
    expected = [naive.measure(query, lists(k)) for query in lists(q)]
    np.testing.assert_allclose(sparsity_measure(q, k)[0, 0], expected, rtol=1e-12)


def test_a_query_that_points_at_one_key_is_chosen_and_an_even_one_gets_the_mean():
    _, k, v = draw(0, 40)
    q = torch.zeros_like(k)
    q[0, 0, 17] = 30 * k[0, 0, 5]  # everything on one key; all other queries attend evenly
    found = probsparse_attention(q, k, v, factor=1)[0, 0]
    torch.testing.assert_close(found[17], dense_attention(q, k, v)[0, 0, 17])
    torch.testing.assert_close(found[3], v[0, 0].mean(dim=0))


def test_heads_choose_for_themselves():
    q, k, v = draw(1, 30, heads=4)
    together = probsparse_attention(q, k, v, factor=2)
    for head in range(4):
        one = slice(head, head + 1)
        torch.testing.assert_close(together[:, one], probsparse_attention(q[:, one], k[:, one], v[:, one], factor=2))


@QUICK
@given(st.integers(0, 10_000), st.integers(5, 30), st.integers(1, 5))
def test_masked_values_after_an_time_step_never_reach_it(seed, length, cut):
    q, k, v = draw(seed, length)
    changed = v.clone()
    changed[:, :, -cut:] += 100.0
    before = probsparse_attention(q, k, v, factor=1, causal=True)
    after = probsparse_attention(q, k, changed, factor=1, causal=True)
    torch.testing.assert_close(before[:, :, :-cut], after[:, :, :-cut])
    assert not torch.equal(before, after)


@QUICK
@given(st.integers(0, 10_000), st.integers(5, 20), st.integers(1, 4))
def test_masked_with_every_query_chosen_is_causal_in_all_inputs(seed, length, cut):
    q, k, v = draw(seed, length)
    before = probsparse_attention(q, k, v, factor=length, causal=True)
    for tensor in (q, k, v):
        tensor[:, :, -cut:] = 7.0
    after = probsparse_attention(q, k, v, factor=length, causal=True)
    torch.testing.assert_close(before[:, :, :-cut], after[:, :, :-cut])


def test_fewer_queries_than_keys_are_the_last_ones():
    q, k, v = draw(5, 12)
    for last in (1, 3):
        torch.testing.assert_close(
            dense_attention(q[:, :, -last:], k, v, causal=True), dense_attention(q, k, v, causal=True)[:, :, -last:]
        )


@pytest.mark.parametrize("kind", ["dense", "probsparse"])
@pytest.mark.parametrize("length", [30, EXACT_LENGTH + 60])
def test_computing_only_the_last_rows_changes_nothing(kind, length):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        attention = MultiHeadAttention(8, 2, kind=kind, causal=True).double()
        x = torch.randn(2, length, 8, dtype=torch.float64)
    torch.testing.assert_close(attention(x, last=3), attention(x)[:, -3:])


def test_sampling_has_its_own_generator_and_the_same_input_gives_the_same_output():
    torch.manual_seed(0)
    before = torch.random.get_rng_state().clone()
    attention = MultiHeadAttention(8, 2, kind="probsparse").eval()
    torch.random.set_rng_state(before)
    x = torch.ones(1, EXACT_LENGTH * 2, 8) * torch.linspace(-1, 1, EXACT_LENGTH * 2)[:, None]
    first = attention(x)
    torch.manual_seed(123)
    assert torch.equal(first, attention(x))
    torch.manual_seed(0)
    attention(x)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(sampled_keys(500, factor=5), sampled_keys(500, factor=5))
    assert len(set(sampled_keys(500, factor=5).tolist())) == n_chosen(500, factor=5)


def test_auto_is_dense_up_to_the_crossover_and_sparse_beyond():
    attention = MultiHeadAttention(8, 2, kind="auto", crossover=20)
    assert not attention.sparse(20)
    assert attention.sparse(21)


@given(st.integers(1, 10_000), st.integers(1, 10))
def test_how_many_are_chosen(length, factor):
    count = n_chosen(length, factor=factor)
    assert 1 <= count <= length
    assert count == min(length, factor * math.ceil(math.log(max(length, 2))))


@pytest.mark.parametrize("causal", [False, True])
def test_informer_attention_is_the_released_recipe_done_query_by_query(causal):
    """Own sample of keys for each query, max less sum over all keys, unmasked; lazy rows: mean, or running sum."""
    torch.manual_seed(3)
    query, key, value = torch.randn(3, 2, 3, 20, 4).double()
    found = informer_attention(query, key, value, factor=2, causal=causal)
    sample = keys_per_query(20, 20, factor=2)
    assert sample.shape == (20, 6)
    for b in range(2):
        for h in range(3):
            q, k, v = (part[b, h].numpy() for part in (query, key, value))
            measure = [
                max(q[i] @ k[j] for j in sample[i]) - sum(q[i] @ k[j] for j in sample[i]) / 20 for i in range(20)
            ]
            chosen = set(np.argsort(measure)[-6:])
            for i in range(20):
                if i in chosen:
                    seen = range(i + 1) if causal else range(20)
                    weight = np.exp([q[i] @ k[j] / 2.0 for j in seen])
                    expected = (weight[:, None] * v[list(seen)]).sum(axis=0) / weight.sum()
                else:
                    expected = v[: i + 1].sum(axis=0) if causal else v.mean(axis=0)
                np.testing.assert_allclose(found[b, h, i].numpy(), expected, rtol=1e-9)
