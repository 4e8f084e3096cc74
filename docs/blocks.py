"""Run the code of a page: its python blocks in one session, its console blocks as commands, and compare what they print.

python docs/blocks.py                        # run docs/start.md and write what was printed back into it
python docs/blocks.py --check docs/4-alarms.md

A ``text`` block right below a python or console block is what it prints. ``<!-- needs data -->`` above a block says that it
needs the data sets of others (TISAT_DATA); ``<!-- not run: why -->`` that it is to be read only; ``<!-- with messages -->`` that what goes to
standard error is shown too, and ``<!-- ends with 1 -->`` that the command is refused with this exit code, and its sentence shown.

Figures are compared too: numbers may differ by 1 % or one unit of their last digit, times and dates not at all. ``<!-- within 20 % -->`` above
a ``text`` block gives it another tolerance, ``<!-- figures vary: why -->`` leaves them out.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tisat.errors import CalibrationWarning

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(
    r"^(?:<!-- (?P<flag>needs data|not run[^>]*|with messages|ends with \d+|within \d+ %|figures vary[^>]*) -->\n+)?```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.M | re.S,
)
FIGURE = re.compile(r"[-+]?\d[\d.,:T-]*(?:e[-+]?\d+)?")
WIDTH = "120"
SHARE = 0.01  # by which a figure may differ
FOLD = 100  # characters of a sentence on a page


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str  # python, console, text, ...
    code: str
    flag: str  # "", "needs data", "not run: why", "with messages" or "ends with 1"
    line: int
    start: int  # of the code, as characters of the page
    stop: int


def blocks_of(text: str) -> list[Block]:
    """The blocks of a page, in order."""
    return [
        Block(
            one["language"],
            one["code"],
            one["flag"] or "",
            text.count("\n", 0, one.start("code")) + 1,
            one.start("code"),
            one.end("code"),
        )
        for one in FENCE.finditer(text)
    ]


@dataclass(frozen=True)
class Printed:
    """What a block printed, and the block below it that says so."""

    block: Block
    output: str
    said: Block | None

    @property
    def agrees(self) -> bool:
        """Whether the page says what was printed: the same words, and the same figures within the block's tolerance."""
        if self.said is None:
            return True
        if self.said.flag.startswith("figures vary"):
            return words_of(self.said.code) == words_of(self.output)
        within = re.fullmatch(r"within (\d+) %", self.said.flag)
        return same_text(self.said.code, self.output, int(within[1]) / 100 if within else SHARE)


def same_text(there: str, here: str, share: float = SHARE) -> bool:
    """Whether two texts have the same words, and the same figures within a share."""
    if words_of(there) != words_of(here):
        return False
    pairs = zip(FIGURE.findall(there), FIGURE.findall(here), strict=True)
    return all(same_figure(old, new, share) for old, new in pairs)


def words_of(text: str) -> list[str]:
    """The words, without figures and frames, wherever lines were broken."""
    return re.sub(r"[┏┳┓┡╇┩┗┻┛└┴┘├┼┤─━│┃╭╮╰╯]", " ", FIGURE.sub("#", text)).split()


def same_figure(there: str, here: str, share: float) -> bool:
    """Whether two figures are the same: within a share of them or a unit of their last digit; times and dates to the letter."""
    numbers = [re.fullmatch(r"[-+]?[\d,]*(?:\.(\d*))?(?:e[-+]?\d+)?", one.rstrip(".,:-")) for one in (there, here)]
    if not all(numbers):
        return there == here
    old, new = (float(found[0].replace(",", "")) for found in numbers)
    unit = 0.0 if numbers[0][1] is None else 10.0 ** -len(numbers[0][1])
    return abs(old - new) <= max(share * abs(old), 1.001 * unit)


def run_page(text: str, folder: Path, *, data: bool = False, page: str = "") -> Iterator[Printed]:
    """Run a page's blocks in ``folder``, one after the other."""
    session: dict[str, Any] = {"__name__": "__page__"}
    found = blocks_of(text)
    with contextlib.chdir(folder):
        for index, block in enumerate(found):
            if block.language not in ("python", "console") or block.flag.startswith("not run"):
                continue
            if block.flag == "needs data" and not data:
                continue
            below = found[index + 1] if index + 1 < len(found) else None
            between = "" if below is None else text[block.stop : below.start]
            adjacent = (
                below is not None and below.language == "text" and not re.sub(r"<!--[^>]*-->|```\w*|\s", "", between)
            )
            run = _python if block.language == "python" else _console
            yield Printed(block, run(block, session, page), below if adjacent else None)


