"""``tisat fit``: learn what is nominal from a file, and keep it in one."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from tisat.cli._output import JsonFlag, print_json


def read_settings(settings: list[str]) -> dict[str, Any]:
    """``["window=50", "anchor=last"]`` as keyword arguments: Python literals where they are, text otherwise.

    Examples
    --------
    >>> read_settings(["window=50", "anchor=last", "dropout=0.1", "filters=(8, 16)"])
    {'window': 50, 'anchor': 'last', 'dropout': 0.1, 'filters': (8, 16)}
    """
    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"--set must look like name=value. Got {setting!r} instead.")
        try:
            values[name.strip()] = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            values[name.strip()] = {"true": True, "false": False}.get(text.strip().lower(), text.strip())
    return values


def fit(
    train: Annotated[
        list[Path], typer.Option(help="A csv or parquet file of nominal rows; give it again for more.", metavar="FILE")
    ],
    out: Annotated[Path, typer.Option(help="Write the fitted detector here.")],
    detector: Annotated[str, typer.Option(help="A name of `tisat detectors`.")] = "tisat",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the detector, name=value; give it again for more.")
    ] = None,
    holdout: Annotated[
        float, typer.Option(help="Tail of each file kept from the model, to calibrate alarms on.", min=0.0, max=0.5)
    ] = 0.2,
    time: Annotated[str | None, typer.Option(help="The column that holds the time.")] = None,
    label: Annotated[str | None, typer.Option(help="The column that holds labels; it is not looked at.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="For neural detectors: say after every epoch where training stands.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from --checkpoint if it exists.")] = False,
    json: JsonFlag = False,
) -> None:
    """Fit a detector on nominal data and save it to one file."""
    from tisat import registry
    from tisat.errors import InputError, ParameterError
    from tisat.series import Series

    cls = registry.resolve(detector)
    values = read_settings(settings or [])
    known = [name for name in inspect.signature(cls.__init__).parameters if name != "self"]
    for name in values:
        if name not in known:
            raise ParameterError(
                f"The detector {detector!r} must be given parameters it has: {', '.join(known)}. Got {name!r} instead."
            )
    if not out.resolve().parent.is_dir():
        raise InputError(f"The folder of --out must exist. There is no {str(out.resolve().parent)!r}.")
    options: dict[str, Any] = {}
    if checkpoint is not None or resume:
        if "checkpoint" not in inspect.signature(cls.fit).parameters:
            raise ParameterError(f"The detector {detector!r} must be a neural one to keep checkpoints.")
        if checkpoint is None:
            raise ParameterError("--resume must come with --checkpoint: the file to go on from.")
        options = {"checkpoint": checkpoint, "resume": resume}
    series = [Series.read(file, time=time, label=label) for file in train]
    fitted = cls(**values).fit(series, holdout=holdout, **options)
    fitted.save(out)
    summary = {
        "model": str(out),
        "detector": repr(fitted),
        "rows": fitted.trained_on_["rows"],
        "channels": fitted.n_channels_,
        "nominal_points": len(fitted.nominal_),
        "nominal_source": fitted.nominal_source_,
        "bytes": out.stat().st_size,
    }
    if json:
        print_json(summary)
    else:
        typer.echo(
            f"{summary['detector']} fitted on {summary['rows']:,} rows of {summary['channels']} channels; "
            f"written to {out} ({summary['bytes']:,} bytes)"
        )
