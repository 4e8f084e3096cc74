"""Write requirements.lock: every package that development and CI install, with the hashes of its files, for all systems and Pythons.

    python -m pip install uv && python tests/lock.py

The direct requirements are those of the three packages with all extras, of their build, and of requirements-dev.txt; the versions
are those of constraints.txt. The file names no package index: whoever installs it uses their own, and the hashes must agree.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = """\
# Everything that development and CI install, with the hashes of its files. Made by: python tests/lock.py
# Installed by: make setup-locked. On Linux it holds torch as the package index has it, with its GPU libraries; make setup needs less.
"""
AUDIT = "pip-audit"


def requirements() -> list[str]:
    """The direct requirements of the three packages and of development."""
    found = []
    for file in sorted(ROOT.glob("packages/*/pyproject.toml")):
        document = tomllib.loads(file.read_text())
        project = document["project"]
        found += [*project["dependencies"], *document["build-system"]["requires"]]
        found += [one for extra in project.get("optional-dependencies", {}).values() for one in extra]
    found += [line for line in (ROOT / "requirements-dev.txt").read_text().splitlines() if line and line[0] != "#"]
    return sorted({one for one in found if not one.startswith("tisat")} | {AUDIT})


def main() -> None:
    """Resolve the requirements and write the lock."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, found = Path(folder, "wanted.in"), Path(folder, "found.txt")
        wanted.write_text("\n".join(requirements()) + "\n")
        command = ["uv", "pip", "compile", str(wanted), "--constraint", str(ROOT / "constraints.txt"), "--universal", "--python-version", "3.11",
                   "--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate", "--quiet", "--output-file", str(found)]  # fmt: skip
        done = subprocess.run(command, stdout=subprocess.DEVNULL)
        if done.returncode:
            sys.exit("tests/lock.py: the versions could not be resolved")
        (ROOT / "requirements.lock").write_text(HEADER + found.read_text())


if __name__ == "__main__":
    main()
