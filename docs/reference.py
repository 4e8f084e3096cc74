"""Write the reference pages from the code: ``python docs/reference.py`` (``--check`` writes nothing).

``docs/reference/cli.md`` has every verb with its options, ``docs/reference/api.md`` every public name with the parameters, result and
example of its docstring (``docs/docstrings.py``). ``tests/test_documentation.py`` fails where a page is not what the code says now.
"""

from __future__ import annotations

import argparse
import enum
import inspect
import re
import sys
import types
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import typer.main

from tisat import registry
from tisat.cli import ABOUT, VERBS, build
from tisat.cli.help_texts import EXAMPLES
from tisat.cli.options import READING
from tisat.detectors.base import Detector

sys.path.insert(0, str(Path(__file__).parent))
from docstrings import public_names, sections_of  # beside this file

HERE = Path(__file__).parent
NOTE = "<!-- made by python docs/reference.py; do not edit -->"
MODULES = (
    "tisat",
    "tisat.watch",
    "tisat.alarms",
    "tisat.detectors",
    "tisat.metrics",
    "tisat.datasets",
    "tisat.datasets.synthetic",
)
BENCH = ("tisat_bench.datasets",)  # for experiments: in the repository, not on the site
# What is said once for all, with the class that has it first; not again with those that inherit or wrap it.
MACHINERY = {"get_metadata_routing", "set_score_request", "set_fit_request", "set_decision_function_request"}


# ------------------------------------------------------------------------------------------------ the command line


def cli_page() -> str:
    """Every verb with its arguments and options."""
    app = typer.main.get_command(build())
    parts = [
        NOTE,
        "# The command line",
        f"{ABOUT}",
        "Every verb has `--help`. Verbs that print figures have `--json`. Exit codes: 0 done, 1 bad input (explained in one sentence), "
        "2 wrong usage, 130 interrupted. `--import module:Class` in any verb makes a detector of your own known by its name.",
        _table(("verb", "what it does"), ((f"[`{name}`](#tisat-{name})", about) for name, (_, about) in VERBS.items())),
    ]
    many = _common_options(app)
    for name in VERBS:
        parts += _verb(f"tisat {name}", app.commands[name], many)
    parts += [
        "## Options of many verbs",
        _options(list(many.values())),
        "## How files are read",
        "These options are the same in every verb that says so above.",
    ]
    fit = {option.name: option for option in app.commands["fit"].params}
    parts.append(_options([fit[name] for name in READING]))
    return "\n\n".join(parts) + "\n"


def _common_options(app: Any) -> dict[tuple[str, str], Any]:
    """Options that two verbs or more have in the same words."""
    every = [one for command in _commands(app) for one in command.params if one.param_type_name == "option"]
    every = [
        one for one in every if one.name not in READING and one.name != "help" and not getattr(one, "hidden", False)
    ]
    counts = Counter((one.name, one.help) for one in every)
    return {(one.name, one.help): one for one in every if counts[one.name, one.help] >= 2}


def _commands(app: Any) -> Iterator[Any]:
    for command in app.commands.values():
        yield command
        if hasattr(command, "commands"):
            yield from _commands(command)


def _verb(called: str, command: Any, many: dict[tuple[str, str], Any]) -> Iterator[str]:
    """The section of a verb, and of its verbs where it has some."""
    yield f"{'#' * called.count(' ')}# {called}"
    yield inspect.cleandoc(command.help or "").replace("\b", "").strip()
    if called.removeprefix("tisat ") in EXAMPLES:
        yield f"Example: `{EXAMPLES[called.removeprefix('tisat ')]}`"
    given = [one for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]
    arguments = [one for one in given if one.param_type_name == "argument"]
    options = [one for one in given if one.param_type_name == "option"]
    reading = {"time", "delimiter", "dedup"} <= {one.name for one in options}
    if reading:
        options = [one for one in options if one.name not in READING]
    verbs = getattr(command, "commands", {})
    yield f"```sh\n{' '.join([called, *map(_usage, arguments), *_needed(options), *(['[OPTIONS]'] if options else []), *(['VERB'] if verbs else [])])}\n```"
    if arguments:
        yield _table(
            ("argument", "what it is"), ((f"`{_value(one)}`", _help(one)) for one in arguments if _help(one).strip())
        )
    own = [one for one in options if (one.name, one.help) not in many]
    if own:
        yield _options(own)
    others = [f"`{one.opts[0]}`" for one in options if one not in own]
    if others:
        yield f"And [{', '.join(others)}](#options-of-many-verbs)."
    if reading:
        yield "And the options of [how files are read](#how-files-are-read)."
    for name, below in sorted(verbs.items()):  # the order in which modules were imported says nothing
        if not below.hidden:
            yield from _verb(f"{called} {name}", below, many)


