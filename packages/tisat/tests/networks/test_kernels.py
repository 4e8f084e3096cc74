"""The compiled loops of the transformer against torch's own operations, forwards and backwards."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from tisat.detectors.networks._kernels import WIDTH, _power  # noqa: E402
from tisat.detectors.networks.attention import MultiHeadAttention, dense_attention  # noqa: E402
from tisat.detectors.networks.distilling import halve  # noqa: E402
from tisat.detectors.networks.dropout import Dropout  # noqa: E402
from tisat.detectors.networks.linear import FEW, Linear  # noqa: E402
from tisat.detectors.networks.narrow import is_narrow, narrow_attention  # noqa: E402

QUICK = settings(max_examples=25, deadline=None)
lengths = st.integers(1, 40)


def both(ours, theirs, *inputs):
    """Results and slopes of ours are those of theirs in double precision, up to the rounding of an exponent and what it multiplies."""
    size = max(1.0, *(float(each.square().mean()) for each in inputs), 0.0)  # of a product, and of an exponent
    found = []
    for function, kind in ((ours, torch.float32), (theirs, torch.float64)):
        leaves = [each.to(kind).clone().requires_grad_() for each in inputs]
        result = function(*leaves)
        weights = torch.linspace(-1, 1, result.numel(), dtype=kind).view(result.shape)
        found.append([result.detach(), *torch.autograd.grad((result * weights).sum(), leaves)])
    for mine, wanted in zip(*found, strict=True):
        atol = 2e-5 * max(1.0, float(wanted.abs().max())) + 1e-5 * (size**2 - 1)
        torch.testing.assert_close(mine, wanted.float(), rtol=1e-4, atol=atol)


def by_torch(rows, query=None, *, causal):
    """What narrow attention promises, by torch's fused attention."""
    *own, key, value = rows.permute(2, 0, 3, 1, 4)
    asking = own[0] if query is None else query.permute(2, 0, 3, 1, 4)[0]
    return dense_attention(asking, key, value, causal=causal).transpose(1, 2)


@QUICK
@given(st.integers(0, 10_000), lengths, st.booleans(), st.sampled_from([0.0, 1.0, 4.0]))
def test_attention_to_itself_is_torchs(seed, length, causal, scale):
    rows = scale * torch.randn(2, length, 3, 2, WIDTH, generator=torch.Generator().manual_seed(seed))
    both(lambda x: narrow_attention(x, causal=causal), lambda x: by_torch(x, causal=causal), rows)


@QUICK
@given(st.integers(0, 10_000), lengths, lengths, st.booleans())
def test_attention_of_other_queries_is_torchs(seed, queries, keys, causal):
    causal = causal and queries <= keys
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(2, keys, 2, 3, WIDTH, generator=generator)
    query = torch.randn(2, queries, 1, 3, WIDTH, generator=generator)
    both(lambda x, q: narrow_attention(x, q, causal=causal), lambda x, q: by_torch(x, q, causal=causal), rows, query)


@pytest.mark.parametrize("causal", [False, True])
def test_products_beyond_any_exponent_do_not_overflow(causal):
    """The softmax of huge products is the key of the largest one; without the shift it would be inf / inf."""
    rows = torch.randn(1, 30, 3, 1, WIDTH, generator=torch.Generator().manual_seed(0))
    rows[:, :, :2] *= 300
    found = narrow_attention(rows, causal=causal)
    assert torch.isfinite(found).all()
    torch.testing.assert_close(found, by_torch(rows, causal=causal), rtol=1e-4, atol=1e-4)


def test_what_is_not_a_number_stays_so():
    rows = torch.zeros(1, 5, 3, 1, WIDTH)
    rows[0, 2] = math.nan
    assert torch.isnan(narrow_attention(rows)).all()


def test_the_loops_are_taken_for_heads_of_their_width_alone(monkeypatch):
    monkeypatch.setattr("tisat.detectors.networks.narrow.WIDE_VECTORS", False)
    assert not is_narrow(torch.zeros(1, 4, 3, 2, WIDTH))
    monkeypatch.setattr("tisat.detectors.networks.narrow.WIDE_VECTORS", True)
    assert is_narrow(torch.zeros(1, 4, 3, 2, WIDTH))
    assert not is_narrow(torch.zeros(1, 4, 3, 2, WIDTH + 8))
    assert not is_narrow(torch.zeros(1, 4, 3, 2, WIDTH, dtype=torch.float64))
    assert not is_narrow(torch.zeros(1, 4, 2, 3, WIDTH).transpose(2, 3))


@pytest.mark.parametrize(("causal", "last", "cross"), [(False, None, False), (True, None, False), (True, 2, False), (False, None, True)])  # fmt: skip
def test_a_layer_says_the_same_with_and_without_the_loops(monkeypatch, causal, last, cross):
    monkeypatch.setattr("tisat.detectors.networks.narrow.WIDE_VECTORS", True)
    torch.manual_seed(0)
    layer = MultiHeadAttention(2 * WIDTH, 2, causal=causal).eval()
    x, memory = torch.randn(3, 20, 2 * WIDTH), torch.randn(3, 9, 2 * WIDTH) if cross else None
    wanted = layer.double()(x.double(), None if memory is None else memory.double(), last)
    torch.testing.assert_close(layer.float()(x, memory, last), wanted.float(), rtol=1e-4, atol=1e-5)


def test_powers_of_two():
    x = np.linspace(-120, 120, 4001, dtype=np.float32)
    found = np.array([_power(each) for each in x])
    np.testing.assert_allclose(found, np.exp2(x.astype(np.float64)), rtol=3e-7)
    assert 0 < _power(np.float32(-1e30)) < 1e-37


@QUICK
@given(st.integers(0, 10_000), lengths)
def test_halving_is_torchs_pool_of_three(seed, length):
    x = torch.randn(2, length, 5, generator=torch.Generator().manual_seed(seed))

    def by_pooling(rows):
        return torch.nn.functional.max_pool1d(rows.transpose(1, 2), 3, stride=2, padding=1).transpose(1, 2)

    both(halve, by_pooling, x)


def dropped_places(count, key, rate):
    """The reference implementation: a mix of 32 bits by whole numbers without end."""
    found = []
    for place in range(count):
        bits = (place + key) % 2**32
        bits = (bits ^ bits >> 16) * 0x7FEB352D % 2**32
        bits = (bits ^ bits >> 15) * 0x846CA68B % 2**32
        found.append(bits ^ bits >> 16 ^ key >> 32 < round(rate * 2**32))
    return found


def test_what_is_dropped_follows_from_the_key_and_the_way_back_drops_the_same():
    torch.manual_seed(5)
    key = int(torch.empty((), dtype=torch.int64).random_())
    torch.manual_seed(5)
    x = torch.ones(300, requires_grad=True)
    y = Dropout(0.3)(x)
    assert (y == 0).tolist() == dropped_places(300, key, 0.3)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())


@pytest.mark.parametrize("rows", [FEW - 1, FEW])
def test_a_linear_map_is_torchs_with_its_slopes(rows):
    torch.manual_seed(0)
    ours = Linear(6, 5)
    x = torch.randn(rows, 6)
    both(
        lambda x, w, b: torch.func.functional_call(ours, {"weight": w, "bias": b}, (x,)),
        torch.nn.functional.linear, x, ours.weight.detach(), ours.bias.detach(),
    )  # fmt: skip
    with torch.no_grad():
        torch.testing.assert_close(
            ours.then_gelu(x), torch.nn.functional.gelu(torch.nn.functional.linear(x, ours.weight, ours.bias))
        )
