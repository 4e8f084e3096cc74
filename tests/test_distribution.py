"""What is built from the source installs into an empty environment, and runs."""

import ast
import re
import runpy
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tisat import __version__, registry

ROOT = Path(__file__).resolve().parents[1]


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)


def environment(folder):
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if sys.platform == "win32" else "bin")


PACKAGES = {"tisat": "tisat", "tisat-serve": "tisat_serve", "tisat-bench": "tisat_bench"}


def test_the_packages_have_one_version():
    found = {
        re.search(r'^__version__ = "(.+)"$', (ROOT / "packages" / name / "src" / module / "__init__.py").read_text(), flags=re.M)[1]
        for name, module in PACKAGES.items()
    }  # fmt: skip
    assert found == {__version__}


def test_every_package_carries_the_licence_and_the_notice_of_the_repository():
    for name in PACKAGES:
        assert (ROOT / "packages" / name / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (ROOT / "packages" / "tisat" / "NOTICE").read_bytes() == (ROOT / "NOTICE").read_bytes()


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_lock_has_every_requirement_with_hashes_and_no_index():
    text = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"https?:|file:|--(extra-)?index|--find-links", text)
    entries = [entry for entry in re.split(r"\n(?=[A-Za-z0-9])", text) if entry[0] != "#"]
    assert len(entries) > 150
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    locked: dict[str, set[str]] = {}
    for entry in entries:
        name, version = re.match(r"([\w.-]+)==([\w.+!-]+)", entry).groups()
        locked.setdefault(canonical(name), set()).add(version)
    names = {
        canonical(re.match(r"[\w.-]+", one)[0])
        for one in runpy.run_path(str(ROOT / "tests" / "lock.py"))["requirements"]()
    }
    assert names - set(locked) == set(), "run make lock"
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if line[0] != "#")
    other = {
        name: locked[canonical(name)]
        for name, version in pins.items()
        if canonical(name) in locked and version not in locked[canonical(name)]
    }
    assert other == {}, "run make lock"


def public(module):
    """Whether a dotted name has no private part."""
    return not any(part.startswith("_") and not part.startswith("__") for part in module.split("."))


@pytest.mark.parametrize("package", ["tisat-serve", "tisat-bench"])
def test_only_public_names_of_the_library_are_imported(package):
    private = []
    for file in sorted((ROOT / "packages" / package / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tisat":
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names if alias.name.split(".")[0] == "tisat"]
            else:
                continue
            private += [f"{file.name}: {name}" for name in names if not public(name)]
    assert private == []


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sdists, and the wheels that were made from them: what is not in an sdist is not in its wheel."""
    folder = tmp_path_factory.mktemp("built")
    tools = environment(folder / "tools")
    got = run(tools / "pip", "install", "--quiet", "hatchling>=1.25")
    if got.returncode != 0:
        pytest.skip(f"there is no package registry to get hatchling from: {got.stderr.strip().splitlines()[-1]}")
    for name, module in PACKAGES.items():
        build = (tools / "python", "-m", "hatchling", "build", "-d", folder / "dist", "-t")
        made = run(*build, "sdist", cwd=ROOT / "packages" / name)
        assert made.returncode == 0, made.stderr
        with tarfile.open(folder / "dist" / f"{module}-{__version__}.tar.gz") as archive:
            archive.extractall(folder / "source", filter="data")
        made = run(*build, "wheel", cwd=folder / "source" / f"{module}-{__version__}")
        assert made.returncode == 0, made.stderr
    return folder / "dist"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "module"), PACKAGES.items())
def test_the_wheel_has_what_is_not_python_and_nothing_else(built, name, module):
    (wheel,) = built.glob(f"{module}-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert all(each.startswith((f"{module}/", f"{module}-{__version__}.dist-info/")) for each in names)
    source = ROOT / "packages" / name / "src"
    files = [file for file in source.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    assert {file.relative_to(source).as_posix() for file in files} <= set(names)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "module"), PACKAGES.items())
def test_the_sdist_has_the_source_and_neither_tests_nor_experiments(built, name, module):
    with tarfile.open(built / f"{module}-{__version__}.tar.gz") as archive:
        names = [each.partition("/")[2] for each in archive.getnames()]
    assert {"pyproject.toml", "README.md", "LICENSE"} <= set(names)
    assert not [each for each in names if each.startswith(("tests", "experiments", "docs"))]


@pytest.mark.slow
def test_it_runs_in_an_empty_environment(built, tmp_path):
    there = environment(tmp_path / "empty")
    got = run(there / "pip", "install", "--quiet", *built.glob("tisat-*.whl"))
    assert got.returncode == 0, got.stderr
    printed = run(there / "tisat", "--version", cwd=tmp_path)
    assert printed.stdout.strip() == f"tisat {__version__}", printed.stderr
    printed = run(there / "tisat", "detectors", cwd=tmp_path)
    assert printed.returncode == 0, printed.stderr
    assert [name for name in registry.names() if name not in printed.stdout] == []
    refused = run(there / "tisat", "serve", "--help", cwd=tmp_path)
    assert refused.returncode == 1
    assert "tisat serve needs the package tisat-serve. Install it with: pip install" in refused.stderr
    got = run(there / "pip", "install", "--quiet", "--find-links", built, "tisat-bench", "tisat-serve")
    assert got.returncode == 0, got.stderr
    for verb in ("serve", "bench", "data", "tables"):
        assert run(there / "tisat", verb, "--help", cwd=tmp_path).returncode == 0
