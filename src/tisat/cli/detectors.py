"""``tisat detectors``: what there is to fit."""

from __future__ import annotations

import inspect

from tisat.cli._output import JsonFlag, print_json, print_table


def detectors(json: JsonFlag = False) -> None:
    """List the detectors by name, with what each is in one line."""
    from tisat import registry
    from tisat.errors import MissingExtraError

    rows = []
    for name in registry.names():
        try:
            summary = (inspect.getdoc(registry.resolve(name)) or "").partition("\n")[0]
        except MissingExtraError as error:
            summary = str(error)
        rows.append({"name": name, "what": summary})
    if json:
        print_json(rows)
    else:
        print_table("Detectors", ("name", "what it is"), [(row["name"], row["what"]) for row in rows])
