"""Break the code on purpose and see whether a test notices: ``python tests/mutants.py metrics sequential --sample 150``

One mutant is one small change to one place: another comparison, another sign, a constant one larger, ``or`` for ``and``, a
return value that is gone. A mutant that no test notices is printed with its line; it shows a test that is missing, code that
nothing needs, or a change that changes nothing (say ``<`` for ``<=`` where equality cannot be).

The tests of a package are run once under ``coverage`` to learn which of them touch which line; a mutant is then given only
those, the quickest first. Lines of compiled loops cannot be seen that way: all tests of the package are run on them. Each mutant
lives in a copy of ``src`` and in a process of its own; a test that takes five times what it usually does, and 20 seconds, has noticed.
"""

from __future__ import annotations

import argparse
import ast
import collections
import importlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TESTS = {
    "metrics": ("tests/metrics", "tests/properties", "tests/contract/test_metrics.py", "tests/golden"),
    "sequential": ("tests/sequential", "tests/contract/test_rules.py", "tests/contract/test_toy_rule.py"),
}
QUIET = (
    "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "-o", "pythonpath=tests",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip
COMPARED: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
LEAVE = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)  # what is said, not what is done


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, and what it makes of the line."""

    file: Path
    place: int  # of the node among the file's places
    line: int
    was: str
    now: str
    compiled: bool

    def source(self) -> str:
        """The file with the change in it."""
        tree = ast.parse(self.file.read_text())
        target = next(node for number, (node, _) in enumerate(places(tree)) if number == self.place)
        new = change(target)
        for parent in ast.walk(tree):
            for name, value in ast.iter_fields(parent):
                if value is target:
                    setattr(parent, name, new)
                elif isinstance(value, list):
                    value[:] = [new if each is target else each for each in value]
        return ast.unparse(ast.fix_missing_locations(tree))

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT / 'src')}:{self.line}  {self.was}  ->  {self.now}"


def places(tree: ast.AST, *, compiled: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Nodes that may be changed, with whether they lie in a compiled loop."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, LEAVE) or _only_for_readers(child):
                continue
            decorators = getattr(child, "decorator_list", [])
            inside = compiled or any("compiled" in ast.unparse(each) for each in decorators)
            yield child, inside
            yield from places(child, compiled=inside)


def _only_for_readers(node: ast.AST) -> bool:
    """Docstrings, ``__all__``, imports for the type checker, warnings."""
    text = ast.unparse(node) if isinstance(node, (ast.If, ast.Assign, ast.Expr)) else ""
    return text.startswith(("if TYPE_CHECKING", "__all__", "warnings.warn", "'", '"'))


def change(node: ast.AST) -> ast.AST | None:
    """What a node becomes; None where it is none of those that are changed."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARED:
            return ast.Compare(node.left, [COMPARED[type(op)]()], node.comparators)
        case ast.BinOp() if type(node.op) in COMPUTED:
            return ast.BinOp(node.left, COMPUTED[type(node.op)](), node.right)
        case ast.AugAssign() if type(node.op) in COMPUTED:
            return ast.AugAssign(node.target, COMPUTED[type(node.op)](), node.value)
        case ast.BoolOp():
            return ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            return node.operand
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            return ast.Return(ast.Constant(None))
        case ast.Constant(value=bool() as value):
            return ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            return ast.Constant(value + 1)
    return None


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Every mutant of a file."""
    kernels = file.name == "_kernels.py"  # compiled as a whole
    for place, (node, compiled) in enumerate(places(ast.parse(file.read_text()), compiled=kernels)):
        new = change(node)
        if new is not None:
            yield Mutant(file, place, getattr(node, "lineno", 0), ast.unparse(node), ast.unparse(new), compiled)


class Touched:
    """A pytest plugin: which lines of the package each test touches, and how long it takes."""

    def __init__(self, coverage: Any) -> None:
        self.coverage, self.seconds = coverage, collections.Counter[str]()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)
        self.begun = time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds[nodeid] = time.process_time() - self.begun  # type: ignore[assignment]


class Chosen:
    """A pytest plugin: only these tests (None: all), the quickest first."""

    def __init__(self, names: set[str] | None, seconds: dict[str, float]) -> None:
        self.names, self.seconds = names, seconds

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        # A loop that never ends is ended by the system: compiled code listens to nothing else.
        signal.setitimer(signal.ITIMER_VIRTUAL, 20.0 + 5.0 * self.seconds.get(nodeid, 0.0))

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [each for each in items if self.names is None or each.nodeid in self.names or "src/" in each.nodeid]
        items.sort(key=lambda each: self.seconds.get(each.nodeid, 0.0))


def in_a_child(work: Any, *, limit: int, keep: Path | None = None) -> int:
    """What ``work()`` returned in a process of its own: 0 where all tests passed."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 70
    try:
        silent = os.open(keep or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        code = int(work())
    except BaseException:  # the child must end here, whatever a mutant does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def learn(package: str, folder: Path) -> tuple[dict[tuple[str, int], set[str]], dict[str, float]]:
    """Tests by the line they touch, and their seconds. The tests must pass."""
    import json

    def work() -> int:
        import coverage
        import pytest

        measured = coverage.Coverage(
            data_file=None, source=[str(folder / "src" / "tisat" / package)], config_file=False
        )
        plugin = Touched(measured)
        measured.start()
        found = pytest.main([*QUIET, *TESTS[package]], plugins=[plugin])
        measured.stop()
        data = measured.get_data()
        lines = {str(Path(file).relative_to(folder)): data.contexts_by_lineno(file) for file in data.measured_files()}
        (folder / "touched.json").write_text(json.dumps([lines, plugin.seconds]))
        return int(found)

    if in_a_child(work, limit=3000, keep=folder / "log") != 0:
        raise SystemExit(
            f"The tests of {package} must pass before mutants are made. They print:\n{(folder / 'log').read_text()[-3000:]}"
        )
    lines, seconds = json.loads((folder / "touched.json").read_text())
    return {
        (file, int(line)): set(names) - {""} for file, each in lines.items() for line, names in each.items()
    }, seconds


def survives(
    mutant: Mutant, folder: Path, touched: dict[tuple[str, int], set[str]], seconds: dict[str, float], package: str
) -> bool:
    """Whether all tests that touch the line pass."""
    path = mutant.file.relative_to(ROOT)
    names = None if mutant.compiled else touched.get((str(path), mutant.line), set())
    files = TESTS[package] if names is None else sorted({name.partition("::")[0] for name in names})
    limit = 30 + int(3 * sum(seconds.get(name, 0.0) for name in (seconds if names is None else names)))
    placed = folder / path
    original = placed.read_bytes()
    if mutant.compiled:  # numba knows what it kept by the time of the file alone, and callers elsewhere hold copies
        for kept in (folder / "src").rglob("*.nb?"):
            kept.unlink()
    placed.write_text(mutant.source())

    def work() -> int:
        import pytest

        return int(pytest.main([*QUIET, "--doctest-modules", str(placed), *files], plugins=[Chosen(names, seconds)]))

    try:
        return in_a_child(work, limit=limit) in (0, 5)  # 5: no test touches it
    finally:
        placed.write_bytes(original)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make mutants, run the tests on them, print those that live."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("packages", nargs="+", choices=sorted(TESTS))
    parser.add_argument("--sample", type=int, default=150, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="mutants whose line, as it is printed, holds this")
    chosen = parser.parse_args(arguments)
    os.environ["TISAT_DATA"] = ""
    os.environ["TISAT_HYPOTHESIS"] = "repeatable"
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        shutil.copytree(ROOT / "src", folder / "src")
        sys.path[:] = [str(folder / "src"), *(each for each in sys.path if Path(each or ".").resolve() != ROOT / "src")]
        os.environ["PYTHONPATH"] = str(folder / "src")
        sys.dont_write_bytecode = True  # two mutants of a second would share a file
        for each in ("pytest", "hypothesis", "numba", "scipy.stats", "sklearn.base", "pyarrow", "coverage"):
            importlib.import_module(each)
        for package in chosen.packages:
            found = [m for file in sorted((ROOT / "src/tisat" / package).rglob("*.py")) for m in mutants_of(file)]
            picked = [m for m in found if chosen.only in str(m)]
            picked = random.Random(chosen.seed).sample(picked, min(chosen.sample, len(picked)))
            touched, seconds = learn(package, folder)
            alive = 0
            for mutant in picked:
                if survives(mutant, folder, touched, seconds, package):
                    alive += 1
                    print(f"lives  {mutant}", flush=True)
            print(f"{package}: {alive} of {len(picked)} mutants live ({len(found)} can be made)", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
