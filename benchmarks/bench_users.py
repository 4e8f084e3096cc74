"""What users wait for, in processor seconds of processes of their own, each figure the best of alternating rounds.

    python benchmarks/bench_users.py start                      # import, --help, detectors
    python benchmarks/bench_users.py tisat --old REVISION       # TiSAT's default: fit and score of 28,000 x 38, now and then
    python benchmarks/bench_users.py report --store FOLDER      # tisat bench sweep.toml --no-run --report, of a copied store

``--old`` takes a revision of this repository, unpacks it beside, and runs the same lines with it.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from rounds import best_of

ROOT = Path(__file__).resolve().parents[1]
STARTED = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import tisat": ["-c", "import tisat"],
    "tisat --help": ["-m", "tisat", "--help"],
    "tisat detectors": ["-m", "tisat", "detectors"],
}
FITTED = """
import time, warnings
import numpy as np
from tisat.detectors import make
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
t = np.arange({rows})[:, None]
values = np.sin(t / rng.uniform(5, 200, 38) + rng.uniform(0, 6, 38)) + 0.1 * rng.standard_normal(({rows}, 38))
began = time.process_time()
detector = make("tisat").fit(values)
fitted = time.process_time()
detector.decision_function(values)
print(fitted - began, time.process_time() - fitted)
"""


def children() -> float:
    """Processor seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(arguments: list[str], source: Path) -> str:
    """What a Python process prints that finds tisat in ``source``."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}  # fmt: skip
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout


def start(options: argparse.Namespace) -> None:
    source = ROOT / "src"
    commands = {name: lambda words=words: run(words, source) for name, words in STARTED.items()}
    print("| what | CPU s |\n|---|--:|")
    for name, seconds in best_of(commands, rounds=options.rounds, clock=children).items():
        print(f"| `{name}` | {seconds:.2f} |")
    loaded = "import sys\nfrom tisat.cli import main\ntry: main(['detectors'])\nexcept SystemExit: print('torch' in sys.modules)"
    print(
        f"\n`tisat detectors` imports torch: {'yes' if run(['-c', loaded], source).endswith('True' + chr(10)) else 'no'}"
    )


def tisat(options: argparse.Namespace) -> None:
    print("| tisat | fit, CPU s | score, CPU s | both |\n|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        sources = {"now": ROOT / "src"}
        if options.old:
            packed = subprocess.run(["git", "archive", options.old, "src"], cwd=ROOT, capture_output=True, check=True)
            with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
                files.extractall(folder, filter="data")
            sources[options.old] = Path(folder) / "src"
        for name, source in sources.items():
            fitted, scored = map(float, run(["-c", FITTED.format(rows=options.rows)], source).split())
            print(f"| {name} | {fitted:.1f} | {scored:.1f} | {fitted + scored:.1f} |", flush=True)


def report(options: argparse.Namespace) -> None:
    before = children()
    with tempfile.TemporaryDirectory() as folder:
        page = str(Path(folder) / "report")
        run(["-m", "tisat", "bench", "experiments/sweep.toml", "--store", str(options.store), "--no-run", "--report", page], ROOT / "src")  # fmt: skip
        print(
            f"`tisat bench experiments/sweep.toml --no-run --report`: {children() - before:.1f} CPU s, {sum(file.stat().st_size for file in Path(page).rglob('*.*')) / 1e6:.1f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("start", "tisat", "report"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=28_000)
    parser.add_argument("--old", help="A revision to compare with.")
    parser.add_argument("--store", type=Path, help="A copy of a store of results.")
    options = parser.parse_args()
    {"start": start, "tisat": tisat, "report": report}[options.what](options)


if __name__ == "__main__":
    main()
