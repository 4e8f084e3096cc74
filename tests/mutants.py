"""Break the code on purpose and see whether a test notices: ``python tests/mutants.py metrics sequential --sample 150``

One mutant is one small change to one place: another comparison, another sign, a constant one larger, ``or`` for ``and``, a
return value that is gone. A mutant that no test notices is printed with its line; it shows a test that is missing, code that
nothing needs, or a change that changes nothing (say ``<`` for ``<=`` where equality cannot be).

The tests of a package are run once under ``coverage`` to learn which of them touch which line; a mutant is then given only
those, the quickest first. Lines of compiled loops cannot be seen that way: there, the tests count that name the loop, or touch
a line which does. A mutant inside a function is put into a fork of a process that has imported all tests, in place of the function's
code; any other (a constant of a module, a default) into a copy of ``src`` and a process that imports it anew. A test that takes
five times the processor time it usually does, and 5 seconds (25 where a loop is compiled anew, 60 where all are), has noticed.

What is scored is kept in ``build/mutants/PACKAGE/judged.jsonl``: a run that was interrupted goes on where it was, and a larger sample
holds the smaller one. A mutant is scored again when its function has changed; ``--again`` does so for those that lived.
"""

from __future__ import annotations

import argparse
import ast
import collections
import gc
import hashlib
import importlib
import itertools
import json
import math
import os
import pkgutil
import shutil
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mutating import FUNCTIONS, ROOT, Mutant, in_a_child, mutants_of, sample_of
from placing import loops_in_memory, place, without_kept_loops

KEPT = ROOT / "build" / "mutants"
TESTS = {
    "metrics": (
        "packages/tisat/tests/metrics",
        "packages/tisat/tests/properties",
        "packages/tisat/tests/contract/test_metrics.py",
        "packages/tisat-bench/tests/golden",
    ),
    "alarms": (
        "packages/tisat/tests/alarms",
        "packages/tisat/tests/contract/test_rules.py",
        "packages/tisat/tests/contract/test_toy_rule.py",
    ),
    "watch": (
        "packages/tisat/tests/watch",
        "packages/tisat/tests/attacks/test_streams.py",
        "packages/tisat/tests/attacks/test_watching.py",
        "packages/tisat/tests/test_counters.py",
    ),
    "io": (
        "packages/tisat/tests/io",
        "packages/tisat/tests/attacks/test_containers.py",
        "packages/tisat/tests/test_series.py",
        "packages/tisat/tests/test_counters.py",
        "packages/tisat/tests/datasets/test_own.py",
    ),
}
QUIET = (
    "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler", "--no-header", "-o", "pythonpath=tests packages/tisat/tests",
    "-W", "ignore::pytest.PytestAssertRewriteWarning", "--doctest-modules",
)  # fmt: skip
UNFINISHED = "lives in the quickest tests"  # the others were not asked
UNPLACED = 71  # what a child ends with when the change cannot be put into a function that lives


