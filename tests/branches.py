"""Which branches the tests take, package by package, from what ``make coverage`` has measured: ``python tests/branches.py``

The table is Markdown. ``--missing reading`` lists the lines that no test reaches and the branches that none takes, in each file
of a package. Lines of compiled loops are not counted: they run outside the interpreter.
"""

from __future__ import annotations

import argparse
import collections
import json
import tempfile
from pathlib import Path, PurePath
from typing import Any

import coverage

CORE = ("(top)", "detectors", "metrics", "nn", "reading", "sequential", "watch")


def measured() -> dict[PurePath, Any]:
    """What was measured in all processes, by file."""
    found = coverage.Coverage()
    if any(Path("build/coverage").glob("measured.*")):
        found.combine()
        found.save()
    found.load()
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "coverage.json"
        found.json_report(outfile=str(written), ignore_errors=True)  # a test pastes files and takes them away
        files = json.loads(written.read_text())["files"]
    return {_inside(PurePath(path)): each for path, each in files.items()}


def _inside(path: PurePath) -> PurePath:
    """The path below the package."""
    last = len(path.parts) - 1 - path.parts[::-1].index("tisat")
    return PurePath(*path.parts[last + 1 :])


def row(name: str, counts: collections.Counter[str]) -> str:
    """One line of the table."""
    lines, taken = counts["num_statements"], counts["covered_lines"]
    branches, both = counts["num_branches"], counts["covered_branches"]
    shares = (taken / max(lines, 1), both / max(branches, 1), (taken + both) / max(lines + branches, 1))
    first, second, third = (f"{100 * share:.1f}" for share in shares)
    return f"| {name} | {lines:,} | {first} | {branches:,} | {second} | {third} |"


def main() -> int:
    """Print the table, or what is missing in some packages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--missing", nargs="+", default=(), metavar="ROOM")
    wanted = parser.parse_args().missing
    packages: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for path, each in sorted(measured().items()):
        package = path.parts[0] if len(path.parts) > 1 else "(top)"
        for name in [package, "**all**", *(["**core and detectors**"] if package in CORE else [])]:
            packages[name].update({key: value for key, value in each["summary"].items() if isinstance(value, int)})
        if package in wanted and each["summary"]["percent_covered"] < 100:
            arrows = [f"{start}->{'end' if end < 0 else end}" for start, end in each["missing_branches"]]
            print(
                f"{path}  {each['summary']['percent_covered']:.1f} %: lines {each['missing_lines']}, branches {' '.join(arrows)}"
            )
    if not wanted:
        print("| package | statements | taken, % | branches | taken, % | both, % |\n|---|--:|--:|--:|--:|--:|")
        for name in sorted(packages, key=lambda each: (each.startswith("**a"), each.startswith("**"), each)):
            print(row(name, packages[name]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
