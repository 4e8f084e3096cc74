"""``tisat detectors``: what there is to fit."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from tisat.cli._output import JsonFlag, print_json, print_table


def first_line(target: str) -> str:
    """The first line of a class's docstring; the package's own are read from their files, so that nothing heavy is imported.

    Examples
    --------
    >>> first_line("tisat.detectors.tisat:TiSAT")
    'Forecast error of a sparse-attention transformer (Time Series Anomaly Transformer).'
    """
    module, _, name = target.partition(":")
    package, *rest = module.split(".")
    if package == "tisat":
        source = Path(__file__).resolve().parents[1].joinpath(*rest).with_suffix(".py").read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return (ast.get_docstring(node) or "").partition("\n")[0]
    from importlib import import_module

    return (inspect.getdoc(getattr(import_module(module), name)) or "").partition("\n")[0]


def detectors(json: JsonFlag = False) -> None:
    """List the detectors by name, with what each is in one line."""
    from tisat import registry
    from tisat.errors import MissingExtraError

    rows = []
    for name in registry.names():
        try:
            summary = first_line(registry.DETECTORS[name])
        except MissingExtraError as error:
            summary = str(error)
        rows.append({"name": name, "what": summary})
    if json:
        print_json(rows)
    else:
        print_table("Detectors", ("name", "what it is"), [(row["name"], row["what"]) for row in rows])
