"""The same weights in the authors' programs and in ours: outputs must agree. Nothing of theirs is in this repository.

    TISAT_REFERENCES=folder python -m pytest -m data -s tests/parity

``folder`` holds checkouts named as on GitHub: Informer2020 (zhouhaoyi), Anomaly-Transformer (thuml), BeatGAN (hi-bingo),
dagmm (danieltan07), Deep-SVDD-PyTorch (lukasruff). Each test is skipped without its checkout and prints the largest difference.
"""

from __future__ import annotations

import ast
import importlib.util
import math
import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tisat.detectors.networks import attention, beatgan, dagmm, deep_svdd  # noqa: E402
from tisat.detectors.networks.anomaly_transformer import AnomalyTransformerNetwork, discrepancy  # noqa: E402

pytestmark = pytest.mark.data


def checkout(name: str) -> Path:
    folder = os.environ.get("TISAT_REFERENCES")
    if not folder or not (Path(folder) / name).is_dir():
        pytest.skip(f"no checkout of {name} in TISAT_REFERENCES")
    return Path(folder) / name


def module(path: Path, *, under: str, beside: dict[str, types.ModuleType] | None = None) -> types.ModuleType:
    """A Python file as a module; ``beside`` are modules it expects to find."""
    before = {name: sys.modules.get(name) for name in beside or {}}
    sys.modules.update(beside or {})
    try:
        spec = importlib.util.spec_from_file_location(under, path)
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        sys.modules[under] = made
        spec.loader.exec_module(made)
        return made
    finally:
        for name, old in before.items():
            if old is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = old


def functions(path: Path, *names: str, **known: object) -> types.SimpleNamespace:
    """Single functions or classes of a file whose imports we cannot serve."""
    tree = ast.parse(path.read_text())
    tree.body = [part for part in tree.body if getattr(part, "name", None) in names]
    space: dict[str, object] = dict(known)
    exec(compile(tree, str(path), "exec"), space)
    return types.SimpleNamespace(**{name: space[name] for name in names})


def report(what: str, ours: torch.Tensor, theirs: torch.Tensor, *, within: float) -> None:
    gap = float((ours - theirs).abs().max() / theirs.abs().max())
    print(f"{what}: largest difference {gap:.2e} of the largest value")
    assert gap < within


@pytest.mark.parametrize("masked", [False, True])
def test_probsparse_attention_is_informers(masked, monkeypatch):
    """With their draw of keys replaced by ours the released ProbSparse attention gives what informer_attention gives."""
    root = checkout("Informer2020")
    utils = types.ModuleType("utils")
    masking = module(root / "utils" / "masking.py", under="utils.masking")
    theirs = module(
        root / "models" / "attn.py", under="informer_attn", beside={"utils": utils, "utils.masking": masking}
    )
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 4, 100, 8, 16)  # (b, l, h, d), as they have it
    monkeypatch.setattr(torch, "randint", lambda keys, shape: attention.keys_per_query(shape[0], keys, factor=5))
    released, _ = theirs.ProbAttention(masked, factor=5, attention_dropout=0.0)(query, key, value, None)
    ours = attention.informer_attention(
        *(part.transpose(1, 2) for part in (query, key, value)), factor=5, causal=masked
    )
    report(f"ProbSparse attention, masked {masked}", ours.transpose(1, 2), released, within=1e-5)
    exact = attention.probsparse_attention(
        *(part.transpose(1, 2) for part in (query, key, value)), factor=5, causal=masked
    ).transpose(1, 2)
    gap = float((exact - released).square().mean().sqrt() / released.square().mean().sqrt())
    print(f"  'probsparse' (ours) against it: relative root mean square {gap:.2f}")