def _python(block: Block, session: dict[str, Any], page: str) -> str:
    out = io.StringIO()
    code = compile("\n" * (block.line - 1) + block.code, page or "page", "exec")
    with warnings.catch_warnings(), contextlib.redirect_stdout(out):
        warnings.simplefilter("ignore", CalibrationWarning)
        exec(code, session)  # noqa: S102  the documentation's own code
    return out.getvalue()


def _console(block: Block, _session: dict[str, Any], page: str) -> str:
    """Run every line that begins with ``$``; tisat is this one."""
    printed = []
    ends = re.fullmatch(r"ends with (\d+)", block.flag)
    told, expected = block.flag == "with messages" or ends is not None, int(ends[1]) if ends else 0
    environment = {
        **os.environ,
        "COLUMNS": WIDTH,
        "TERM": "dumb",
        "PYTHONPATH": os.pathsep.join(
            str(ROOT / "packages" / name / "src") for name in ("tisat", "tisat-serve", "tisat-bench")
        ),
    }
    for line in block.code.splitlines():
        if line.startswith("$ "):
            alone, _, lines = line.partition(" | sed -n ")  # a few lines of a long answer
            some = re.fullmatch(r"(\d+),(\d+)p", lines)
            ours = alone.startswith("$ tisat ") and not re.search(r"[|<>;&'\"*]", alone) and (some or not lines)
            code, output, errors = (
                _here(alone.split()[2:], environment, told=told) if ours else _shell(line[2:], environment, told=told)
            )
            if ours and some:
                output = "".join(output.splitlines(keepends=True)[int(some[1]) - 1 : int(some[2])])
            if code != expected:
                raise RuntimeError(f"{page}, line {block.line}: {line!r} ended with {code}:\n{errors or output}")
            printed.append(output)
    return _folded("".join(printed)) if told else "".join(printed)


def _here(words: list[str], environment: dict[str, str], *, told: bool) -> tuple[int, str, str]:
    """A command of ours without a shell's signs, in this process: it need not start and import everything again."""
    from unittest import mock

    from tisat.cli import main as tisat

    out, errors, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.dict(os.environ, environment),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out if told else errors),
    ):
        warnings.simplefilter("ignore")
        try:
            tisat(words)
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), errors.getvalue()


def _shell(line: str, environment: dict[str, str], *, told: bool) -> tuple[int, str, str]:
    """Any other command, by the shell; tisat is this one."""
    command = re.sub(r"(^|\| )tisat ", rf"\1{sys.executable} -m tisat ", line)
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if told else subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr or ""


def _folded(text: str) -> str:
    """Sentences broken as a terminal would; tables and short lines stay."""
    return "".join(
        "\n".join(textwrap.wrap(line, FOLD)) + "\n"
        if len(line) > FOLD and not re.match(r"[┏┃┡│└]", line)
        else line + "\n"
        for line in text.splitlines()
    )


def written(text: str, printed: Sequence[Printed]) -> str:
    """The page with what was printed."""
    for one in sorted((p for p in printed if p.said is not None), key=lambda p: -p.said.start):
        lines = "".join(line.rstrip() + "\n" for line in one.output.splitlines())
        text = text[: one.said.start] + lines + text[one.said.stop :]
    return text


def main() -> int:
    """Run pages; write what they print, or only say where they are wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, default=[ROOT / "docs" / "start.md"])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a page is wrong")
    given = parser.parse_args()
    wrong = 0
    for page in given.pages:
        text = page.read_text()
        with tempfile.TemporaryDirectory() as folder:
            printed = list(run_page(text, Path(folder), data=bool(os.environ.get("TISAT_DATA")), page=page.name))
        wrong += sum(not one.agrees for one in printed)
        if not given.check:
            page.write_text(written(text, printed))
        print(
            f"{page.name}: {len(printed)} blocks run, {sum(not one.agrees for one in printed)} printed something else"
        )
    return int(given.check and wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
