"""How quick TiSAT's network is: against the reference Informer, and how attention grows with the window.

Ratios, measured side by side in one run, in CPU time of one thread, which a busy machine disturbs least; each figure is
the best of several alternating rounds. The reference (zhouhaoyi/Informer2020) is not part of this project: give the path
of a checkout, or its column is left out. Same sizes for both: batch 64, window 100, 38 channels, 8 heads, d_ff = 4 d_model,
encoder stacks of 3 and 1 layers (the second on the last quarter), decoder of 2, start token 50, horizon 1, dropout 0.05.

    python benchmarks/bench_tisat.py speed --reference path/to/Informer2020
    python benchmarks/bench_tisat.py growth --out docs/pictures/attention-growth.png
    python benchmarks/bench_tisat.py length
    python benchmarks/bench_tisat.py memory
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rounds import best_of

from tisat.detectors.networks.attention import dense_attention, probsparse_attention, sampled_keys
from tisat.detectors.networks.forecaster import SparseTransformer
from tisat.detectors.networks.onnx_session import one_window_session
from tisat.detectors.tisat import TiSAT

BATCH, WINDOW, CHANNELS, TOKEN = 64, 100, 38, 50


def reference_network(path: Path, d_model: int) -> tuple[torch.nn.Module, Callable[[torch.Tensor], torch.Tensor]]:
    sys.path.insert(0, str(path))
    from models.model import InformerStack

    network = InformerStack(
        CHANNELS, CHANNELS, CHANNELS, WINDOW, TOKEN, 1, factor=5, d_model=d_model, n_heads=8, e_layers=[3, 1], d_layers=2,
        d_ff=4 * d_model, dropout=0.05, attn="prob", embed="fixed", freq="h", device=torch.device("cpu"),
    )  # fmt: skip
    network.encoder.inp_lens = [0, 2]  # its second stack on the last quarter, as ours

    def forward(x: torch.Tensor) -> torch.Tensor:
        start = torch.cat([x[:, -TOKEN:], torch.zeros(len(x), 1, CHANNELS)], dim=1)
        return network(x, torch.zeros(len(x), WINDOW, 4), start, torch.zeros(len(x), TOKEN + 1, 4))

    return network, forward


def speed(options: argparse.Namespace) -> None:
    x, y = torch.rand(BATCH, WINDOW, CHANNELS), torch.rand(BATCH, 1, CHANNELS)
    for d_model in options.widths:
        rounds = options.rounds if d_model < 512 else max(2, options.rounds // 3)
        networks = {}
        if options.reference is not None:
            networks["reference"] = reference_network(options.reference, d_model)
        for kind in ("auto", "probsparse"):
            ours = SparseTransformer(
                CHANNELS,
                window=WINDOW,
                d_model=d_model,
                n_heads=8,
                d_ff=4 * d_model,
                token=TOKEN,
                dropout=0.05,
                attention=kind,
            )
            networks[f"tisat, {kind}"] = (ours, ours)
        optimizers = {name: torch.optim.Adam(n.parameters(), lr=1e-4) for name, (n, _) in networks.items()}

        def train(name: str, networks=networks, optimizers=optimizers) -> None:
            network, forward = networks[name]
            network.train()
            optimizers[name].zero_grad()
            torch.nn.functional.mse_loss(forward(x), y).backward()
            optimizers[name].step()

        def infer(name: str, rows: int, networks=networks) -> None:
            network, forward = networks[name]
            network.eval()
            with torch.no_grad():
                forward(x[:rows])

        trained = best_of({name: lambda n=name: train(n) for name in networks}, rounds=rounds)
        inferred = best_of({name: lambda n=name: infer(n, BATCH) for name in networks}, rounds=rounds)
        singles: dict[str, Callable[[], object]] = {name: lambda n=name: infer(n, 1) for name in networks}
        session = one_window_session(networks["tisat, auto"][0].eval(), (WINDOW, CHANNELS))
        if session is not None:
            one = x[:1].numpy()
            singles["tisat, ONNX Runtime"] = lambda run=session, one=one: run(one)
        single = best_of(singles, rounds=20 * rounds)
        base = {"train": trained.get("reference"), "infer": inferred.get("reference"), "one": single.get("reference")}
        print(f"\nd_model {d_model}, one thread\n")
        print(
            "| network | training windows/s | x reference | inference windows/s | x reference | one window, ms | of reference |"
        )
        print("|---|---|---|---|---|---|---|")
        for name in single:
            cells = [name]
            for key, times in (("train", trained), ("infer", inferred)):
                cells.append(f"{BATCH / times[name]:.0f}" if name in times else "")
                cells.append(f"{base[key] / times[name]:.2f}" if name in times and base[key] else "")
            cells += [f"{1e3 * single[name]:.2f}", f"{single[name] / base['one']:.2f}" if base["one"] else ""]
            print("| " + " | ".join(cells) + " |")


def attention_memory(function: Callable[[], object]) -> float:
    """Megabytes of tensors alive at the worst moment, by torch's own account of allocations."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        function()
    alive = worst = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            alive += event.nbytes()
            worst = max(worst, alive)
    return worst / 2**20