def test_anomaly_transformer_network_and_score(monkeypatch):
    """Reconstruction, both associations and the score; convolutions padded circularly as theirs are."""
    root = checkout("Anomaly-Transformer")
    monkeypatch.setattr(torch.Tensor, "cuda", lambda self, *rest: self)
    package = types.ModuleType("at_model")
    package.__path__ = [str(root / "model")]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "at_model", package)
    for part in ("attn", "embed", "AnomalyTransformer"):
        spec = importlib.util.spec_from_file_location(f"at_model.{part}", root / "model" / f"{part}.py")
        made = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, f"at_model.{part}", made)
        spec.loader.exec_module(made)
    torch.manual_seed(0)
    window, channels, width, layers = 40, 5, 16, 3
    theirs = (
        sys.modules["at_model.AnomalyTransformer"]
        .AnomalyTransformer(window, channels, channels, d_model=width, n_heads=4, e_layers=layers, d_ff=24)
        .eval()
    )
    ours = AnomalyTransformerNetwork(
        channels, window=window, width=width, n_heads=4, n_layers=layers, feed_forward=24, dropout=0.0
    ).eval()
    state = theirs.state_dict()
    weights = {"embedding.weight": state["embedding.value_embedding.tokenConv.weight"]}
    names = {
        "attention.queries": "attention.query_projection", "attention.keys": "attention.key_projection",
        "attention.values": "attention.value_projection", "attention.sigma": "attention.sigma_projection",
        "attention.output": "attention.out_projection", "first_norm": "norm1", "second_norm": "norm2",
        "widen": "conv1", "narrow": "conv2",
    }  # fmt: skip
    for layer in range(layers):
        for mine, other in names.items():
            for kind in ("weight", "bias"):
                tensor = state[f"encoder.attn_layers.{layer}.{other}.{kind}"]
                weights[f"layers.{layer}.{mine}.{kind}"] = tensor.squeeze(-1) if other.startswith("conv") else tensor
    for kind in ("weight", "bias"):
        weights[f"norm.{kind}"] = state[f"encoder.norm.{kind}"]
        weights[f"projection.{kind}"] = state[f"projection.{kind}"]
    missing = ours.load_state_dict(weights, strict=False)
    assert set(missing.missing_keys) == {"centre", "scale"}
    assert not missing.unexpected_keys
    ours.embedding.padding_mode = "circular"
    ours.embedding._reversed_padding_repeated_twice = [1, 1]
    windows = torch.randn(6, window, channels)
    with torch.no_grad():
        rebuilt, series, prior, _ = theirs(windows)
        found = ours(windows)
    report("Anomaly Transformer, reconstruction", found.values, rebuilt, within=1e-4)
    for layer in range(layers):
        normal = prior[layer] / prior[layer].sum(dim=-1, keepdim=True)
        report(f"  series association, layer {layer}", found.associations[layer].series, series[layer], within=1e-4)
        report(f"  prior association, layer {layer}", found.associations[layer].prior, normal, within=1e-4)

    def divergence(p, q):  # as solver.py has it: small constants inside the logarithms, mean over heads
        return (p * (torch.log(p + 1e-4) - torch.log(q + 1e-4))).sum(dim=-1).mean(dim=1)

    summed = sum(
        divergence(s, p / p.sum(dim=-1, keepdim=True)) + divergence(p / p.sum(dim=-1, keepdim=True), s)
        for s, p in zip(series, prior, strict=True)
    )
    weights_theirs = torch.log_softmax(-50 * summed, dim=-1)
    # Their constant 1e-4 is added to every entry; ours too, but the rows still add up to 1: a factor of 1 + 1e-4 x window.
    temperature = 50 * layers * (1 + 1e-4 * window)
    ours_at = torch.log_softmax(-temperature * discrepancy(found.associations), dim=-1)
    plain = torch.log_softmax(-50 * discrepancy(found.associations), dim=-1)
    gap, wrong = (float((one - weights_theirs).abs().max()) for one in (ours_at, plain))
    print(f"  log-weights of the score: largest gap {gap:.1e} at {temperature:g}, {wrong:.1f} at 50")
    assert gap < 1e-2


