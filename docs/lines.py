"""How much code there is: ``python docs/lines.py [REVISION]``, per package beside what it was before the split, and per folder of each.

A line of code is one that is neither blank, nor a comment alone, nor part of a docstring. ``Any`` counts the word where it is code.
"""

import ast
import collections
import io
import re
import subprocess
import sys
import tarfile
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BEFORE = "de5a2b0"  # one package, reviewed on 17 November 2026
SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def sources(revision):
    """Path and text of each source file, now or at a revision; paths begin with the package."""
    if not revision:
        found = {path.relative_to(ROOT): path.read_text() for path in sorted(ROOT.glob("packages/*/src/**/*.py"))}
    else:
        here = subprocess.run(
            ["git", "ls-tree", "--name-only", revision], cwd=ROOT, capture_output=True, check=True, text=True
        ).stdout
        wanted = "packages" if "packages" in here.split() else "src"
        packed = subprocess.run(["git", "archive", revision, wanted], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            found = {
                Path(each.name): files.extractfile(each).read().decode() for each in files if each.name.endswith(".py")
            }
    parts = {path: path.parts[path.parts.index("src") + 1 :] for path in found if "src" in path.parts}
    return {Path(*parts[path]): found[path] for path in parts}


def docstring_lines(tree):
    """Numbers of the lines that docstrings take."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            found.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return found


def measured(text):
    """Lines of code, ``Any`` and ``type: ignore`` of a file."""
    lines, some = set(), 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SKIPPED:
            lines.update(range(token.start[0], token.end[0] + 1))
            some += token.type == tokenize.NAME and token.string == "Any"
    return collections.Counter(
        files=1,
        code=len(lines - docstring_lines(ast.parse(text))),
        Any=some,
        ignored=len(re.findall(r"# type: ignore", text)),
        long=len(text.splitlines()) > 400,
    )


def detector_names():
    """Public names of a detector, as a user's editor lists them."""
    from tisat.detectors.base import Detector

    return [name for name in dir(Detector) if not name.startswith("_")]


def by_folder(revision):
    """What is measured, by package and folder."""
    folders = collections.defaultdict(collections.Counter)
    for path, text in sources(revision).items():
        folders[path.parts[0], path.parts[1] if len(path.parts) > 2 else path.name] += measured(text)
    return folders


def by_package(folders):
    """The sums of folders, with their number."""
    packages = collections.defaultdict(collections.Counter)
    for (package, _), found in folders.items():
        packages[package] += found
        packages[package]["entries"] += 1
    return packages


def main():
    """Print two Markdown tables: a row for each package, and a row for each folder of a package."""
    folders = by_folder(sys.argv[1] if len(sys.argv) > 1 else "")
    packages = by_package(folders)
    head = "files | lines of code | `Any` | `type: ignore` | files over 400 lines |"
    sys.stdout.write(f"| package | top-level entries | {head}\n|---|--:|--:|--:|--:|--:|--:|\n")
    packages["**all**"] = sum(packages.values(), collections.Counter())
    try:
        packages[f"before the split ({BEFORE})"] = by_package(by_folder(BEFORE))["tisat"]
    except subprocess.CalledProcessError:
        sys.stderr.write(f"{BEFORE} is not in this copy of the repository: a shallow clone.\n")
    for package, found in packages.items():
        cells = [f"{found[name]:,}" for name in ("entries", "files", "code", "Any", "ignored", "long")]
        sys.stdout.write(f"| {package} | {' | '.join(cells)} |\n")
    sys.stdout.write(f"\n| folder | {head}\n|---|--:|--:|--:|--:|--:|\n")
    for (package, folder), found in sorted(folders.items()):
        cells = [f"{found[name]:,}" for name in ("files", "code", "Any", "ignored", "long")]
        sys.stdout.write(f"| {package}/{folder} | {' | '.join(cells)} |\n")
    if len(sys.argv) == 1:
        sys.stdout.write(f"\nA detector has {len(detector_names())} public names.\n")


if __name__ == "__main__":
    main()