def growth(options: argparse.Namespace) -> None:
    """One layer of attention, 8 heads of width 8 (d_model 64), batch 1, forward: milliseconds and megabytes."""
    rows = []
    for length in (100, 200, 300, 400, 800, 1600, 3200, 6400):
        q, k, v = (torch.randn(1, 8, length, 8) for _ in range(3))
        sample = sampled_keys(length, factor=5)
        functions = {
            "dense": lambda q=q, k=k, v=v: dense_attention(q, k, v),
            "sampled": lambda q=q, k=k, v=v, s=sample: probsparse_attention(q, k, v, factor=5, sample=s),
            "exact": lambda q=q, k=k, v=v: probsparse_attention(q, k, v, factor=5),
        }
        if length > 3200:
            del functions["exact"]
        with torch.no_grad():
            times = best_of(functions, rounds=options.rounds)
            memory = {name: attention_memory(function) for name, function in functions.items()}
        rows.append((length, times, memory))
    print(
        "| L | dense ms | ProbSparse sampled ms | ProbSparse exact ms | dense / sampled | dense MB | sampled MB | exact MB |"
    )
    print("|---" * 8 + "|")
    for length, times, memory in rows:
        exact = f"{1e3 * times['exact']:.2f}" if "exact" in times else ""
        held = f"{memory['exact']:.1f}" if "exact" in memory else ""
        print(
            f"| {length} | {1e3 * times['dense']:.2f} | {1e3 * times['sampled']:.2f} | {exact} "
            f"| {times['dense'] / times['sampled']:.2f} | {memory['dense']:.1f} | {memory['sampled']:.1f} | {held} |"
        )
    if options.out is not None:
        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
        labels = {"dense": "dense, fused", "sampled": "ProbSparse, sampled keys", "exact": "ProbSparse, exact measure"}
        for which, (axis, unit) in enumerate(zip(axes, ("CPU milliseconds", "peak megabytes"), strict=True), start=1):
            for name, label in labels.items():
                known = [row for row in rows if name in row[which]]
                scale = 1e3 if which == 1 else 1.0
                axis.loglog(
                    [row[0] for row in known], [scale * row[which][name] for row in known], "o-", label=label, ms=4
                )
            axis.set_xlabel("window L")
            axis.set_ylabel(unit)
            axis.grid(alpha=0.3)
        axes[0].legend(frameon=False)
        figure.savefig(options.out, dpi=110)


def length(options: argparse.Namespace) -> None:
    """Training time against the length of the series: linear, so that seconds per thousand rows stay the same."""
    print("| rows T | CPU seconds | seconds per 1000 rows |\n|---|---|---|")
    for rows in (200, 1000, 2000, 4000, 8000):  # the first warms up and is not shown
        series = np.sin(np.arange(rows)[:, None] / np.arange(3.0, 11.0))
        started = time.process_time()
        TiSAT(d_model=16, n_heads=2, d_ff=32, window=50, token=25, epochs=1, device="cpu").fit(series)
        seconds = time.process_time() - started
        if rows > 200:
            print(f"| {rows} | {seconds:.1f} | {1e3 * seconds / rows:.2f} |")


def memory(options: argparse.Namespace) -> None:
    """Peak memory while a long series is scored: the series and its scores, never its windows."""
    train = np.sin(np.arange(600)[:, None] / np.arange(3.0, 41.0))
    detector = TiSAT(
        d_model=8,
        n_heads=1,
        d_ff=8,
        encoder_layers=1,
        decoder_layers=1,
        epochs=1,
        device="cpu",
    ).fit(train)
    test = np.sin(np.arange(options.rows)[:, None] / np.arange(3.0, 41.0))
    detector.decision_function(test[:1000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    started = time.process_time()
    scores = detector.decision_function(test)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    held = options.rows * WINDOW * CHANNELS * 4 / 2**20
    print(
        f"{options.rows:,} x {CHANNELS} rows: {np.isfinite(scores).sum():,} scored in "
        f"{time.process_time() - started:.0f} CPU seconds; peak memory grew by {after - before:,.0f} MB "
        f"(the series itself is {test.nbytes / 2**20:,.0f} MB; its windows as float32 would be {held:,.0f} MB)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("speed", "growth", "length", "memory"))
    parser.add_argument("--reference", type=Path, help="A checkout of zhouhaoyi/Informer2020.")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--widths", type=int, nargs="*", default=[64, 512], help="d_model of the networks of speed.")
    parser.add_argument("--out", type=Path, help="Where growth draws its picture.")
    parser.add_argument("--rows", type=int, default=200_000, help="Rows that memory scores.")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    {"speed": speed, "growth": growth, "length": length, "memory": memory}[options.what](options)


if __name__ == "__main__":
    main()
