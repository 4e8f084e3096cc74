"""Attention, dense and ProbSparse: which queries deserve a softmax over all keys, and what the others get.

Legend: b batch, h head, l query positions, s key positions, u chosen queries, d width of a head.

Dense attention costs ``O(L^2)``. ProbSparse attention (Zhou et al. 2021, section 3) gives the softmax only to the
``u = factor * ceil(ln L)`` queries of the largest sparsity measure

    M(q_i, K) = log sum_j exp(q_i k_j / sqrt d) - mean_j (q_i k_j / sqrt d)

and the mean of the values (masked: the running mean) to the rest. A query with small M attends almost evenly, so the mean
is nearly what it would have got. The measure itself is exact up to ``EXACT_LENGTH`` keys; beyond, it is estimated from
``factor * ceil(ln S)`` keys, one sample for all queries, which makes the whole ``O(L log L)``.

The masked form lets query i see keys ``<= i``: in its softmax, in its running mean and in its measure. Which queries are
chosen is decided over the whole window.

This module does not know windows, channels or losses, and never touches the global random state.

References
----------
Zhou, Zhang, Peng, Zhang, Li, Xiong, Zhang: Informer: Beyond Efficient Transformer for Long Sequence Time-Series
Forecasting, AAAI 2021. We differ: one key sample shared by all queries (theirs draws one a query), the measure with
log-sum-exp as in equation (2) (theirs bounds it by a maximum), masked too (theirs is not), a running mean in the masked form
(theirs a running sum). ``informer_attention`` does as theirs.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

EXACT_LENGTH = 128  # keys up to which the measure is exact; beyond, sampling wins (benchmarks/bench_tisat.py)


def n_chosen(length: int, *, factor: int) -> int:
    """How many of ``length`` queries (or sampled keys) are used: ``factor * ceil(ln length)``, at most all.

    Examples
    --------
    >>> n_chosen(100, factor=5), n_chosen(6400, factor=5), n_chosen(8, factor=5)
    (25, 45, 8)
    """
    return min(length, factor * math.ceil(math.log(max(length, 2))))


def sampled_keys(length: int, *, factor: int, seed: int = 0) -> Tensor:
    """Positions ``(U,)`` of the sampled keys, in order.

    The same for the same length and seed.
    """
    rng = np.random.default_rng([seed, length])
    return torch.from_numpy(np.sort(rng.choice(length, n_chosen(length, factor=factor), replace=False)))


def _measure(scores: Tensor, seen: Tensor | None) -> Tensor:
    """M ``(b, h, l)`` of scaled products ``(b, h, l, s)``, over the keys each query has ``seen`` ``(l, s)``."""
    if seen is None:
        return scores.logsumexp(dim=-1) - scores.mean(dim=-1)
    counts = seen.sum(dim=-1).clamp(min=1).to(scores.dtype)  # (l,)
    masked = scores.masked_fill(~seen, -math.inf)
    mean = scores.masked_fill(~seen, 0.0).sum(dim=-1) / counts
    # Fewer keys make a smaller log-sum-exp whatever their products: put all queries on the footing of all keys.
    return masked.logsumexp(dim=-1) - counts.log() - mean


def sparsity_measure(query: Tensor, key: Tensor, *, causal: bool = False, sample: Tensor | None = None) -> Tensor:
    """M of every query, exact or from a sample of keys.

    Parameters
    ----------
    query : Tensor (b, h, l, d)
    key : Tensor (b, h, s, d)
    causal : bool
        Each query is measured on keys at or before it; every count of keys is put on the same footing.
    sample : Tensor (U,), optional
        Key positions to estimate from.

    Returns
    -------
    Tensor (b, h, l)
    """
    positions = torch.arange(key.shape[2], device=key.device) if sample is None else sample.to(key.device)
    some = key if sample is None else key[:, :, positions]  # (b, h, U, d)
    scores = query @ some.transpose(-1, -2) / math.sqrt(query.shape[-1])  # (b, h, l, U)
    seen = positions[None, :] <= torch.arange(query.shape[2], device=key.device)[:, None] if causal else None
    return _measure(scores, seen)  # -inf, so never chosen, for a query before every sampled key


def dense_attention(query: Tensor, key: Tensor, value: Tensor, *, causal: bool = False) -> Tensor:
    """Softmax attention ``(b, h, l, d)``, fused.

    Causal with fewer queries than keys means the last ones.
    """
    queries, keys = query.shape[2], key.shape[2]
    if causal and queries == 1:
        causal = False  # the last position sees everything
    if causal and queries < keys:
        seen = torch.ones(queries, keys, dtype=torch.bool, device=query.device).tril(keys - queries)
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=seen)
    return functional.scaled_dot_product_attention(query, key, value, is_causal=causal)


def probsparse_attention(
    query: Tensor, key: Tensor, value: Tensor, *, factor: int, causal: bool = False, sample: Tensor | None = None
) -> Tensor:
    """ProbSparse attention ``(b, h, l, d)``.

    Parameters
    ----------
    query, key, value : Tensor (b, h, l or s, d)
    factor : int
        c in ``u = c * ceil(ln L)``; with u = L this is dense attention.
    causal : bool
        The masked form; needs as many queries as keys.
    sample : Tensor (U,), optional
        Keys the measure is estimated from; all of them where not given.
    """
    batch, heads, queries, width = query.shape
    count = n_chosen(int(queries), factor=factor)
    with torch.no_grad():
        measure = sparsity_measure(query, key, causal=causal, sample=sample)
        top = measure.topk(count, dim=-1, sorted=False).indices  # (b, h, u)
    where = top[..., None].expand(batch, heads, count, width)  # (b, h, u, d)
    picked = query.gather(2, where)
    if causal:
        counts = torch.arange(1, queries + 1, device=value.device, dtype=value.dtype)
        rest = value.cumsum(dim=2) / counts[:, None]  # (b, h, l, d)
        seen = torch.arange(key.shape[2], device=key.device) <= top[..., None]  # (b, h, u, s)
        focused = functional.scaled_dot_product_attention(picked, key, value, attn_mask=seen)
    else:
        rest = value.mean(dim=2, keepdim=True).expand(batch, heads, queries, width)
        focused = functional.scaled_dot_product_attention(picked, key, value)
    return rest.scatter(2, where, focused)


def keys_per_query(queries: int, keys: int, *, factor: int, seed: int = 0) -> Tensor:
    """Positions ``(l, U)`` of the keys each query is measured on: a draw of its own, with repetition, for each."""
    rng = np.random.default_rng([seed, queries, keys])
    return torch.from_numpy(rng.integers(0, keys, (queries, n_chosen(keys, factor=factor))))


def informer_attention(query: Tensor, key: Tensor, value: Tensor, *, factor: int, causal: bool = False) -> Tensor:
    """ProbSparse attention ``(b, h, l, d)`` as the authors of Informer released it.

    Every query is measured on its own sample of keys, by the largest product less the sum over the sample divided by the
    number of *all* keys; the measure is not masked; the rest get the mean of the values or, masked, their running **sum**.
    Their program draws the sample anew in every pass; here it is drawn once for each length, so that scores repeat.
    """
    batch, heads, queries, width = query.shape
    keys, count = int(key.shape[2]), n_chosen(int(queries), factor=factor)
    with torch.no_grad():
        sample = keys_per_query(int(queries), keys, factor=factor).to(key.device)  # (l, U)
        # All products and then a choice among them: up to a few hundred keys quicker than to gather the sampled keys first.
        products = (query @ key.mT).gather(-1, sample.expand(batch, heads, *sample.shape))  # (b, h, l, U)
        measure = products.amax(dim=-1) - products.sum(dim=-1) / keys  # (b, h, l)
        top = measure.topk(count, dim=-1, sorted=False).indices
    where = top[..., None].expand(batch, heads, count, width)
    picked = query.gather(2, where)
    seen = torch.arange(keys, device=key.device) <= top[..., None] if causal else None
    rest = value.cumsum(dim=2) if causal else value.mean(dim=2, keepdim=True).expand(batch, heads, queries, width)
    return rest.scatter(2, where, functional.scaled_dot_product_attention(picked, key, value, attn_mask=seen))


class MultiHeadAttention(nn.Module):
    """Several heads of attention between linear maps.

    Parameters
    ----------
    d_model, n_heads : int
        Width, and how many heads share it.
    kind : {"auto", "dense", "probsparse", "informer"}
        ``"auto"`` is dense up to ``crossover`` keys, where the fused kernel is quicker, and ProbSparse beyond;
        ``"informer"`` is :func:`informer_attention`.
    factor : int
        Of ProbSparse.
    causal : bool
        Position i sees positions ``<= i``.
    crossover : int
        Longest window that ``"auto"`` treats densely.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        kind: str = "auto",
        factor: int = 5,
        causal: bool = False,
        crossover: int = 300,
    ) -> None:
        super().__init__()
        self.n_heads, self.kind, self.factor, self.causal, self.crossover = n_heads, kind, factor, causal, crossover
        self.query = nn.Linear(d_model, d_model)
        self.key_value = nn.Linear(d_model, 2 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def sparse(self, length: int) -> bool:
        """Whether ``length`` keys are attended to sparsely."""
        return self.kind in ("probsparse", "informer") or (self.kind == "auto" and length > self.crossover)

    def _rows(self, x: Tensor) -> Tensor:
        """What linear maps made of the rows, by map and head: ``(b, l, n, h, d)``."""
        return x.view(*x.shape[:2], -1, self.n_heads, self.query.out_features // self.n_heads)

    def _heads(self, rows: Tensor) -> Tensor:
        split = rows.permute(2, 0, 3, 1, 4)  # (n, b, h, l, d)
        return split.contiguous() if self.training else split  # backwards the fused kernel is slower on strided rows

    def forward(self, x: Tensor, memory: Tensor | None = None, last: int | None = None) -> Tensor:
        """Attention of ``x`` ``(b, l, D)`` to itself or to ``memory`` ``(b, s, D)``.

        Only its ``last`` rows if asked.
        """
        keys = int((x if memory is None else memory).shape[1])  # a plain number also while the graph is traced
        sparse = self.sparse(keys) and memory is None
        asking = None
        if memory is None and last is None:  # one matrix product for all three maps
            weight = torch.cat([self.query.weight, self.key_value.weight])
            bias = torch.cat([self.query.bias, self.key_value.bias])
            rows = self._rows(functional.linear(x, weight, bias))
        else:
            rows = self._rows(self.key_value(x if memory is None else memory))
            # The choice of queries needs all of them.
            asking = self._rows(self.query(x if last is None or sparse else x[:, -last:]))
        *own, key, value = self._heads(rows)
        query = own[0] if asking is None else self._heads(asking)[0]
        attended = self._attend(query, key, value, sparse=sparse).transpose(1, 2)  # (b, l, h, d)
        attended = attended[:, -last:] if sparse and last is not None else attended
        mixed: Tensor = self.out(attended.flatten(2))
        return mixed

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, *, sparse: bool) -> Tensor:
        """``(b, h, l, d)``."""
        if not sparse:
            return dense_attention(query, key, value, causal=self.causal)
        if self.kind == "informer":
            return informer_attention(query, key, value, factor=self.factor, causal=self.causal)
        length = int(key.shape[2])
        sample = sampled_keys(length, factor=self.factor) if length > EXACT_LENGTH else None
        return probsparse_attention(query, key, value, factor=self.factor, causal=self.causal, sample=sample)
