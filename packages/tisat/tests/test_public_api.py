"""What a user meets first: the exported names, a light import, the README's example, one style of error."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import pytest

from tisat import errors, registry

ROOT = Path(__file__).resolve().parents[3]
HEAVY = ("torch", "numba", "pandas", "polars", "matplotlib", "sklearn", "scipy", "ray", "pyarrow", "onnxruntime")


def run(code):
    plain = {name: value for name, value in os.environ.items() if name != registry.IMPORTS}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=plain)


def test_import_is_light():
    found = run(f"import sys, tisat; print([m for m in {HEAVY!r} if m in sys.modules])")
    assert found.stdout.strip() == "[]", found.stderr


def test_help_is_light():
    code = (
        "import sys\nfrom tisat.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    found = run(code)
    assert found.stderr.strip().splitlines()[-1] == "[]"
    assert "demo" in found.stdout


LAZY = ("tisat", "tisat.detectors", "tisat.alarms", "tisat.watch")
AT_ONCE = {"tisat": {"__version__"}, "tisat.detectors": {"Detector", "Traits", "adapt", "load", "make"}}
EAGER = ("tisat.datasets", "tisat.batch.engines", "tisat.batch", "tisat.metrics", "tisat.alarms.rules")


@pytest.mark.parametrize("room", LAZY)
def test_exported_names_are_exact(room):
    module = import_module(room)
    assert sorted(module.__all__) == module.__dir__()
    for name in module.__all__:
        if room != "tisat.detectors":  # not torch for every one of them
            assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match=f"module '{room}' has no attribute 'nonsense'"):
        _ = module.nonsense
    # What editors and type checkers see is what can be imported.
    source = ast.parse(Path(module.__file__).read_text())
    typed = next(one for one in source.body if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING")
    seen = {alias.asname for line in typed.body for alias in line.names}
    assert seen == set(module.__all__) - AT_ONCE.get(room, set())


@pytest.mark.parametrize("room", EAGER)
def test_all_is_exact_where_names_are_imported_at_once(room):
    module = import_module(room)
    mine = {
        name
        for name, found in vars(module).items()
        if not name.startswith("_")
        and getattr(found, "__module__", "").startswith(room)
        and not isinstance(found, TypeVar)
    }
    assert mine <= set(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_errors_are_exported_and_drawn():
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__)) | {"TisatError", "CalibrationWarning", "SeriesWarning"}
    defined = {name for name, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == "tisat.errors"}
    assert drawn == defined == set(errors.__all__)


def test_every_registered_detector_is_documented():
    for name in registry.names():
        if registry.DETECTORS[name].startswith("tisat."):
            cls = registry.resolve(name)
            assert registry.name_of(cls) == name
            text = inspect.getdoc(cls)
            assert "Examples\n---" in text, f"{cls.__name__} has no example"
            assert "References\n---" in text or "Notes\n---" in text, f"{cls.__name__} does not say where it comes from"
            if inspect.signature(cls).parameters:
                assert "Parameters\n---" in text, f"{cls.__name__} does not describe its parameters"


def test_the_readme_shows_three_lines_of_code():  # tests/test_documentation.py runs them
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)[1]
    assert len([line for line in block.splitlines() if line.strip()]) <= 4


def test_a_missing_extra_names_the_command():
    from tisat.utils.extras import EXTRAS, require

    code = "import sys; sys.modules['torch'] = None\nfrom tisat.utils.extras import require\nrequire('torch', whose='TiSAT')"
    assert (
        run(code)
        .stderr.strip()
        .endswith(
            "TiSAT needs torch. Install it with: pip install './packages/tisat[deep]' in the folder of tisat's source"
        )
    )
    with pytest.raises(errors.MissingExtraError, match="pip install no_such_thing"):
        require("no_such_thing", whose="x")
    for requirement in EXTRAS.values():
        package, _, extra = requirement.rstrip("]").partition("[")
        declared = (ROOT / "packages" / package / "pyproject.toml").read_text()
        assert re.search(rf"^{extra or 'dependencies'} = \[", declared, flags=re.M)


WITHOUT_TORCH = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Absent())
"""


def test_every_detector_says_which_extra_it_lacks():
    code = (
        f"{WITHOUT_TORCH}from tisat import errors, make, registry\n"
        "for name in registry.names():\n"
        "    try: make(name) if name not in ('adapter', 'combine') else None\n"
        "    except errors.MissingExtraError as error: print(name, error)"
    )
    done = run(code)
    assert not done.stderr
    lacking = {line.partition(" ")[0]: line for line in done.stdout.splitlines()}
    table = list(registry.DETECTORS)  # ends with the deep ones
    assert lacking.keys() == {"lstm", "deepant", *table[table.index("tisat") : table.index("anomaly-transformer") + 1]}
    assert all("pip install './packages/tisat[deep]'" in line for line in lacking.values())
    verb = ["fit", "README.md", "--detector", "lstm", "--out", "x.tisat"]
    done = run(f"{WITHOUT_TORCH}from tisat.cli import main\nmain({verb})")
    assert done.returncode == 1
    assert done.stderr.startswith("tisat: A neural detector needs torch. Install it with: pip install ")


def test_verbs_are_listed_once_and_exist():
    from tisat.cli import VERBS, load_verb, overview

    for name, (_, what) in VERBS.items():
        assert load_verb(name) is not None
        assert what.endswith(".")
        assert f"  {name} " in overview()


def test_detectors_are_listed_without_importing_them():
    code = (
        "import sys\nfrom tisat.cli import main\n"
        "try:\n    main(['detectors', '--json'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('torch', 'sklearn', 'numba', 'scipy') if m in sys.modules], file=sys.stderr)"
    )
    found = run(code)
    assert found.stderr.strip().splitlines()[-1] == "[]"
    listed = {row["name"]: row["what"] for row in json.loads(found.stdout)}
    assert list(listed) == registry.names()
    for name in ("prism", "tisat", "adapter"):
        assert listed[name] == inspect.getdoc(registry.resolve(name)).partition("\n")[0]
