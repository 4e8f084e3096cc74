"""The rest of the network: twins, lengths, gradients, shapes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import naive_attention as naive  # noqa: E402
from tisat.detectors.networks import linear_skip  # noqa: E402
from tisat.detectors.networks.decoder import Decoder  # noqa: E402
from tisat.detectors.networks.distilling import Distilling, halve  # noqa: E402
from tisat.detectors.networks.embedding import Embedding, TimeConvolution, positions  # noqa: E402
from tisat.detectors.networks.encoder import Encoder, LayerSizes  # noqa: E402
from tisat.detectors.networks.forecaster import SparseTransformer  # noqa: E402
from tisat.detectors.networks.linear_skip import LinearSkip  # noqa: E402
from tisat.detectors.networks.onnx_session import one_window_session, session_available  # noqa: E402
from tisat.detectors.networks.threads import threads_for  # noqa: E402

QUICK = settings(max_examples=15, deadline=None)
SMALL = {"d_model": 8, "n_heads": 2, "d_ff": 8, "dropout": 0.0}
LAYERS = LayerSizes(8, 2, 8, dropout=0.0, attention="auto", factor=5)


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@QUICK
@given(st.integers(1, 12), st.integers(1, 4))
def test_convolution_is_the_definition(length, channels):
    layer = TimeConvolution(channels, 3).double()
    x = torch.randn(1, length, channels, dtype=torch.float64)
    expected = naive.convolve(x[0].tolist(), layer.linear.weight.tolist(), layer.linear.bias.tolist())
    np.testing.assert_allclose(layer(x)[0].detach(), expected, rtol=1e-9, atol=1e-12)


@QUICK
@given(st.integers(1, 15))
def test_distilling_is_the_definition_for_even_and_odd_lengths(length):
    layer = Distilling(4).double()
    x = torch.randn(1, length, 4, dtype=torch.float64)
    linear = layer.convolution.linear
    expected = naive.distil(x[0].tolist(), linear.weight.tolist(), linear.bias.tolist())
    assert layer(x).shape[1] == (length + 1) // 2
    np.testing.assert_allclose(layer(x)[0].detach(), expected, rtol=1e-9, atol=1e-12)


@QUICK
@given(st.integers(1, 40))
def test_halving_is_torchs_max_pool(length):
    x = torch.randn(2, length, 3)
    expected = torch.nn.functional.max_pool1d(x.transpose(1, 2), 3, stride=2, padding=1).transpose(1, 2)
    assert torch.equal(halve(x), expected)


def test_positions_are_distinct_and_known():
    table = positions(200, 16)
    assert torch.unique(table.round(decimals=6), dim=0).shape[0] == 200
    np.testing.assert_allclose(table[3, :2], [np.sin(3), np.cos(3)], rtol=1e-6)
    assert positions(5, 7).shape == (5, 7)  # odd widths too


def test_embedding_knows_order():
    layer = Embedding(2, 8, length=6, dropout=0.0)
    same = layer(torch.ones(1, 6, 2))[0]
    assert not torch.allclose(same[2], same[3])


@pytest.mark.parametrize(
    ("length", "layers", "expected"), [(100, 3, 25 + 25), (99, 3, 25 + 24), (8, 3, 2 + 2), (7, 1, 7 + 1)]
)
def test_encoder_lengths(length, layers, expected):
    encoder = Encoder(layers, LAYERS)
    assert encoder(torch.randn(1, length, 8)).shape[1] == expected
    alone = Encoder(layers, LAYERS, quarter_stack=False)
    assert alone(torch.randn(1, length, 8)).shape[1] == expected - max(1, length // 4)


def test_the_last_decoder_layer_may_skip_all_but_the_target():
    for kind in ("dense", "probsparse"):
        decoder = Decoder(2, LayerSizes(8, 2, 8, dropout=0.0, attention=kind, factor=2)).double()
        x, memory = torch.randn(2, 20, 8, dtype=torch.float64), torch.randn(2, 9, 8, dtype=torch.float64)
        whole = x
        for layer in decoder.layers:
            whole = layer(whole, memory)
        torch.testing.assert_close(decoder(x, memory, 3), decoder.norm(whole)[:, -3:])


@pytest.mark.parametrize("attention", ["dense", "probsparse"])
def test_gradient_reaches_every_parameter(attention):
    network = SparseTransformer(3, window=40, horizon=2, token=20, attention=attention, **SMALL)
    (network(torch.randn(4, 40, 3)) ** 2).mean().backward()
    dead = [name for name, p in network.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    # A bias on all keys shifts every product of a query alike, and the softmax takes that out again.
    assert dead == []


@pytest.mark.parametrize("attention", ["auto", "probsparse"])
@pytest.mark.parametrize("window", [8, 9, 100, 333, 2000])
@pytest.mark.parametrize("channels", [1, 500])
def test_shapes(window, channels, attention):
    network = SparseTransformer(channels, window=window, horizon=3, attention=attention, **SMALL).eval()
    with torch.no_grad():
        forecast = network(torch.randn(2, window, channels))
    assert forecast.shape == (2, 3, channels)
    assert torch.isfinite(forecast).all()


def test_windows_in_a_batch_do_not_meet():
    network = SparseTransformer(2, window=30, attention="probsparse", **SMALL).eval()
    windows = torch.randn(5, 30, 2)
    with torch.no_grad():
        together = network(windows)
        for i in range(5):
            torch.testing.assert_close(network(windows[i : i + 1])[0], together[i], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("window", "leads", "level"), [(6, (1, 2), 0.0), (6, (1, 4), 1e4), (120, (1,), 0.0)])
def test_linear_skip_is_the_least_squares_solution_over_all_windows(window, leads, level, monkeypatch):
    monkeypatch.setattr(linear_skip, "BLOCK", 150)  # several blocks, the last one short
    rng = np.random.default_rng(0)
    stretches = [rng.standard_normal((n, 2)).cumsum(axis=0) + level for n in (400, window + max(leads), 500)]
    layer = LinearSkip(2, window=window, horizon=len(leads), ridge=1e-9).double()
    layer.solve(map(torch.from_numpy, stretches), leads)
    seen = [
        (rows[t : t + window], rows[[t + window + lead - 1 for lead in leads]])
        for rows in stretches
        for t in range(len(rows) - window - max(leads) + 1)
    ]
    windows, targets = (np.stack(column) for column in zip(*seen, strict=True))
    for channel in range(2):
        last = windows[:, -1:, channel]
        inputs = np.column_stack([windows[:, -layer.reach : -1, channel] - last, np.ones(len(windows))])
        expected = np.linalg.lstsq(inputs, targets[:, :, channel] - last, rcond=None)[0]
        np.testing.assert_allclose(layer.weight[channel, :-1], expected[:-1], atol=1e-5)
        found = layer(torch.from_numpy(windows))[:, :, channel]
        np.testing.assert_allclose(found, last + inputs @ expected, atol=1e-4)
        left = np.sqrt(np.mean((targets[:, :, channel] - last - inputs @ expected) ** 2, axis=0))
        np.testing.assert_allclose(layer.rest[:, channel], left, rtol=1e-5)


def test_linear_skip_leaves_a_constant_channel_alone():
    layer = LinearSkip(1, window=4, horizon=1)
    layer.solve([torch.full((54, 1), 0.3)], (1,))
    assert torch.equal(layer.weight, torch.zeros(1, 4, 1))


@pytest.mark.skipif(not session_available(), reason="needs the fast extra")
@pytest.mark.parametrize(
    ("attention", "window", "skip"), [("dense", 33, True), ("probsparse", 40, False), ("auto", 400, False)]
)
def test_the_onnx_session_says_what_torch_says(attention, window, skip):
    network = SparseTransformer(3, window=window, horizon=2, attention=attention, linear_skip=skip, **SMALL).eval()
    if skip:
        network.linear_skip.weight.normal_()
        torch.nn.init.normal_(network.projection.weight)
    run = one_window_session(network, (window, 3))
    for _ in range(3):
        x = torch.randn(1, window, 3)
        with torch.no_grad():
            torch.testing.assert_close(torch.from_numpy(run(x.numpy())), network(x), rtol=1e-4, atol=1e-5)


def test_a_small_network_gets_one_thread_and_a_large_one_keeps_its_own(monkeypatch):
    """Small networks lose to their own threads; what was set comes back, also after an error."""
    asked = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    with pytest.raises(RuntimeError), threads_for(torch.nn.Linear(10, 10)):
        raise RuntimeError
    assert asked == [1, 2]
    with threads_for(torch.nn.Linear(1000, 1000)):
        pass
    assert asked == [1, 2]


def test_before_its_first_step_the_transformer_adds_nothing_and_is_not_asked():
    network = SparseTransformer(3, window=24, d_model=8, n_heads=2, d_ff=16, token=12, linear_skip=True).eval()
    network.linear_skip.solve([torch.rand(200, 3)], (1,))
    window = torch.rand(5, 24, 3)
    passes = []
    network.encoder.register_forward_hook(lambda *_: passes.append(1))
    alone = network(window)
    assert not passes
    assert torch.equal(alone, network.linear_skip(window))
    torch.nn.init.constant_(network.projection.bias, 1e-3)
    asked = network(window)
    assert passes
    torch.testing.assert_close(asked, alone + 1e-3 * network.linear_skip.rest)
