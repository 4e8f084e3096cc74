"""The rules of the codebase that a tool can hold: layers, no pickle, a page and a notice for every detector, links that lead somewhere."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tisat import registry

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(file for package in (ROOT / "packages").iterdir() for file in (package / "src").rglob("*.py"))
FILES = [
    *SOURCES,
    *(
        file
        for room in (
            "tests",
            "packages/tisat/tests",
            "packages/tisat-serve/tests",
            "packages/tisat-bench/tests",
            "docs",
            "benchmarks",
            "experiments",
        )
        for file in (ROOT / room).rglob("*.py")
    ),
]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])


def tool(name):
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


@pytest.mark.parametrize("command", ["lint-imports", "ruff check --quiet .", "ruff format --check --quiet ."])
def test_the_tools_agree(command):
    name, *arguments = command.split()
    executable = tool(name)
    if executable is None:
        pytest.skip(f"{name} is not installed: pip install 'tisat[dev]'")
    found = subprocess.run([executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, (found.stdout + found.stderr)[-3000:]


def test_no_file_is_longer_than_400_lines():
    long = {
        str(file.relative_to(ROOT)): text.count("\n") for file in FILES if (text := file.read_text()).count("\n") > 400
    }
    assert not long, "find the seam"


def test_mypy_holds_every_helper_of_the_tests():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    held = {file for pattern in settings["files"] for file in ROOT.glob(pattern)}
    folders = [ROOT / "tests", *(ROOT / "packages").glob("*/tests")]
    helpers = {file for folder in folders for file in folder.rglob("*.py") if not file.name.startswith("test_")}
    assert helpers <= held


def test_nothing_unpickles():
    forbidden = re.compile(
        r"\b(pickle|cPickle|dill|cloudpickle|shelve|joblib)\.(load|loads|dump|dumps)\b|torch\.load\(|allow_pickle=True"
    )
    guilty = [
        f"{file.relative_to(ROOT)}: {m.group()}" for file in SOURCES for m in forbidden.finditer(file.read_text())
    ]
    assert guilty == []


@pytest.mark.parametrize("name", [name for name, target in registry.DETECTORS.items() if target.startswith("tisat.")])
def test_every_detector_has_a_page_and_a_notice(name):
    assert (ROOT / "docs" / "detectors" / f"{name}.md").is_file()
    module = registry.DETECTORS[name].partition(":")[0].replace(".", "/")
    assert f"packages/tisat/src/{module}.py" in (ROOT / "NOTICE").read_text()


def test_the_notice_names_files_that_are_there():
    named = re.findall(r"^((?:packages|experiments)/\S+(?:, \S+)*)   ", (ROOT / "NOTICE").read_text(), flags=re.M)
    assert len(named) > 50
    for line in named:
        first, *more = line.split(", ")
        folder = ROOT if not more or "/" in more[0] else (ROOT / first).parent
        gone = [
            name
            for name in (first, *((folder / name).relative_to(ROOT) for name in more))
            if not (ROOT / name).exists()
        ]
        assert gone == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_the_flow_has_a_page_an_arrow():
    for page in ("1-series", "2-scores", "3-evidence", "4-alarms", "5-evaluation"):
        assert (ROOT / "docs" / f"{page}.md").is_file()


def test_every_room_is_on_the_page_of_the_architecture():
    text = (ROOT / "docs" / "architecture.md").read_text()
    package = ROOT / "packages" / "tisat" / "src" / "tisat"
    rooms = [path.name for path in package.iterdir() if (path / "__init__.py").is_file()]
    rooms += [path.name for path in package.glob("[a-z]*.py")]
    assert [room for room in rooms if room not in text] == []


def test_any_stays_below_450():
    spec = importlib.util.spec_from_file_location("lines", ROOT / "docs" / "lines.py")
    lines = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lines)
    assert sum(lines.measured(text)["Any"] for text in lines.sources("").values()) < 450, "python docs/lines.py"