def _options(options: list[Any]) -> str:
    return _table(("option", "what it does", "default"), ((_names(one), _help(one), _default(one)) for one in options))


def _value(one: Any) -> str:
    return str(one.metavar or one.name.upper())


def _usage(one: Any) -> str:
    name = _value(one).rstrip(".") + ("..." if one.nargs == -1 else "")
    return name if one.required else f"[{name}]"


def _needed(options: list[Any]) -> list[str]:
    return [f"{one.opts[0]} {_value(one)}" for one in options if one.required]


def _names(one: Any) -> str:
    value = "" if one.is_flag else f" {_value(one)}"
    return ", ".join(f"`{name}{value}`" for name in (*one.opts, *one.secondary_opts))


def _default(one: Any) -> str:
    if one.required:
        return "must be given"
    default = one.default
    if default is None or default == "" or default is False or callable(default) or default in ([], ()):
        return ""
    return f"`{default.value if isinstance(default, enum.Enum) else default}`"


def _help(one: Any) -> str:
    more = " Repeatable." if getattr(one, "multiple", False) and "again" not in (one.help or "") else ""
    return (one.help or "") + more


# -------------------------------------------------------------------------------------------------- names of Python


# The names a user needs first, in the order in which they are met.
FIRST = (
    "tisat.Series", "tisat.Watch", "tisat.Alarms", "tisat.Alarm", "tisat.Monitor", "tisat.watch.RowResult", "tisat.Fleet",
    "tisat.alarms.Calibration", "tisat.make", "tisat.suggest", "tisat.show_anomalies", "tisat.metrics.evaluate_alarms",
)  # fmt: skip


def api_page() -> str:
    """Every public name of the modules a user imports."""
    first = ((f"[`{name}`](#{_anchor(name)})", _first_paragraph(_found(name))) for name in FIRST)
    parts = [
        NOTE,
        "# Python reference",
        "Every public name with its parameters, result and an example. Names that begin with `_` are private.",
        "A series is an array `(T, C)`: time is axis 0, a column is a channel. A higher score is more anomalous. Intervals are half-open. `Array`, `Integers` and `Flags` are numpy arrays of float64, int64 and bool.",
        "## The twelve names to start with",
        _table(("name", "what it is"), first),
    ]
    return "\n\n".join([*parts, *_modules(MODULES)]) + "\n"


def bench_page() -> str:
    """Every public name of the data sets of the benchmark."""
    return "\n\n".join([NOTE, "# Python reference of tisat-bench", *_modules(BENCH)]) + "\n"


def _modules(names: tuple[str, ...]) -> list[str]:
    """The sections of modules, after the parameters that many of their names share."""
    shared, parts = _shared(), []
    parts += [
        "## Common parameters",
        _table(("parameter", "type", "what it is"), ((name, kind, said) for (name, said), kind in shared.items())),
    ]
    seen: dict[int, str] = {}
    for name in names:
        module = import_module(name)
        parts += [f"## {name}", _first_paragraph(module)]
        detectors, again = [], []
        for public in sorted(_public(module), key=str.lower):
            value = getattr(module, public)
            if f"{name}.{public}" in MODULES or isinstance(value, types.ModuleType):
                continue  # it has a section of its own
            if id(value) in seen:
                again.append(f"[`{public}`](#{_anchor(seen[id(value)])})")
                continue
            known = _registered(value)
            if known:
                seen[id(value)] = f"{name}.{public}"
                detectors.append(
                    (f"`{public}`", f"[{known}](../detectors/{known}.md)", _sentence(inspect.getdoc(value) or ""))
                )
            else:
                parts += _name(f"{name}.{public}", value, seen, set(shared))
        if again:
            parts.append(f"Also here, described above: {', '.join(again)}.")
        if detectors:
            parts.append("### Detectors")
            parts.append(
                "All are classes with the methods of `tisat.Detector`; parameters and an example are on the page of each."
            )
            parts.append(_table(("class", "by name", "what it is"), detectors))
    return parts


