"""``tisat show``: what a model file is, without guessing from its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tisat.cli._output import JsonFlag, print_json, print_table

LISTED = 12  # channel names shown in a table; --json gives them all


def describe(model: Path) -> dict[str, Any]:
    """What the file holds, after its checksum, names and shapes were checked."""
    from tisat.artefact import read_artefact
    from tisat.base import load

    detector = load(model)
    document, tensors = read_artefact(model)
    weights = [array for name, array in tensors.items() if name.startswith("network.")]
    history = getattr(detector, "history_", ())
    described: dict[str, Any] = {
        "file": str(model),
        "bytes": model.stat().st_size,
        "detector": document["detector"],
        "parameters": {name: getattr(detector, name) for name in detector.get_params(deep=False)},
        "channels": detector.channels_,
        "trained_on": detector.trained_on_,
        "nominal_points": len(detector.nominal_),
        "nominal_source": detector.nominal_source_,
        "nominal_level": detector.nominal_level(),
        "context": detector._context(),
    }
    if weights:
        described["weights"] = sum(array.size for array in weights)
        described["epochs"] = len(history)
        described["losses"] = history[-1] if history else {}
        described["training_seconds"] = getattr(detector, "training_seconds_", None)
    return described


def show(
    model: Annotated[Path, typer.Argument(help="A fitted detector, as written by tisat fit.", metavar="MODEL")],
    json: JsonFlag = False,
) -> None:
    """Say what a model is: detector, parameters, trained on what and when, sizes, channels."""
    described = describe(model)
    if json:
        print_json(described)
        return
    trained = described["trained_on"]
    channels = described["channels"]
    named = ", ".join(channels[:LISTED]) + (f" and {len(channels) - LISTED} more" if len(channels) > LISTED else "")
    span = f", {trained['start']} to {trained['stop']}" if trained["start"] else ""
    rows = [
        ("detector", described["detector"]),
        ("parameters", ", ".join(f"{k}={v!r}" for k, v in described["parameters"].items() if v is not None)),
        ("channels", f"{len(channels)}: {named}"),
        ("trained on", f"{trained['rows']:,} rows of {', '.join(map(repr, trained['series']))}{span}"),
        ("rows used", f"{trained['rows_used']:,}; {trained['missing_values']:,} values were missing"),
        ("fitted at", f"{trained['fitted_at']} by tisat {trained['tisat']}"),
        ("nominal points", f"{described['nominal_points']:,} from the {described['nominal_source']}"),
        ("nominal level", f"{described['nominal_level']:.4g} (99 in 100 nominal scores are below)"),
        ("looks back", "over all earlier rows" if described["context"] is None else f"{described['context']} rows"),
        ("file", f"{described['bytes']:,} bytes"),
    ]
    if "weights" in described:
        losses = ", ".join(f"{k} {v:.4g}" for k, v in described["losses"].items() if k != "epoch")
        rows.append(("network", f"{described['weights']:,} numbers, {described['epochs']} epochs; last: {losses}"))
    print_table(described["file"], ("what", "value"), rows)