class Learned:
    """Which tests touch which line, and how long each takes: measured once for each file of tests, and kept."""

    def __init__(self, package: str, folder: Path) -> None:
        self.package, self.folder = package, folder
        self.file = folder.parent / "touched.json"
        self.known: dict[str, Any] = json.loads(self.file.read_text()) if self.file.exists() else {}
        code = b"".join(
            each.read_bytes() for each in sorted((folder / "packages/tisat/src/tisat" / package).rglob("*.py"))
        )
        self.code = hashlib.sha256(code).hexdigest()

    def stamp(self, file: str) -> str:
        """What the tests of a file and the package are now."""
        return hashlib.sha256(self.code.encode() + Path(file).read_bytes()).hexdigest()

    def update(self, items: Sequence[Any]) -> None:
        """Learn what is not known yet, in a child. All tests must pass."""
        stamps = {file: self.stamp(file) for file in {_file_of(each) for each in items}}
        self.known = {file: each for file, each in self.known.items() if stamps.get(file) == each["stamp"]}
        new = [each for each in items if _file_of(each) not in self.known]
        if not new:
            return
        print(f"{self.package}: learning which lines {len(new)} tests touch", flush=True)
        log = self.folder.parent / "log"
        if in_a_child(lambda: self._measure(new, stamps), log=log) != 0:
            raise SystemExit(
                f"The tests of {self.package} must pass before mutants are made:\n{log.read_text()[-3000:]}"
            )
        self.known = json.loads(self.file.read_text())

    def _measure(self, items: Sequence[Any], stamps: dict[str, str]) -> int:
        import coverage

        source = [str(self.folder / "packages" / "tisat" / "src" / "tisat" / self.package)]
        measured = coverage.Coverage(data_file=None, source=source, config_file=False)
        seconds: dict[str, float] = {}
        measured.start()
        failed = run(items, before=lambda item: measured.switch_context(item.nodeid), seconds=seconds)
        measured.stop()
        data = measured.get_data()
        for file, stamp in stamps.items():
            self.known.setdefault(file, {"stamp": stamp, "lines": {}, "seconds": {}})
        for item in items:
            self.known[_file_of(item)]["seconds"][item.nodeid] = seconds.get(item.nodeid, 0.0)
        home = {item.nodeid: _file_of(item) for item in items}
        for path in data.measured_files():
            short = str(Path(path).relative_to(self.folder))
            for line, names in data.contexts_by_lineno(path).items():
                for name in set(names) & set(home):
                    self.known[home[name]]["lines"].setdefault(f"{short}:{line}", []).append(name)
        self.file.write_text(json.dumps(self.known))
        return failed

    def seconds(self, name: str) -> float:
        """What a test usually takes."""
        return float(next((each["seconds"][name] for each in self.known.values() if name in each["seconds"]), 0.0))

    def touching(self, mutant: Mutant) -> set[str]:
        """The tests a mutant is given."""
        path = str(mutant.file.relative_to(ROOT))
        if mutant.function and not mutant.compiled:
            wanted = {f"{path}:{line}" for line in range(mutant.lines[0], mutant.lines[1] + 1)}
        else:
            wanted = set(_lines_that_name(self.package, mutant))
        if not mutant.function:  # anything that touches the file
            wanted |= {line for each in self.known.values() for line in each["lines"] if line.startswith(f"{path}:")}
        return {
            name for each in self.known.values() for line in wanted & set(each["lines"]) for name in each["lines"][line]
        }


def _file_of(item: Any) -> str:
    return str(item.path)


