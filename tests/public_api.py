"""List the public names of the three packages with their signatures: ``python tests/public_api.py`` writes ``tests/public_api.txt``.

Public is what ``__all__`` lists (docs/releases.md). ``tests/test_public_names.py`` fails where the file is not what the code says: whoever
changes a public name sees it, writes the file again and puts the change into the changelog.
"""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, cast

FILE = Path(__file__).with_suffix(".txt")
MODULES = (
    "tisat",
    "tisat.alarms",
    "tisat.alarms.rules",
    "tisat.batch",
    "tisat.datasets",
    "tisat.detectors",
    "tisat.errors",
    "tisat.metrics",
    "tisat.watch",
    "tisat_bench.datasets",
    "tisat_bench.tsb_ad",
)
HEAD = "# Public names and signatures. Written by: python tests/public_api.py"


def _signature(found: Any) -> str:
    """A signature without annotations: types may get more precise, names and defaults are the promise."""
    try:
        plain = inspect.signature(found)
    except (TypeError, ValueError):
        return ""
    parameters = [one.replace(annotation=inspect.Parameter.empty) for one in plain.parameters.values()]
    text = str(plain.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    return re.sub(r"<(?:function|class|object|module)?[^<>]*?( at 0x[0-9a-f]+)?>", "...", text)


def _members(name: str, cls: type) -> list[str]:
    """A class with its constructor, and its own public methods and properties; those it inherits stand where they are."""
    lines = [f"{name}{'' if issubclass(cls, BaseException | enum.Enum) else _signature(cls)}"]
    for member, found in sorted(vars(cls).items()):
        if member.startswith("_"):
            continue
        plain = found.__func__ if isinstance(found, classmethod | staticmethod) else found
        if inspect.isfunction(plain):
            lines.append(f"{name}.{member}{_signature(plain)}")
        elif isinstance(found, property):
            lines.append(f"{name}.{member}")
    return lines


def public_functions() -> Iterator[tuple[str, FunctionType]]:
    """Every public function and every public method that a class writes itself, by name, once."""
    for module in MODULES:
        for name, found in ((name, getattr(import_module(module), name)) for name in import_module(module).__all__):
            if inspect.isfunction(found):
                yield f"{module}.{name}", found
            elif inspect.ismodule(found) or (inspect.isclass(found) and found.__module__.startswith("tisat")):
                for member, inner in vars(found).items():
                    plain = inner.__func__ if isinstance(inner, classmethod | staticmethod) else inner
                    plain = plain.fget if isinstance(plain, property) else plain
                    ours = inspect.isfunction(plain) and plain.__module__ in (
                        found.__name__,
                        found.__module__ if inspect.isclass(found) else "",
                    )
                    if ours and (member == "__init__" or not member.startswith("_")):
                        yield f"{module}.{name}.{member}", cast(FunctionType, plain)


def public_names() -> str:
    """Every public name, one on a line, in order."""
    lines = []
    for module in MODULES:
        package = import_module(module)
        for name in sorted(package.__all__):
            found = getattr(package, name)
            whole = f"{module}.{name}"
            if inspect.isclass(found):
                lines += _members(whole, found)
            elif callable(found):
                lines.append(f"{whole}{_signature(found)}")
            else:
                lines.append(whole)
    return "\n".join([HEAD, *lines, ""])


if __name__ == "__main__":
    FILE.write_text(public_names())
    print(f"{FILE.name}: written")
