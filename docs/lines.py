"""How much code there is: ``python docs/lines.py [REVISION]``, by room of ``src/tisat``.

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
SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def sources(revision):
    """Path below ``src/tisat`` and text of each file, now or as it was."""
    if not revision:
        folder = ROOT / "src" / "tisat"
        return {path.relative_to(folder): path.read_text() for path in sorted(folder.rglob("*.py"))}
    packed = subprocess.run(["git", "archive", revision, "src/tisat"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        return {
            Path(each.name).relative_to("src/tisat"): files.extractfile(each).read().decode()
            for each in files
            if each.name.endswith(".py")
        }


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


def main():
    """Print a Markdown table, a row for each room, and the sum."""
    rooms = collections.defaultdict(collections.Counter)
    for path, text in sources(sys.argv[1] if len(sys.argv) > 1 else "").items():
        rooms[path.parts[0] if len(path.parts) > 1 else "(top)"] += measured(text)
    rooms["**all**"] = sum(rooms.values(), collections.Counter())
    sys.stdout.write("| room | files | lines of code | `Any` | `type: ignore` | files over 400 lines |\n")
    sys.stdout.write("|---|--:|--:|--:|--:|--:|\n")
    for room, found in rooms.items():
        cells = [f"{found[name]:,}" for name in ("files", "code", "Any", "ignored", "long")]
        sys.stdout.write(f"| {room} | {' | '.join(cells)} |\n")


if __name__ == "__main__":
    main()
