"""The code on the pages runs, and prints what the page says; the site names every page."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tisat import registry

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = ("your-csv", "budget", "explain", "live", "fleet", "evaluate", "your-data")  # prometheus: tests/serve
PAGES = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in ("index", "start", "which-score", "1-series", "2-scores", "3-evidence", "4-alarms", "5-evaluation")
    ),
    "docs/installation.md",
    "docs/cookbook.md",
    "docs/forecasters.md",
    "docs/migrating.md",
    "docs/gallery.md",
    *(f"docs/tutorials/{name}.md" for name in TUTORIALS),
]

SECTIONS = (
    "## The idea",
    "## When to use it",
    "## When not",
    "## Example",
    "## Cost",
    "## Parameters",
    "## Where it comes from",
)
QUICK = "random-guess last-value ewma linear linear-last linear-mean vector-autoregression pca mahalanobis nearest-neighbors ocsvm ecod adapter combine prism"
ALL = [name for name, target in registry.DETECTORS.items() if target.startswith("tisat.")]


def load(name):
    spec = importlib.util.spec_from_file_location(f"documentation_{name}", ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


blocks = load("blocks")


def run(page, folder, *, data):
    if page in ("README.md", "docs/index.md"):  # their three lines open the files of docs/start.md
        list(blocks.run_page(first_python((ROOT / "docs" / "start.md").read_text()), folder))
    return list(blocks.run_page((ROOT / page).read_text(), folder, data=data, page=page))


def first_python(text):
    block = next(block for block in blocks.blocks_of(text) if block.language == "python")
    return f"```python\n{block.code}```\n"


def test_the_tables_of_the_claims_are_those_of_the_frozen_figures():
    claims = load("claims_table")
    for path, names in claims.PAGES.items():
        page = path.read_text()
        assert all(claims.START.format(name) in page for name in names)
        assert claims.written(page, names) == page, "type: python docs/claims_table.py"


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page, tmp_path):
    printed = run(page, tmp_path, data=False)
    assert printed
    for one in printed:
        assert one.agrees, f"{page}, line {one.block.line} prints something else; type: python docs/blocks.py {page}"


@pytest.mark.data
@pytest.mark.parametrize("page", ["docs/lab/data.md"])
def test_the_code_that_needs_data_runs(page, tmp_path):
    if not os.environ.get("TISAT_DATA"):
        pytest.skip("TISAT_DATA names no folder")
    assert run(page, tmp_path, data=True)


def test_a_page_that_says_something_else_is_noticed(tmp_path):
    page = "```python\nprint('one 1.25')\n```\n\n```text\none 1.26\n```\n\n```python\nprint('two')\n```\n\n```text\nthree\n```\n"
    printed = list(blocks.run_page(page, tmp_path))
    assert [one.agrees for one in printed] == [True, False]
    assert blocks.written(page, printed).count("two") == 2


@pytest.mark.parametrize(
    ("flag", "there", "agrees"),
    [
        ("", "6 of 2,880, h = 3.779, 11:40", True),
        ("", "6 of 2,881, h = 3.78, 11:40", True),
        ("", "7 of 2,880, h = 3.779, 11:40", False),
        ("", "6 of 2,880, h = 3.779, 11:41", False),
        ("", "999 of 1, h = 1e20, 11:40", False),
        ("within 20 %", "7 of 3,000, h = 4.1, 11:40", True),
        ("figures vary: seconds", "9 of 9, h = 9, 11:49", True),
    ],
)
def test_figures_of_a_page_are_compared(flag, there, agrees, tmp_path):
    mark = f"<!-- {flag} -->\n" if flag else ""
    page = f"```python\nprint('6 of 2,880, h = 3.779, 11:40')\n```\n\n{mark}```text\n{there}\n```\n"
    assert [one.agrees for one in blocks.run_page(page, tmp_path)] == [agrees]


def test_a_block_in_error_is_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError):
        list(blocks.run_page("```python\n1 / 0\n```\n", tmp_path))
    with pytest.raises(RuntimeError, match="ended with"):
        list(blocks.run_page("```console\n$ tisat no-such-verb\n```\n", tmp_path))


def every_page():
    return sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def test_every_block_is_run_or_says_why_not():
    """Python and console blocks of every page of both books; those of detectors and of the Prometheus tutorial have tests of their own."""
    elsewhere = {"docs/tutorials/prometheus.md", "docs/lab/data.md", *(f"docs/detectors/{name}.md" for name in ALL)}
    for file in every_page():
        page = str(file.relative_to(ROOT))
        for block in blocks.blocks_of(file.read_text()):
            assert re.fullmatch(
                r"|needs data|not run: .+|with messages|ends with \d+|within \d+ %|figures vary: .+", block.flag
            )
            if block.language in ("python", "console"):
                assert page in PAGES or page in elsewhere or block.flag.startswith("not run: "), (
                    f"{page}, line {block.line} is not run"
                )
            if block.language == "console" and not block.flag.startswith("not run"):
                assert block.code.startswith("$ "), f"{page}, line {block.line}"


def commands():
    """Every command of ours in a block or a sentence of a page, with the page."""
    for file in every_page():
        for line in re.findall(r"`(tisat [^`\n]+)`", file.read_text()):
            yield file.name, line.partition("|")[0].partition(";")[0].split()[1:]
        for language, code in re.findall(r"^ *```(\w*)\n(.*?)^ *```", file.read_text(), flags=re.M | re.S):
            if language in ("", "sh", "bash", "console"):
                for line in code.replace("\\\n", " ").splitlines():
                    for part in re.split(r"\||&&|;", line.partition(" #")[0]):
                        words = part.replace("$ ", "").split()
                        if "tisat" in words[:2]:
                            yield file.name, words[words.index("tisat") + 1 :]


def test_every_command_on_a_page_has_a_verb_and_options_that_exist():
    cli = (ROOT / "docs" / "reference" / "cli.md").read_text()
    reading = cli[cli.index("\n## Options of many verbs") :]  # with those of every verb that reads files
    sections = {text.split()[1]: text + reading for text in cli.split("\n## ")[1:]}
    found = [(page, words) for page, words in commands() if words and words[0] != "VERB" and page != "cli.md"]
    assert len(found) > 100
    for page, words in found:
        if words[0].startswith("-"):
            assert words[0] in ("--version", "--help"), (page, words)
            continue
        assert words[0] in sections, f"{page}: tisat {words[0]}"
        for word in words[1:]:
            option = word.partition("=")[0]
            if re.match(r"--[a-z]", option) and option not in ("--import", "--help"):
                assert re.search(rf"`{option}\b", sections[words[0]]), f"{page}: tisat {words[0]} has no {option}"


KEPT_BACK = re.compile(r"(lab|tables|decisions)/|(log|architecture)\.md$")  # in the repository, not on the site


def test_the_navigation_names_every_page_of_the_site_once():
    named = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.M)
    pages = sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))
    assert sorted(named) == [page for page in pages if not KEPT_BACK.match(page)]


def test_the_reference_is_what_the_code_says_now():
    for page, text in load("reference").pages().items():
        assert page.read_text(encoding="utf-8") == text, f"{page.name} is old; type: python docs/reference.py"


def test_the_reference_has_every_verb_and_every_name():
    from tisat import detectors, metrics
    from tisat.cli import VERBS

    cli, api = ((ROOT / "docs" / "reference" / name).read_text() for name in ("cli.md", "api.md"))
    assert [verb for verb in VERBS if f"\n## tisat {verb}\n" not in cli] == []
    assert "`--fleet-budget" in cli
    assert [
        name for name in metrics.__all__ if f"\n### tisat.metrics.{name}\n" not in api and f"[`{name}`](#" not in api
    ] == []
    assert [name for name in dir(detectors) if f".{name}\n" not in api and f"| `{name}` |" not in api] == []
    assert [name for name in registry.names() if f"(../detectors/{name}.md)" not in api] == []
    assert not re.search(r"0x[0-9a-f]{6}|/home/|/work/|/root/", cli + api)


def test_every_public_name_has_parameters_types_a_result_and_an_example():
    docstrings = load("docstrings")
    gaps = {name: docstrings.gaps_of(value) for name, value in docstrings.public_names()}
    assert len(gaps) > 100
    assert {name: found for name, found in gaps.items() if found} == {}


def test_the_site_has_at_most_60_000_words():
    """Words of the pages on the site: marks and code count here, about 2,400 more than ``search_index.json`` of ``mkdocs build`` has."""
    pages = [
        file for file in (ROOT / "docs").rglob("*.md") if not KEPT_BACK.match(str(file.relative_to(ROOT / "docs")))
    ]
    marks = re.compile(r"<!--.*?-->|\]\([^)]*\)|^\|[-:| ]+\|$|^```.*?$|[|`#*┃│┏┡└━─┳╇┴┓┩┘]+", flags=re.S | re.M)
    words = sum(len(marks.sub(" ", file.read_text()).split()) for file in pages)
    assert words - 2_400 <= 60_000, words


def books():
    """The pages of the two books, by the navigation."""
    using, laboratory = (ROOT / "mkdocs.yml").read_text().split("  - Using tisat:\n")[1].split("  - Validation:\n")
    return [re.findall(r": ([\w/-]+\.md)$", book, flags=re.M) for book in (using, laboratory)]


def test_the_first_book_is_understood_without_the_laboratory():
    """No page of it links to the second book, but in a line that begins with its name; the home page presents both books."""
    using, laboratory = books()
    assert len(using) > 50
    for page in using:
        if page == "index.md":
            continue
        here = (ROOT / "docs" / page).parent
        for line in (ROOT / "docs" / page).read_text().splitlines():
            for link in re.findall(r"\]\(([\w./-]+\.md)", line):
                target = str((here / link).resolve().relative_to(ROOT / "docs"))
                assert target in using or line.startswith("Validation: "), f"{page} links to {target}"
                assert target in [*using, *laboratory] or KEPT_BACK.match(target)


def test_the_gallery_has_a_picture_for_every_block_that_draws():
    text = (ROOT / "docs" / "gallery.md").read_text()
    drawn = re.findall(r'savefig\("(\w+\.png)"', text)
    shown = re.findall(r"\]\(pictures/gallery/(\w+\.png)\)", text)
    assert len(drawn) >= 7
    assert shown == [*drawn, "report.png"], "each below the block that made it"


@pytest.mark.parametrize("name", ALL)
def test_every_detector_has_a_page_of_one_kind(name):
    text = (ROOT / "docs" / "detectors" / f"{name}.md").read_text()
    assert re.findall(r"^## .*$", text, flags=re.M) == list(SECTIONS)
    idea = re.search(r"## The idea\n\n(.*?)\n\n", text, flags=re.S)[1]
    assert 1 <= len(re.findall(r"[.:](?:\s|$)", idea)) <= 3, "two sentences"
    assert f"](pictures/{name}.png)" in text
    assert (ROOT / "docs" / "detectors" / "pictures" / f"{name}.png").is_file()
    assert f"--detector {name}`" in text
    cost = re.search(r"<!-- cost: .*? -->\n(.*?)<!-- end of cost -->", text, flags=re.S)[1]
    assert re.match(
        r"In the example \(3,000 rows, 8 channels, one core\): [\d.e+]+ s .*rows scored per second\.\n$", cost
    )


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK.split() else pytest.mark.slow) for name in ALL]
)
def test_the_example_of_a_detector_runs(name):
    text = (ROOT / "docs" / "detectors" / f"{name}.md").read_text()
    (example,) = [block for block in blocks.blocks_of(text) if block.language == "python"]
    session = {}
    exec(compile(example.code, f"{name}.md", "exec"), session)
    assert len(session["scores"]) == len(session["plant"].test)
    assert session["detector"].normal_level() > 0


def test_every_link_between_pages_leads_somewhere():
    for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        for link in re.findall(r"\]\((?!https?:|#)([^)\s#]+)", page.read_text(encoding="utf-8")):
            if "/" in link or "." in link:
                assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_site_pages_and_console_have_one_icon_and_the_site_names_the_version():
    import tisat

    own = (ROOT / "docs" / "look" / "icon.svg").read_bytes()
    assert own == (ROOT / "packages" / "tisat" / "src" / "tisat" / "plotting" / "static" / "icon.svg").read_bytes()
    assert (
        own
        == (ROOT / "packages" / "tisat-serve" / "src" / "tisat_serve" / "console" / "static" / "icon.svg").read_bytes()
    )
    assert f"copyright: tisat {tisat.__version__}, " in (ROOT / "mkdocs.yml").read_text()


def test_nobody_is_told_to_install_what_is_not_published():
    for file in [*every_page(), ROOT / "CONTRIBUTING.md", *(ROOT / "packages").glob("*/src/**/*.py")]:
        assert not re.search(r"pip install '?tisat", file.read_text()), file


def test_the_picture_of_the_rooms_is_the_one_that_is_checked():
    import tomllib

    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    drawn = re.search(
        r"<!-- layers -->\n```text\n(.*?)```", (ROOT / "docs" / "architecture.md").read_text(), flags=re.S
    )[1]
    named = [re.split(r"\s{3,}", line)[0].strip() for line in drawn.splitlines() if not line.startswith(" ")]
    assert named == layers


def test_the_bench_tutorial_does_not_look_into_a_home_full_of_leftovers(tmp_path, monkeypatch):
    cache = tmp_path / "home" / ".cache" / "tisat"
    for folder in ("pumps", "empty", "SMD"):  # a set of the same name, another's rows, nothing
        (cache / folder).mkdir(parents=True)
    (cache / "pumps" / "pump-9.train.csv").write_text("time,other\n2020-01-01,1\n")
    (cache / "pumps" / "pump-9.test.csv").write_text("time,other,label\n2020-01-01,1,0\n")
    (tmp_path / "home" / "results").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TISAT_DATA", raising=False)
    folder = tmp_path / "work"
    folder.mkdir()
    for _ in range(2):  # and again, where its own files lie
        printed = run("docs/tutorials/your-data.md", folder, data=False)
        assert any("tisat bench" in one.block.code for one in printed)
        assert all(one.agrees for one in printed)


def test_every_figure_of_the_readme_has_its_command():
    """Each row and paragraph of the results that has a figure names a command, whose file or verb exists."""
    text = (ROOT / "README.md").read_text()
    results = text[text.index("## What it finds") : text.index("## Limits")]
    results = re.sub(r"<!-- demo, .*?<!-- end of demo -->", "", results, flags=re.S)  # its comment names the command
    for part in [
        part for whole in results.split("\n\n") for part in (whole.splitlines() if whole[:1] == "|" else [whole])
    ]:
        if re.search(r"\d", re.sub(r"`[^`]*`|\]\([^)]*\)", "", part)):
            commands_ = re.findall(r"`((?:python|tisat|make) [^`]+)`", part)
            assert commands_, part
            for script in re.findall(r"python (\S+\.py)", " ".join(commands_)):
                assert (ROOT / script).is_file(), script


DRAWN = {
    "alarm": ("alarm.png",),
    "claims": ("claims.png",),
    "budget": ("budget-means.png", "budget-supported.png", "budget-label.png"),
}


@pytest.mark.slow
@pytest.mark.parametrize("script", DRAWN)
def test_pictures_are_those_that_their_scripts_draw_now(script, tmp_path, monkeypatch):
    """The same size, and on average less than 2 % of the range of a pixel away: fonts may differ, lines may not."""
    import numpy as np
    from matplotlib.image import imread

    drawing = load(f"pictures/{script}")
    monkeypatch.setattr(drawing, "HERE", tmp_path)
    drawing.main()
    for name in DRAWN[script]:
        kept, now = imread(ROOT / "docs" / "pictures" / name), imread(tmp_path / name)
        assert kept.shape == now.shape, f"type: python docs/pictures/{script}.py"
        assert float(np.abs(kept - now).mean()) < 0.02, f"type: python docs/pictures/{script}.py"


@pytest.mark.parametrize(
    ("asked", "page"),
    [("install", "installation"), ("citation", "faq"), ("anomaly detection", "index"), ("seasonal", "cookbook")],
)
def test_searching_the_site_finds_the_page(asked, page):
    """Titles and headings count most, as in the search of the site: the page has the words in one, or in its first lines."""
    text = (ROOT / "docs" / f"{page}.md").read_text().lower()
    headings = "\n".join(re.findall(r"^#+ .*$", text, flags=re.M))
    assert asked in headings or asked in text[:400]


SEARCHES = {
    "install": "installation/", "citation": "faq/", "licence": "faq/", "anomaly detection": "", "seasonality": "cookbook/",
    "budget": "tutorials/budget/",
}  # fmt: skip


@pytest.mark.slow
def test_the_search_of_the_site_gives_the_right_page_first(tmp_path):
    """By lunr, with the weights of the theme: a title counts a thousand times its text, and a page as much as its front matter says."""
    lunr = pytest.importorskip("lunr", reason="pip install lunr")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    sections = json.loads((tmp_path / "search" / "search_index.json").read_text())["docs"]
    fields = [{"field_name": "title", "boost": 1000}, {"field_name": "text", "boost": 1}]
    documents = [({**one, "id": str(i)}, {"boost": one.get("boost", 1)}) for i, one in enumerate(sections)]
    index = lunr.lunr(ref="id", fields=fields, documents=documents)
    first = {asked: index.search(" ".join(f"+{word}" for word in asked.split()))[0]["ref"] for asked in SEARCHES}
    assert {asked: sections[int(ref)]["location"].partition("#")[0] for asked, ref in first.items()} == SEARCHES