def test_beatgan_networks_are_bit_equal():
    root = checkout("BeatGAN")
    named = ("Encoder", "Decoder")
    parts = functions(root / "experiments/ecg/network.py", *named, nn=torch.nn, torch=torch)
    both = functions(
        root / "experiments/ecg/model.py", "Generator", "Discriminator",
        nn=torch.nn, torch=torch, Encoder=parts.Encoder, Decoder=parts.Decoder,
    )  # fmt: skip
    options = types.SimpleNamespace(nc=2, ndf=4, ngf=4, nz=6, ngpu=1)
    torch.manual_seed(0)
    ours = beatgan.Game(2, 320, (4, 8, 16, 32, 64), 6)
    generator, discriminator = both.Generator(options), both.Discriminator(options)
    for mine, other in ((ours.generator, generator), (ours.discriminator, discriminator)):
        tensors = list(mine.state_dict().values())
        assert [tuple(t.shape) for t in tensors] == [tuple(t.shape) for t in other.state_dict().values()]
        other.load_state_dict(dict(zip(other.state_dict(), tensors, strict=True)))
    windows = torch.rand(5, 2, 320) * 2 - 1
    for mode in (True, False):
        for network in (ours, generator, discriminator):
            network.train(mode)
        with torch.no_grad():
            assert torch.equal(ours.generator(windows), generator(windows)[0])
            judged, features = ours.discriminator(windows)
            said, seen = discriminator(windows)  # once: in training every pass moves the normalisation's averages
            assert torch.equal(torch.sigmoid(judged), said)
            assert torch.equal(features, seen)
    print("BeatGAN: generator, discriminator and features bit-equal, training and scoring")


def test_dagmm_features_and_mixture():
    """Features, memberships and mixture agree; the energy does not, because theirs takes the root of the determinant twice."""
    root = checkout("dagmm")
    made = functions(root / "model.py", "DaGMM", nn=torch.nn, torch=torch, F=torch.nn.functional, np=np)
    torch.manual_seed(0)
    theirs = made.DaGMM(n_gmm=4).eval()
    ours = dagmm.CompressionAndEstimation(118, (60, 30, 10), 1, 10, 4, 0.5).eval()
    ours.load_state_dict({**ours.state_dict(), **{k: v for k, v in theirs.state_dict().items() if k.split(".")[0] in ("encoder", "decoder", "estimation")}})  # fmt: skip
    rows = torch.rand(200, 118)
    with torch.no_grad():
        _, rebuilt, features, shares = theirs(rows)
        mine = ours(rows)
        report("DAGMM, reconstruction", mine[0], rebuilt, within=1e-6)
        report("DAGMM, features", mine[1], features, within=1e-4)
        report("DAGMM, memberships", mine[2], shares, within=1e-4)
        phi, mu, cov = theirs.compute_gmm_params(features.double(), shares.double())
        mixture = dagmm.fit_mixture(features.double(), shares.double())
    report("DAGMM, shares of the mixture", mixture.log_shares.exp(), phi, within=1e-6)
    report("DAGMM, means", mixture.means, mu, within=1e-6)
    found = mixture.factors @ mixture.factors.transpose(1, 2)
    report("DAGMM, covariances (our jitter: 1e-6)", found - 1e-6 * torch.eye(3), cov, within=1e-3)
    from scipy.stats import multivariate_normal

    density = sum(
        float(phi[k]) * multivariate_normal(mu[k].numpy(), found[k].numpy()).pdf(features.numpy()) for k in range(4)
    )
    report(
        "DAGMM, energy against SciPy",
        dagmm.energy(features.double(), mixture),
        torch.from_numpy(-np.log(density)),
        within=1e-6,
    )


def test_deep_svdd_radius_and_centre():
    root = checkout("Deep-SVDD-PyTorch")
    theirs = functions(root / "src/optim/deepSVDD_trainer.py", "get_radius", np=np, torch=torch)
    distances = torch.rand(1001) * 7
    for nu in (0.01, 0.1, 0.5):
        ours = math.sqrt(float(deep_svdd.best_radius_squared(distances, nu)))
        print(f"Deep-SVDD, nu {nu}: radius {ours:.5f} against {theirs.get_radius(distances, nu):.5f}")
        assert ours == pytest.approx(theirs.get_radius(distances, nu), rel=2e-2)
