"""Write the reference pages from the code: ``python docs/reference.py`` (``--check`` writes nothing).

``docs/reference/cli.md`` has every verb with its options, ``docs/reference/api.md`` every public name with its signature and the
first paragraph of its docstring. ``tests/test_documentation.py`` fails where a page is not what the code says now.
"""

from __future__ import annotations

import argparse
import enum
import inspect
import re
import sys
import types
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

HERE = Path(__file__).parent
NOTE = "<!-- made by python docs/reference.py; do not edit -->"
MODULES = (
    "tisat",
    "tisat.watch",
    "tisat.alarms",
    "tisat.detectors",
    "tisat.metrics",
    "tisat.datasets",
    "tisat_bench.datasets",
)
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
        "Every verb has `--help`. Verbs that print figures have `--json`. Exit codes: 0 done, 1 bad input (said in one sentence), "
        "2 wrong usage, 130 interrupted. `--import module:Class` in any verb makes a detector of your own known by its name.",
        _table(("verb", "what it does"), ((f"[`{name}`](#tisat-{name})", about) for name, (_, about) in VERBS.items())),
    ]
    for name in VERBS:
        parts += _verb(f"tisat {name}", app.commands[name])
    parts += ["## How files are read", "These options are the same in every verb that says so above."]
    fit = {option.name: option for option in app.commands["fit"].params}
    parts.append(_options([fit[name] for name in READING]))
    return "\n\n".join(parts) + "\n"


def _verb(called: str, command: Any) -> Iterator[str]:
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
    if options:
        yield _options(options)
    if reading:
        yield "And the options of [how files are read](#how-files-are-read)."
    for name, below in sorted(verbs.items()):  # the order in which modules were imported says nothing
        if not below.hidden:
            yield from _verb(f"{called} {name}", below)


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
    more = (
        " May be given more than once." if getattr(one, "multiple", False) and "again" not in (one.help or "") else ""
    )
    return (one.help or "") + more


# -------------------------------------------------------------------------------------------------- names of Python


def api_page() -> str:
    """Every public name of the modules a user imports."""
    parts = [
        NOTE,
        "# Names of Python",
        "What you can import, with its signature and what it is. `help(name)` in Python has the whole text: parameters, what comes back, an example. "
        "Names that begin with `_` are not for you, and may change.",
        "A series is an array `(T, C)`: time is axis 0, a column is a channel. A higher score is more anomalous. Intervals are half-open. `Array`, `Integers` and `Flags` are numpy arrays of float64, int64 and bool.",
    ]
    seen: dict[int, str] = {}
    for name in MODULES:
        module = import_module(name)
        parts += [f"## {name}", _first_paragraph(module)]
        for public in sorted(_public(module), key=str.lower):
            if f"{name}.{public}" in MODULES:
                continue  # it has a section of its own
            parts += _name(f"{name}.{public}", getattr(module, public), seen)
    return "\n\n".join(parts) + "\n"


def _public(module: types.ModuleType) -> list[str]:
    names = dir(module) if module.__name__ in ("tisat", "tisat.detectors") else list(module.__all__)
    return [name for name in names if not name.startswith("_")]


def _name(called: str, value: Any, seen: dict[int, str]) -> Iterator[str]:
    """The section of a name: a class with its methods, a function, a module, a value."""
    yield f"### {called}"
    if isinstance(value, types.ModuleType):
        yield _first_paragraph(value)
        return
    if not callable(value):
        yield f"`{value!r}`"
        return
    if id(value) in seen:
        yield f"The same as [{seen[id(value)]}](#{seen[id(value)].lower().replace('.', '')})."
        return
    seen[id(value)] = called
    yield _code(f"{called.rpartition('.')[2]}{_signature(value)}")
    registered = _registered(value)
    about = _first_paragraph(value)
    yield about + (
        f" By name: `{registered}`; its page: [{registered}](../detectors/{registered}.md)." if registered else ""
    )
    if inspect.isclass(value) and not registered:
        rows = list(_members(value))
        if rows:
            yield _table(("method or property", "what it is"), rows)
    elif registered:
        own = [row for row in _members(value) if row[0] not in {known for known, _ in _members(Detector)}]
        if own:
            yield _table(("method or property of its own", "what it is"), own)


