"""Whole networks with the authors' weights: Informer (which released TiSAT is), and the head of THOC as TimeSeAD has it.

    TISAT_REFERENCES=folder python -m pytest -m data -s tests/parity

``folder`` holds checkouts named as on GitHub: Informer2020 (zhouhaoyi) and TimeSeAD (wagner-d).
"""

from __future__ import annotations

import importlib.util
import sys
import types
import typing

import pytest

torch = pytest.importorskip("torch")

from parity.test_references import checkout, functions, report  # noqa: E402
from tisat.detectors.networks import attention  # noqa: E402
from tisat.detectors.networks.forecaster import SparseTransformer  # noqa: E402
from tisat.detectors.networks.thoc import THOCNetwork  # noqa: E402

pytestmark = pytest.mark.data


class _Nothing(torch.nn.Module):
    """In the place of the calendar, which tisat does not give its network."""

    def forward(self, marks):
        return 0.0


def informer(monkeypatch, **options):
    """Their network with what we leave out switched off: circular padding, batch normalisation, the calendar."""
    root = checkout("Informer2020")
    for package in ("models", "utils"):
        made = types.ModuleType(package)
        made.__path__ = [str(root / package)]  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, package, made)
    for name in ("utils.masking", "models.attn", "models.embed", "models.encoder", "models.decoder", "models.model"):
        spec = importlib.util.spec_from_file_location(name, root / f"{name.replace('.', '/')}.py")
        part = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, part)
        spec.loader.exec_module(part)
    network = getattr(sys.modules["models.model"], options.pop("cls"))(**options).eval()
    for part in network.modules():
        if isinstance(part, torch.nn.Conv1d) and part.padding_mode == "circular":
            part.padding_mode = "zeros"
        if hasattr(part, "downConv"):
            part.norm = torch.nn.Identity()
        if hasattr(part, "temporal_embedding"):
            part.temporal_embedding = _Nothing()
    return network


def weights_of(state, *, layers, decoders, stacks):
    """Their weights under our names."""
    found = {}

    def linear(mine, other):
        for kind in ("weight", "bias"):
            found[f"{mine}.{kind}"] = (
                state[f"{other}.{kind}"].squeeze(-1) if kind == "weight" else state[f"{other}.{kind}"]
            )

    def convolution(mine, other):
        found[f"{mine}.linear.weight"] = state[f"{other}.weight"].permute(0, 2, 1).flatten(1)
        found[f"{mine}.linear.bias"] = state[f"{other}.bias"]

    def heads(mine, other):
        linear(f"{mine}.query", f"{other}.query_projection")
        linear(f"{mine}.out", f"{other}.out_projection")
        for kind in ("weight", "bias"):
            parts = [state[f"{other}.{name}_projection.{kind}"] for name in ("key", "value")]
            found[f"{mine}.key_value.{kind}"] = torch.cat(parts)

    def stack(mine, other, depth):
        for layer in range(depth):
            a, b = f"{mine}.layers.{layer}", f"{other}.attn_layers.{layer}"
            heads(f"{a}.attention", f"{b}.attention")
            for x, y in (
                ("attention_norm", "norm1"),
                ("feed_forward_norm", "norm2"),
                ("feed_forward.widen", "conv1"),
                ("feed_forward.narrow", "conv2"),
            ):
                linear(f"{a}.{x}", f"{b}.{y}")
        for layer in range(depth - 1):
            convolution(f"{mine}.distilling.{layer}.convolution", f"{other}.conv_layers.{layer}.downConv")
        linear(f"{mine}.norm", f"{other}.norm")

    for mine, other in (("encoder_embedding", "enc_embedding"), ("decoder_embedding", "dec_embedding")):
        convolution(f"{mine}.value", f"{other}.value_embedding.tokenConv")
    for mine, other, depth in stacks(layers):
        stack(mine, other, depth)
    for layer in range(decoders):
        a, b = f"decoder.layers.{layer}", f"decoder.layers.{layer}"
        heads(f"{a}.attention", f"{b}.self_attention")
        heads(f"{a}.cross", f"{b}.cross_attention")
        for x, y in (
            ("attention_norm", "norm1"),
            ("cross_norm", "norm2"),
            ("feed_forward_norm", "norm3"),
            ("feed_forward.widen", "conv1"),
            ("feed_forward.narrow", "conv2"),
        ):
            linear(f"{a}.{x}", f"{b}.{y}")
    linear("decoder.norm", "decoder.norm")
    linear("projection", "projection")
    return found


