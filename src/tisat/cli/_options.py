"""Options that several verbs share, read one way."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from tisat.watch import Watch

DeltaMax = Annotated[str, typer.Option(help="Longest tolerable delay: instants, or a duration such as 10min.")]
Model = Annotated[
    Path,
    typer.Option(
        help="A model, as written by tisat fit; or a folder of them, one for each machine (tisat fit --each)."
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        help="False alarms you can bear: 1/day, 3/week, '1/1000 instants', 0.001; the model's own unless given."
    ),
]
Rule = Annotated[str | None, typer.Option(help="Alarm rule: excess, threshold or paper; the model's own unless given.")]
Method = Annotated[
    str | None, typer.Option(help="How the threshold is found: auto, bootstrap, ...; see docs/4-alarms.md.")
]
Period = Annotated[
    str | None, typer.Option(help="Sampling period, such as '1 min', where the training data had no clock.")
]
# What may be said of how files are read, in every verb that reads one; the names are those of `Series.read`.
READING: dict[str, tuple[Any, Any]] = {
    "time": (str | None, typer.Option(help="The column that holds the time; a date and a time of the day: Date+Time.")),
    "label": (str | None, typer.Option(help="The column that holds labels, where it is not called like one.")),
    "channels": (str | None, typer.Option(help="Only these columns are channels: a,b,c.")),
    "drop": (str | None, typer.Option(help="Leave these columns out: a,b,c.")),
    "entity": (str | None, typer.Option(help="The column that says which machine a row is of.")),
    "delimiter": (str | None, typer.Option(help="What divides cells: , ; tab |. Found out unless given.")),
    "decimal": (str | None, typer.Option(help="The decimal sign: . or ,. Found out unless given.")),
    "encoding": (str | None, typer.Option(help="Such as latin-1 or utf-16. Found out unless given.")),
    "sheet": (str | None, typer.Option(help="The sheet of a workbook; the first that is not empty unless given.")),
    "time_format": (
        str | None,
        typer.Option(help="How times are written: day-first, month-first, '%d/%m/%Y %H:%M', s, ms."),
    ),
    "timezone": (str | None, typer.Option(help="Times are local to this zone, such as Europe/Berlin.")),
    "sort": (bool, typer.Option("--sort", help="Put rows in the order of their times.")),
    "dedup": (str | None, typer.Option(help="Of rows with the same time keep: first, last or mean.")),
}
AnyPeriod = Annotated[
    bool, typer.Option("--any-period", help="Go on where rows come at another pace than in training.")
]
IgnoreExtra = Annotated[bool, typer.Option("--ignore-extra", help="Leave out columns the model does not know.")]


def instants_or_duration(text: str) -> int | str:
    """``"100"`` is 100 instants; ``"10min"`` stays a duration.

    Examples
    --------
    >>> instants_or_duration("100"), instants_or_duration("10min")
    (100, '10min')
    """
    return int(text) if text.strip().lstrip("+-").isdigit() else text


def reads_files(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options of :data:`READING`; it gets them as ``how``, options of ``Series.read``."""
    hints = get_type_hints(verb, include_extras=True)
    own = inspect.signature(verb).parameters
    parameters = [one.replace(annotation=hints[one.name]) for one in own.values() if one.name != "how"]
    for name, (kind, option) in READING.items():
        if name not in own:
            default = False if kind is bool else None
            annotation: Any = Annotated[kind, option]
            parameters.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            )

    def run(**given: object) -> None:
        how = reading(**{name: given.pop(name) for name in READING if name not in own})
        verb(**given, how=how)

    run.__name__, run.__doc__ = verb.__name__, verb.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # inspect looks here
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def reading(**given: Any) -> dict[str, Any]:
    """What was said of how files are to be read, as options of ``Series.read``; nothing for what was not said.

    Examples
    --------
    >>> reading(time=None, drop="host, state", decimal=",")
    {'drop': ['host', 'state'], 'decimal': ','}
    """
    return {
        name: [part.strip() for part in value.split(",") if part.strip()] if name in ("channels", "drop") else value
        for name, value in given.items()
        if value
    }


def typed(how: Mapping[str, Any] | None) -> str:
    """How files are read, as somebody would type it: for the next command that is printed.

    Examples
    --------
    >>> typed({"drop": ["host", "my state"], "decimal": ",", "sort": True})
    " --drop 'host,my state' --decimal , --sort"
    """
    parts = []
    for name, value in (how or {}).items():
        text = "" if value is True else ",".join(value) if isinstance(value, list) else str(value)
        parts.append(f" --{name.replace('_', '-')}" + (f" {shlex.quote(text)}" if text else ""))
    return "".join(parts)


def open_watch(
    model: Path,
    *,
    budget: str | None = None,
    rule: str | None = None,
    method: str | None = None,
    period: str | None = None,
    quiet: bool = False,
) -> Watch:
    """The model as its file has it, or calibrated anew for what was said otherwise, which is then told."""
    from tisat.watch import Watch

    found = Watch.load(model)
    asked = {"budget": budget, "rule": rule, "method": method, "period": period}
    given = {name: value for name, value in asked.items() if value is not None}
    if not given or given == {"budget": found.budget}:
        return found
    other = found.recalibrated(**given)
    if not quiet:
        kept = "" if found.budget is None else f" (the model's own: {found.budget})"
        typer.echo(f"note: calibrated anew for {other.calibration.budget}{kept}", err=True)
    return other