def _shared() -> dict[tuple[str, str], str]:
    """Parameters that four names or more have with the same words: said once for all."""
    rows = [
        row for _, value in public_names() if not _registered(value) for row in sections_of(value).parameters if row[2]
    ]
    counts = Counter((name, said) for name, _, said in rows)
    kinds = {(name, said): kind for name, kind, said in rows}
    return {pair: kinds[pair] for pair, count in counts.items() if count >= 4}


def _anchor(name: str) -> str:
    return name.lower().replace(".", "")


def _found(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def _public(module: types.ModuleType) -> list[str]:
    names = dir(module) if module.__name__ in ("tisat", "tisat.detectors") else list(module.__all__)
    return [name for name in names if not name.startswith("_")]


def _name(called: str, value: Any, seen: dict[int, str], common: set[tuple[str, str]]) -> Iterator[str]:
    """The section of a name: a class with its methods, a function, a value."""
    yield f"### {called}"
    if not callable(value):
        yield f"`{value!r}`" if not isinstance(value, dict) else f"Names: {', '.join(map(str, value))}."
        return
    seen[id(value)] = called
    sections = sections_of(value)
    result = "" if inspect.isclass(value) else _plain(inspect.signature(value).return_annotation)
    yield _first_paragraph(value)
    own = [row for row in sections.parameters if (row[0], row[2]) not in common]
    if own:
        yield _table(("parameter", "type", "what it is"), own)
    if len(own) < len(sections.parameters):
        yield f"{'And t' if own else 'T'}he common {', '.join(row[0] for row in sections.parameters if row not in own)}."
    if sections.returns:
        kind = f"`{result}`" if result and result is not inspect.Parameter.empty else ""
        yield f"Returns {kind}: {sections.returns}"
    if sections.example:
        yield f"```pycon\n{sections.example}\n```"
    if inspect.isclass(value):
        rows = list(_members(value))
        if rows:
            yield _table(("method or property", "what it is"), rows)


def _registered(value: Any) -> str | None:
    if not (inspect.isclass(value) and issubclass(value, Detector)) or value is Detector:
        return None
    found = registry.name_of(value)
    return found if (HERE / "detectors" / f"{found}.md").is_file() else None


def _members(cls: type) -> Iterator[tuple[str, str]]:
    """Public methods and properties that are written in tisat and say what they are."""
    for name in sorted(name for name in vars(cls) if not name.startswith("_")):
        member = inspect.getattr_static(cls, name)
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if isinstance(plain, property):
            home = getattr(plain.fget, "__module__", "")
            text, shown = inspect.getdoc(plain), f"`{name}`"
        elif inspect.isfunction(plain):
            home = plain.__module__
            text, shown = (
                inspect.getdoc(getattr(cls, name)),
                f"`{name}({', '.join(one for one in inspect.signature(plain).parameters if one not in ('self', 'cls'))})`",
            )
        else:
            continue
        if home.startswith("tisat") and text and name not in MACHINERY:
            yield shown, _sentence(text)


def _plain(annotation: Any) -> Any:
    """An annotation without module names, as its source has it."""
    if annotation is inspect.Parameter.empty or annotation is None:
        return inspect.Parameter.empty if annotation is inspect.Parameter.empty else "None"
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text).strip("'\"")


# ------------------------------------------------------------------------------------------------------------- text


def _first_paragraph(value: Any) -> str:
    return _linked(
        " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split()).removesuffix("::") or "(no words yet)"
    )


def _sentence(text: str) -> str:
    first = " ".join(text.split("\n\n")[0].split())
    return _linked(re.split(r"(?<=[a-z`)])[.;:] ", first)[0].rstrip(".;:"))


def _linked(text: str) -> str:
    """Docstring marks as Markdown: names in code."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def pages() -> dict[Path, str]:
    """Page -> its text, from the code as it is."""
    return {
        HERE / "reference" / "cli.md": cli_page(),
        HERE / "reference" / "api.md": api_page(),
        HERE / "lab" / "api-bench.md": bench_page(),
    }


def main() -> int:
    """Write the pages, or say which are old."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a page is old")
    given = parser.parse_args()
    old = [page for page, text in pages().items() if not page.is_file() or page.read_text(encoding="utf-8") != text]
    if not given.check:
        for page, text in pages().items():
            page.parent.mkdir(exist_ok=True)
            page.write_text(text, encoding="utf-8")
    print(*(f"{page.name}: {'old' if given.check else 'written'}" for page in old), sep="\n")
    return int(given.check and bool(old))


if __name__ == "__main__":
    sys.exit(main())