@pytest.mark.parametrize("kind", ["dense", "informer"])
@pytest.mark.parametrize("stacked", [False, True], ids=["released TiSAT", "paper's two stacks"])
def test_the_whole_network_is_informers(monkeypatch, kind, stacked):
    channels, window, token, horizon, width = 5, 100, 50, 2, 32
    torch.manual_seed(0)
    layers, decoders = (3, 2) if stacked else (2, 1)
    theirs = informer(
        monkeypatch, cls="InformerStack" if stacked else "Informer", enc_in=channels, dec_in=channels, c_out=channels,
        seq_len=window, label_len=token, out_len=horizon, factor=5, d_model=width, n_heads=4,
        e_layers=[3, 1] if stacked else layers, d_layers=decoders, d_ff=48, dropout=0.0,
        attn="full" if kind == "dense" else "prob", embed="fixed", mix=False,
    )  # fmt: skip
    if stacked:
        theirs.encoder.inp_lens = [0, 2]  # the window, and its last quarter
    ours = SparseTransformer(
        channels, window=window, horizon=horizon, d_model=width, n_heads=4, d_ff=48, encoder_layers=layers,
        quarter_stack=stacked, decoder_layers=decoders, token=token, dropout=0.0, attention=kind,
    ).eval()  # fmt: skip

    def stacks(depth):
        if not stacked:
            return [("encoder.deep", "encoder", depth)]
        return [("encoder.deep", "encoder.encoders.0", depth), ("encoder.shallow", "encoder.encoders.1", 1)]

    missing = ours.load_state_dict(
        weights_of(theirs.state_dict(), layers=layers, decoders=decoders, stacks=stacks), strict=False
    )
    assert missing.missing_keys == ["used"]
    assert not missing.unexpected_keys
    monkeypatch.setattr(torch, "randint", lambda keys, shape: attention.keys_per_query(shape[0], keys, factor=5))
    rows = torch.randn(6, window, channels)
    start = torch.nn.functional.pad(rows[:, -token:], (0, 0, 0, horizon))
    with torch.no_grad():
        released, found = theirs(rows, None, start, None), ours(rows)
    report(
        f"{'InformerStack' if stacked else 'Informer'}, {kind} attention, the forecast", found, released, within=1e-5
    )


def test_the_head_of_thoc_is_timeseads():
    """What arrives at the centres, the shares and the score; without their second softmax, which the paper does not have."""
    root = checkout("TimeSeAD")
    functional = types.SimpleNamespace(
        normalize=torch.nn.functional.normalize,
        softmax=lambda x, dim: x if dim == -1 else torch.softmax(x, dim),
    )
    torch.manual_seed(0)
    hidden, clusters, tau = 16, (6, 4, 3), 0.7
    scales = [torch.randn(2, 30, hidden) for _ in clusters]

    def rnn(*_, **__):
        layer = torch.nn.Identity()
        layer.forward = lambda _: scales
        return layer

    known = {
        name: getattr(typing, name)
        for name in ("Callable", "Dict", "Iterator", "List", "Optional", "Sequence", "Tuple", "Union")
    }
    model = functions(
        root / "timesead" / "models" / "other" / "thoc.py", "THOC",
        torch=torch, nn=torch.nn, F=functional, BaseModel=torch.nn.Module, RNN=rnn, **known,
    ).THOC  # fmt: skip
    theirs = model(5, hidden, 3, [1, 2, 4], list(clusters), tau)
    ours = THOCNetwork(5, hidden=hidden, dilations=(1, 2, 4), n_clusters=clusters, temperature=2.0 * tau)
    with torch.no_grad():
        for mine, other in (("centres", "centers"), ("transforms", "transforms"), ("joins", "join_f")):
            getattr(ours, mine).load_state_dict(getattr(theirs, other).state_dict())
        features, shares, *_ = theirs(torch.zeros(2, 30, 5))
        found = ours.summary(scales)
        score = (shares * 0.5 * (1.0 - torch.einsum("bscf,cf->bsc", functional.normalize(features, dim=-1), functional.normalize(theirs.centers[-1], dim=-1)))).mean(dim=-1)  # fmt: skip
        report("THOC, what arrives at the top centres", found.features, features, within=1e-5)
        report("  the shares", found.shares, shares, within=1e-5)
        report("  the score over 2 K, a constant", ours.distances(found) / (2 * clusters[-1]), score, within=1e-5)
