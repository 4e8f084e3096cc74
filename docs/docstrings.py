"""Read docstrings: parameters with types, what comes back, an example. ``python docs/docstrings.py`` lists the gaps of public names.

Fields of a dataclass are documented by the comment behind each, types by their annotations, so a docstring need not repeat them.
"""

from __future__ import annotations

import enum
import inspect
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from typing import Any

MODULES = ("tisat", "tisat.watch", "tisat.alarms", "tisat.detectors", "tisat.metrics", "tisat.datasets", "tisat.datasets.synthetic",
           "tisat_bench", "tisat_bench.datasets", "tisat_serve")  # fmt: skip
HEAD = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.M)


@dataclass(frozen=True)
class Sections:
    """What a docstring says of a name."""

    parameters: list[tuple[str, str, str]]  # name, type, text
    returns: str
    example: str


def sections_of(value: Any) -> Sections:
    """The sections of a class or function."""
    text = inspect.getdoc(value) or ""
    heads = list(HEAD.finditer(text))
    ends = [*(head.start() for head in heads), len(text)][1:]
    parts = {head[1]: text[head.end() : end].strip("\n") for head, end in zip(heads, ends, strict=True)}
    written = dict(_entries(parts.get("Parameters", parts.get("Attributes", ""))))
    comments = _comments(value) if is_dataclass(value) else {}
    rows = []
    for name, kind in _parameters(value):
        at, said = written.get(name, ("", comments.get(name, "")))
        rows.append((f"`{name}`", at or kind, _plain(said)))
    example = re.sub(r"^(>>>|\.\.\.) ?$\n?", "", parts.get("Examples", ""), flags=re.M).strip()
    returns = parts.get("Returns", parts.get("Yields", ""))
    return Sections(rows, _plain(returns.partition("\n    ")[2] or returns), example)


def _entries(text: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Name -> (type, text) of a numpy section; several names may share a line."""
    for entry in re.split(r"\n(?=\S)", text):
        head, _, said = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        for name in names.split(","):
            more = kind.partition("; ")[2]  # a word behind the type is the text where there is no other
            yield name.strip().lstrip("*"), (kind.partition("; ")[0].strip(), " ".join(said.split()) or more)


def _parameters(value: Any) -> Iterator[tuple[str, str]]:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return
    for one in found.parameters.values():
        if one.name != "self":
            kind = one.annotation if isinstance(one.annotation, str) else getattr(one.annotation, "__name__", "")
            yield one.name, "" if kind == "_empty" else str(kind).replace(" | ", "|")


def _comments(cls: type) -> dict[str, str]:
    """Field -> the comment behind it, of the class and those it comes from."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("tisat"):
            source = inspect.getsource(base)
            found |= dict(re.findall(r"^    (\w+): [^#\n]*#\s*(.+)$", source, flags=re.M))
    return found


def _plain(text: str) -> str:
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", " ".join(text.split()))
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def public_names() -> Iterator[tuple[str, Any]]:
    """Every class and function of ours in the modules a user imports, once."""
    seen = set()
    for name in MODULES:
        module = import_module(name)
        names = getattr(module, "__all__", None) or dir(module)
        for public in sorted(one for one in names if not one.startswith("_")):
            value = getattr(module, public)
            ours = getattr(value, "__module__", "").startswith("tisat") and callable(value)
            if ours and not isinstance(value, types.ModuleType) and id(value) not in seen:
                seen.add(id(value))
                yield f"{name}.{public}", value


def gaps_of(value: Any) -> list[str]:
    """What is missing: parameters without a text, types, a result, an example."""
    if inspect.isclass(value) and issubclass(value, enum.Enum | BaseException):
        return []
    found = sections_of(value)
    gaps = [f"parameter {name}" for name, _, said in found.parameters if not said]
    gaps += [f"type of {name}" for name, kind, _ in found.parameters if not kind]
    if inspect.isfunction(value) and not found.returns and inspect.signature(value).return_annotation != "None":
        gaps.append("returns")
    return gaps + ([] if found.example else ["example"])


def main() -> int:
    """Print the gaps and their number."""
    total = names = 0
    for name, value in public_names():
        gaps = gaps_of(value)
        total, names = total + len(gaps), names + 1
        if gaps:
            sys.stdout.write(f"{name}: {', '.join(gaps)}\n")
    sys.stdout.write(f"{names} names, {total} gaps\n")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