def _registered(value: Any) -> str | None:
    if not (inspect.isclass(value) and issubclass(value, Detector)) or value is Detector:
        return None
    found = registry.name_of(value)
    return found if (HERE / "detectors" / f"{found}.md").is_file() else None


def _members(cls: type) -> Iterator[tuple[str, str]]:
    """Public methods and properties that are written in tisat and say what they are."""
    for name in sorted(vars_of(cls)):
        member = inspect.getattr_static(cls, name)
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if isinstance(plain, property):
            home = getattr(plain.fget, "__module__", "")
            text, shown = inspect.getdoc(plain), f"`{name}`"
        elif inspect.isfunction(plain):
            home = plain.__module__
            text, shown = (
                inspect.getdoc(getattr(cls, name)),
                f"`{name}{_signature(getattr(cls, name), drop_self=True)}`",
            )
        else:
            continue
        if home.startswith("tisat") and text and name not in MACHINERY:
            yield shown, _sentence(text)


def vars_of(cls: type) -> set[str]:
    """Public names of a class and of the classes of ours it comes from."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("tisat")]
    return {name for base in ours for name in vars(base) if not name.startswith("_")}


def _signature(value: Any, *, drop_self: bool = False) -> str:
    if inspect.isclass(value) and not getattr(value.__init__, "__module__", "tisat").startswith("tisat"):
        return "(...)"  # scikit-learn's, and its version decides
    found = inspect.signature(value)
    given = [one.replace(annotation=_plain(one.annotation)) for one in found.parameters.values()]
    if drop_self and given and given[0].name == "self":
        given = given[1:]
    text = ", ".join(_parameter(one) for one in _marked(given))
    result = "" if inspect.isclass(value) else _plain(found.return_annotation)
    return f"({text})" + (f" -> {result}" if result and result is not inspect.Parameter.empty else "")


def _marked(given: list[inspect.Parameter]) -> Iterator[inspect.Parameter | None]:
    """Parameters, with None for the bare star before those that must be named."""
    starred = False
    for one in given:
        starred |= one.kind is inspect.Parameter.VAR_POSITIONAL
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield None
        yield one


def _parameter(one: inspect.Parameter | None) -> str:
    if one is None:
        return "*"
    star = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(one.kind, "")
    kind = "" if one.annotation in ("", inspect.Parameter.empty) else f": {one.annotation}"
    if one.default is inspect.Parameter.empty:
        return f"{star}{one.name}{kind}"
    shown = repr(one.default.value) if isinstance(one.default, enum.Enum) else repr(one.default)
    shown = re.sub(r"<(?:factory|function (\w+)[^>]*|[^>]* object at)[^>]*>", r"...", shown)
    return f"{one.name}{kind}{' = ' if kind else '='}{shown}"


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
    return _linked(" ".join(text.split("\n\n")[0].split()))


def _linked(text: str) -> str:
    """Docstring marks as Markdown: names in code."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _code(text: str) -> str:
    """A signature in a block, a parameter a line where it is long."""
    if len(text) > 100:
        head, _, rest = text.partition("(")
        depth, parts, current = 0, [], ""
        body, _, result = rest.rpartition(")")
        for sign in body:
            depth += (sign in "([{") - (sign in ")]}")
            if sign == "," and depth == 0:
                parts.append(current.strip())
                current = ""
            else:
                current += sign
        lines = "".join(f"    {part},\n" for part in [*parts, current.strip()] if part)
        text = f"{head}(\n{lines}){result}"
    return f"```py\n{text}\n```"


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def pages() -> dict[Path, str]:
    """Page -> its text, from the code as it is."""
    return {HERE / "reference" / "cli.md": cli_page(), HERE / "reference" / "api.md": api_page()}


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
