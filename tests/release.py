"""Build the three distributions and try them in an empty environment: ``python tests/release.py --out dist [--tag v1.2.3]``."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("tisat", "tisat-serve", "tisat-bench")


def run(*command: object, cwd: Path = ROOT) -> str:
    """Run a command, show it, and stop where it fails."""
    print("$", *command, flush=True)
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{done.stderr}\nexit code {done.returncode}")
    return done.stdout


def main() -> None:
    """Build, install, try."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tag", help="must name the version of the packages")
    chosen = parser.parse_args()
    out = chosen.out.resolve()
    text = (ROOT / "packages/tisat/src/tisat/__init__.py").read_text()
    version = re.findall(r'^__version__ = "(.+)"$', text, flags=re.M)[0]
    if chosen.tag not in (None, f"v{version}"):
        sys.exit(f"The tag must be v{version}. Got {chosen.tag} instead.")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("tools", "empty"):
            venv.create(Path(folder, name), with_pip=True)
        tools, empty = (
            Path(folder, name, "Scripts" if sys.platform == "win32" else "bin") for name in ("tools", "empty")
        )
        run(tools / "pip", "install", "--quiet", "hatchling>=1.25")
        for package in PACKAGES:
            run(tools / "python", "-m", "hatchling", "build", "-d", out, cwd=ROOT / "packages" / package)
        wheels = sorted(out.glob(f"*-{version}-*.whl"))
        run(empty / "pip", "install", "--quiet", *wheels)
        print(run(empty / "tisat", "--version").strip())
        for verb in ("fit", "alarm", "watch", "serve", "bench", "data"):
            run(empty / "tisat", verb, "--help")
        run(empty / "tisat", "demo", "--out", Path(folder, "demo"))
    print(f"{len(wheels)} wheels and {len(list(out.glob('*.tar.gz')))} sdists of {version} in {out}")


if __name__ == "__main__":
    main()