def _lines_that_name(package: str, mutant: Mutant) -> Iterator[str]:
    """Lines of the package that name a compiled loop or a constant, or a function of its file that does."""
    nodes = list(ast.walk(ast.parse(mutant.file.read_text())))
    functions = [each for each in nodes if isinstance(each, FUNCTIONS)]
    set_here = (
        n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.lineno == mutant.lines[0]
    )
    names = {mutant.function} if mutant.function else {each.id for each in set_here}
    for _ in functions:
        names |= {each.name for each in functions if names & {n.id for n in ast.walk(each) if isinstance(n, ast.Name)}}
    for file in sorted((ROOT / "packages/tisat/src/tisat" / package).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if getattr(node, "id", getattr(node, "attr", None)) in names:
                yield f"{file.relative_to(ROOT)}:{node.lineno}"  # type: ignore[attr-defined]


def calls(item: Any, mutant: Mutant) -> bool:
    """Whether a test names a compiled loop itself."""
    code = getattr(getattr(item, "function", None), "__code__", None)
    return code is not None and mutant.function in code.co_names


def run(items: Sequence[Any], *, before: Callable[[Any], None], seconds: dict[str, float] | None = None) -> int:
    """Run tests that are collected, to the first that fails: how many failed."""
    session = items[0].session
    for item, following in zip(items, [*items[1:], None], strict=True):
        before(item)
        begun = time.process_time()
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        if seconds is not None:
            seconds[item.nodeid] = time.process_time() - begun
        if session.testsfailed:
            return 1
    return 0


def under_a_timer(item: Any, learned: Learned, mutant: Mutant) -> None:
    """Say which test runs. One that never ends is ended by the system: compiled code listens to nothing else."""
    (learned.folder.parent / "running").write_text(item.nodeid)
    signal.setitimer(signal.ITIMER_PROF, (25.0 if mutant.compiled else 5.0) + 5.0 * learned.seconds(item.nodeid))


def warm() -> None:
    """Do once what every child would do first: import what tests import late, start the compiler."""
    for name in ("scipy.stats", "sklearn.base", "pandas", "pyarrow.csv", "pyarrow.parquet", "matplotlib.figure"):
        importlib.import_module(name)
    import numba

    numba.njit(lambda x: x + 1.0)(np.zeros(2))


class Judge:
    """A pytest plugin: instead of running the tests, run those that touch each mutant in a fork that holds it."""

    def __init__(
        self, package: str, folder: Path, mutants: Sequence[Mutant], tell: Callable[..., None], budget: float
    ) -> None:
        self.package, self.folder, self.mutants, self.tell = package, folder, mutants, tell
        self.budget = budget

    def pytest_runtestloop(self, session: Any) -> bool:
        for each in pkgutil.walk_packages(
            [str(self.folder / "packages/tisat/src/tisat" / self.package)], f"tisat.{self.package}."
        ):
            importlib.import_module(each.name)
        learned = Learned(self.package, self.folder)
        learned.update(session.items)
        warm()
        inside = str(self.folder / "packages" / "tisat" / "src" / "tisat" / self.package)
        found = (each for each in gc.get_objects() if type(each) is types.FunctionType)
        self.functions = [each for each in found if each.__code__.co_filename.startswith(inside)]
        self.loops = loops_in_memory()  # what is frozen is not listed any more
        gc.collect()
        gc.freeze()  # children share what there is
        running, log = self.folder.parent / "running", self.folder.parent / "log"
        for mutant in self.mutants:
            names = learned.touching(mutant) | {i.nodeid for i in session.items if mutant.compiled and calls(i, mutant)}
            items = sorted((i for i in session.items if i.nodeid in names), key=lambda i: learned.seconds(i.nodeid))
            spent = itertools.accumulate(learned.seconds(i.nodeid) for i in items)
            few = [i for i, seconds in zip(items, spent, strict=True) if seconds <= self.budget]
            if not items:
                self.tell(mutant, 0, "no test touches it")
                continue
            running.write_text("")
            code = UNPLACED
            if mutant.function and few:
                code = in_a_child(lambda: self._try(mutant, few, learned), log=log)  # noqa: B023
            if code == UNPLACED:
                few = items
                code = in_a_child(lambda: self._anew(mutant, sorted(names)), log=log)  # noqa: B023
            self.tell(mutant, code, running.read_text() if few == items else UNFINISHED)
        return True

    def _try(self, mutant: Mutant, items: Sequence[Any], learned: Learned) -> int:
        try:
            if not place(mutant, self.folder, self.functions, self.loops):
                return UNPLACED
        except ValueError:  # the new code has other free variables
            return UNPLACED
        return run(items, before=lambda item: under_a_timer(item, learned, mutant))

    def _anew(self, mutant: Mutant, names: Sequence[str]) -> int:
        """In an interpreter that imports the changed file: for what is done while a module is imported."""
        placed = self.folder / mutant.file.relative_to(ROOT)
        original, stamp = placed.read_bytes(), placed.stat()
        placed.write_text(mutant.source)
        (self.folder.parent / "names.json").write_text(json.dumps(names))
        try:
            return os.spawnv(os.P_WAIT, sys.executable, [sys.executable, __file__, self.package, "--inside"])
        finally:
            placed.write_bytes(original)
            os.utime(placed, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


class Inside:
    """A pytest plugin: these tests, the quickest first, under the timer."""

    def __init__(self, names: Sequence[str], learned: Learned) -> None:
        self.names, self.learned = set(names), learned

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        (self.learned.folder.parent / "running").write_text(nodeid)
        signal.setitimer(signal.ITIMER_PROF, 60.0 + 5.0 * self.learned.seconds(nodeid))

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.names), key=lambda i: self.learned.seconds(i.nodeid))


def summary(package: str, judged: dict[str, Any], picked: Sequence[Mutant], found: int) -> str:
    """How many live, and how the others were noticed."""
    counts = collections.Counter(judged[each.key]["verdict"] for each in picked if each.key in judged)
    told = ", ".join(f"{number} {verdict}" for verdict, number in counts.most_common())
    return f"{package}: {sum(counts.values())} of {len(picked)} mutants judged ({found} can be made): {told}"


def verdict_of(code: int) -> str:
    """What the end of a child says about the mutant in it."""
    if code in (0, 5):
        return "lives"
    if code in (-signal.SIGPROF, -signal.SIGKILL, 128 + signal.SIGPROF):
        return "ended by the timer"
    if code in (1, 2):
        return "killed"  # 2: a test could not even be imported
    return "crashed" if code < 0 else f"not judged ({code})"


