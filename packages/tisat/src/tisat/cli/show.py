"""``tisat detectors`` and ``tisat show``: what there is to fit, and what a model file is, without guessing from its name."""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path
from typing import Annotated

import typer

from tisat.cli.output import JsonFlag, print_json, print_table
from tisat.utils.types import JsonDict

WIDTH = 58  # of the names of channels: the table then fits 80 columns


def describe(model: Path) -> JsonDict:
    """Describe a model file after checking its checksum, names and shapes."""
    from tisat.detectors.loading import load
    from tisat.persistence.model_file import read_artefact
    from tisat.watch import Watch
    from tisat.watch.protocols import fitted_counters

    detector = load(model)
    document, tensors = read_artefact(model)
    watch = Watch.load(model) if "watch" in document else None
    weights = [array for name, array in tensors.items() if name.startswith("network.")]
    history = getattr(detector, "history_", ())
    described: JsonDict = {
        "file": str(model),
        "bytes": model.stat().st_size,
        "detector": document["detector"],
        "parameters": {name: getattr(detector, name) for name in detector.get_params(deep=False)},
        "channels": detector.channels_,
        "counters": list(fitted_counters(detector)),
        "trained_on": detector.trained_on_,
        "normal_points": len(detector.normal_),
        "normal_source": detector.normal_source_,
        "normal_level": detector.normal_level(),
        "context": detector._context(),
        "budget": None if watch is None else watch.calibration.budget,
        "threshold": None if watch is None else watch.calibration.threshold,
        "patterns": [] if watch is None else [str(one) for one in watch.patterns],
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
    listing = textwrap.fill(", ".join(channels), WIDTH, break_long_words=False, break_on_hyphens=False)
    first, last = (str(trained[end]).removesuffix(".000000000").replace("T", " ") for end in ("start", "stop"))
    span = f", {first} to {last}" if trained["start"] else ""
    rows = [
        ("detector", described["detector"]),
        ("parameters", ", ".join(f"{k}={v!r}" for k, v in described["parameters"].items() if v is not None)),
        ("channels", f"{len(channels)}: {listing}"),
        *(
            [("counters", f"{', '.join(described['counters'])}: by their growth per row")]
            if described["counters"]
            else []
        ),
        ("trained on", f"{trained['rows']:,} rows of {', '.join(map(repr, trained['series']))}{span}"),
        ("rows used", f"{trained['rows_used']:,}; {trained['missing_values']:,} values were missing"),
        ("fitted at", f"{trained['fitted_at']} by tisat {trained['tisat']}"),
        ("normal points", f"{described['normal_points']:,}, {described['normal_source']}"),
        ("normal level", f"{described['normal_level']:.4g} (99 in 100 normal scores are below)"),
        ("looks back", "over all earlier rows" if described["context"] is None else f"{described['context']} rows"),
        ("file", f"{described['bytes']:,} bytes"),
    ]
    if described["budget"] is not None:
        rows.insert(1, ("budget", f"{described['budget']}; threshold {described['threshold']:.4g}"))
    rows += [("known alarms", words) for words in described["patterns"]]
    if "weights" in described:
        losses = ", ".join(f"{k} {v:.4g}" for k, v in described["losses"].items() if k != "epoch")
        rows.append(("network", f"{described['weights']:,} numbers, {described['epochs']} epochs; last: {losses}"))
    print_table(described["file"], ("what", "value"), rows)


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
