"""What is built from the source installs into an empty environment, and runs."""

import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tisat import __version__, registry

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.slow


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)


def environment(folder):
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if sys.platform == "win32" else "bin")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sdist, and the wheel that was made from it: what is not in the sdist is not in the wheel."""
    folder = tmp_path_factory.mktemp("built")
    tools = environment(folder / "tools")
    got = run(tools / "pip", "install", "--quiet", "hatchling>=1.25")
    if got.returncode != 0:
        pytest.skip(f"there is no package registry to get hatchling from: {got.stderr.strip().splitlines()[-1]}")
    made = run(tools / "python", "-m", "hatchling", "build", "-t", "sdist", "-d", folder / "dist", cwd=ROOT)
    assert made.returncode == 0, made.stderr
    (source,) = (folder / "dist").glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(folder / "source", filter="data")
    (unpacked,) = (folder / "source").iterdir()
    made = run(tools / "python", "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist", cwd=unpacked)
    assert made.returncode == 0, made.stderr
    return folder / "dist"


def test_the_wheel_has_what_is_not_python_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith(("tisat/", f"tisat-{__version__}.dist-info/")) for name in names)
    ours = [file for file in (ROOT / "src" / "tisat").rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    assert {str(Path("tisat") / file.relative_to(ROOT / "src" / "tisat")) for file in ours} <= set(names)


def test_the_sdist_is_small_and_has_the_tests(built):
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {"pyproject.toml", "README.md", "LICENSE", "NOTICE", "tests/test_distribution.py"} <= set(names)


def test_it_runs_in_an_empty_environment(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    there = environment(tmp_path / "empty")
    got = run(there / "pip", "install", "--quiet", wheel)
    assert got.returncode == 0, got.stderr
    said = run(there / "tisat", "--version", cwd=tmp_path)
    assert said.stdout.strip() == f"tisat {__version__}", said.stderr
    said = run(there / "tisat", "detectors", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert [name for name in registry.names() if name not in said.stdout] == []