def judge(package: str, chosen: argparse.Namespace) -> int:
    """Judge a sample of the mutants of one package, and print how far it is."""
    folder = KEPT / package / "copy"
    kept = folder.parent / "judged.jsonl"
    judged = {each["key"]: each for each in map(json.loads, kept.read_text().splitlines())} if kept.exists() else {}
    found = [
        each
        for file in sorted((ROOT / "packages/tisat/src/tisat" / package).rglob("*.py"))
        for each in mutants_of(file)
    ]
    picked = sample_of((each for each in found if chosen.only in str(each)), chosen.sample, chosen.seed)
    again = {UNFINISHED, *(["lives"] if chosen.again else [])} - ({UNFINISHED} if chosen.budget < math.inf else set())
    left = [each for each in picked if each.key not in judged or judged[each.key]["verdict"] in again]
    print(f"{package}: seed {chosen.seed}, {len(picked)} mutants of {len(found)}, {len(left)} to score", flush=True)
    done = len(picked) - len(left)

    def tell(mutant: Mutant, code: int, by: str) -> None:
        nonlocal done
        done += 1
        verdict = verdict_of(code)
        verdict = UNFINISHED if (verdict, by) == ("lives", UNFINISHED) else verdict
        judged[mutant.key] = {"key": mutant.key, "mutant": f"{package}: {mutant}", "verdict": verdict, "by": by}
        with kept.open("a") as file:
            file.write(json.dumps(judged[mutant.key]) + "\n")
        lived = sum(judged[each.key]["verdict"] in ("lives", UNFINISHED) for each in picked if each.key in judged)
        print(f"{package}  {done} of {len(picked)}, {lived} live.  {verdict}  {mutant}", flush=True)

    if left:
        import pytest

        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(ROOT / "packages" / "tisat" / "src", folder / "packages" / "tisat" / "src")
        use(folder)
        paths = [*TESTS[package], str(folder / "packages" / "tisat" / "src" / "tisat" / package)]
        pytest.main([*QUIET, "-s", *paths], plugins=[Judge(package, folder, left, tell, chosen.budget)])
    for each in picked:
        if (verdict := judged.get(each.key, {}).get("verdict")) in ("lives", UNFINISHED):
            print(f"{verdict}  {each}  ({judged[each.key]['by'] or 'no test noticed'})")
    print(summary(package, judged, picked, len(found)), flush=True)
    return 0


def inside(package: str) -> int:
    """Run the tests that are named, on the copy as it is now."""
    import pytest

    folder = KEPT / package / "copy"
    use(folder)
    without_kept_loops()  # those of other files may hold what this one was
    names = json.loads((folder.parent / "names.json").read_text())
    files = sorted({name.partition("::")[0] for name in names})
    plugin = Inside(names, Learned(package, folder))
    return int(pytest.main([*QUIET, *files], plugins=[plugin]))


def use(folder: Path) -> None:
    """Import tisat from this copy, here and in processes that tests start."""
    os.environ |= {
        "TISAT_DATA": "",
        "TISAT_HYPOTHESIS": "repeatable",
        "PYTHONPATH": str(folder / "packages" / "tisat" / "src"),
    }
    sys.path[:] = [
        str(folder / "packages" / "tisat" / "src"),
        *(each for each in sys.path if Path(each or ".").resolve() != ROOT / "packages" / "tisat" / "src"),
    ]
    sys.dont_write_bytecode = True  # two mutants of a second would share a file


def main(arguments: Sequence[str] | None = None) -> int:
    """Make mutants, run the tests on them, print those that live."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("packages", nargs="+", choices=sorted(TESTS))
    parser.add_argument("--sample", type=int, default=150, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="mutants whose line, as it is printed, holds this")
    parser.add_argument("--again", action="store_true", help="judge those that lived again")
    parser.add_argument(
        "--budget",
        type=float,
        default=math.inf,
        help="seconds of tests a mutant is given; the next run without it goes on",
    )
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    os.chdir(ROOT)
    if chosen.inside:
        return inside(chosen.packages[0])
    for package in chosen.packages:
        if (child := os.fork()) == 0:
            os._exit(judge(package, chosen))
        os.waitpid(child, 0)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
