"""Check a release candidate from a clean clone: ``python tests/release.py --out dist [--tag v1.2.3] [--python python3.12 ...]``.

What is committed is cloned, wheels and sdists of the three packages are built from the clone, and each kind is installed into an empty environment and
tried. A third environment knows the README alone: its install lines are typed in the clone, then its Python block and its commands, on the files that
docs/start.md makes. Commands that never end (``tail -F``, ``tisat serve``) are typed with a file for standard input, or with ``--help``.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("tisat", "tisat-serve", "tisat-bench")
VERBS = ("fit", "alarm", "scan", "compare", "watch", "serve", "bench", "data")


def run(*command: object, cwd: Path = ROOT, path: Path | None = None, shell: bool = False) -> str:
    """Run a command, show it, and stop where it fails."""
    print("$", *command, flush=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TISAT_", "PYTHONPATH"))}
    if path is not None:
        environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    words = str(command[0]) if shell else [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, env=environment, shell=shell)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{done.stderr}\nexit code {done.returncode}")
    return done.stdout


def environment(python: str, folder: Path) -> Path:
    """An empty environment; the folder of its programs."""
    run(python, "-m", "venv", folder)
    return folder / ("Scripts" if sys.platform == "win32" else "bin")


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), flags=re.M | re.S)


def commands_of(readme: Path) -> tuple[list[str], list[str]]:
    """What the README types: lines that install, and lines that use what was installed, those that never end made to end.

    Examples
    --------
    >>> install, use = commands_of(ROOT / "README.md")
    >>> install[0].startswith("pip install './packages/tisat"), use[0].startswith("tisat fit")
    (True, True)
    """
    lines = [line.partition("  #")[0].strip() for block in blocks(readme, "sh") for line in block.splitlines()]
    install = [line for line in lines if line.startswith("pip install")]
    use = []
    for line in lines:
        if re.match(r"tail .* \| tisat", line):
            use.append(line.partition("|")[2].strip() + " < now.csv")
        elif line.startswith("tisat serve"):
            use.append("tisat serve --help")
        elif line.startswith("tisat "):
            use.append(line)
    return install, use


def try_installed(programs: Path, folder: Path, version: str) -> None:
    """The version, the help of the verbs, and the demo."""
    said = run(programs / "tisat", "--version").strip()
    if said != f"tisat {version}":
        sys.exit(f"The version must be {version}. Got {said!r} instead.")
    for verb in VERBS:
        run(programs / "tisat", verb, "--help")
    run(programs / "tisat", "demo", "--out", folder / "demo")


def try_readme(programs: Path, clone: Path, folder: Path) -> None:
    """Type what the README says, in its order; files come from docs/start.md, which it names for them."""
    install, use = commands_of(clone / "README.md")
    for line in install:
        run(line, cwd=clone, path=programs, shell=True)
    folder.mkdir()
    for name, code in (
        ("files", blocks(clone / "docs/start.md", "python")[0]),
        ("readme", blocks(clone / "README.md", "python")[0]),
    ):
        (folder / f"{name}.py").write_text(code)
        run(programs / "python", f"{name}.py", cwd=folder)
    for line in use:
        run(line, cwd=folder, path=programs, shell=True)


def check(python: str, clone: Path, out: Path, version: str, folder: Path) -> None:
    """Wheels, sdists and the README, each in an empty environment of one Python."""
    for kind, files in (("wheels", out.glob(f"*-{version}-*.whl")), ("sdists", out.glob(f"*-{version}.tar.gz"))):
        found = sorted(files)
        if len(found) != len(PACKAGES):
            sys.exit(
                f"There must be {len(PACKAGES)} {kind} of {version}. Got {len(found)}: {', '.join(one.name for one in found)}."
            )
        programs = environment(python, folder / kind)
        run(programs / "pip", "install", "--quiet", *found)
        try_installed(programs, folder / f"tried-{kind}", version)
    try_readme(environment(python, folder / "readme"), clone, folder / "typed")


def main(arguments: Sequence[str] | None = None) -> None:
    """Clone, build, install, try."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tag", help="must name the version of the packages")
    parser.add_argument("--python", action="append", help="an interpreter to try it with; this one unless given")
    chosen = parser.parse_args(arguments)
    out = chosen.out.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        clone = folder / "clone"
        run("git", "clone", "--quiet", "--no-hardlinks", ROOT, clone)
        text = (clone / "packages/tisat/src/tisat/__init__.py").read_text()
        version = re.findall(r'^__version__ = "(.+)"$', text, flags=re.M)[0]
        if chosen.tag not in (None, f"v{version}"):
            sys.exit(f"The tag must be v{version}. Got {chosen.tag} instead.")
        tools = environment(sys.executable, folder / "tools")
        run(tools / "pip", "install", "--quiet", "hatchling>=1.25")
        for package in PACKAGES:
            run(tools / "python", "-m", "hatchling", "build", "-d", out, cwd=clone / "packages" / package)
        tried = []
        for python in chosen.python or [sys.executable]:
            tried.append(run(python, "--version").strip())
            check(python, clone, out, version, folder / f"python-{len(tried)}")
    print(
        f"3 wheels and 3 sdists of {version} in {out}; tried with {', '.join(tried)}, and the README typed in a clean clone"
    )


if __name__ == "__main__":
    main()
