"""Options that several verbs share, read one way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tisat.watch import Watch

DeltaMax = Annotated[str, typer.Option(help="Longest tolerable delay: instants, or a duration such as 10min.")]
Model = Annotated[Path, typer.Option(help="A model, as written by tisat fit.")]
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
Time = Annotated[str | None, typer.Option(help="The column that holds the time.")]
Label = Annotated[str | None, typer.Option(help="The column that holds labels; it is not looked at.")]
Channels = Annotated[str | None, typer.Option(help="Only these columns are channels: a,b,c.")]
Drop = Annotated[str | None, typer.Option(help="Leave these columns out: a,b,c.")]
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


def reading(time: str | None, label: str | None, channels: str | None, drop: str | None) -> dict[str, Any]:
    """What was said of how files are to be read, as options of ``Series.read``; nothing for what was not said."""
    listed = {
        name: [part.strip() for part in text.split(",") if part.strip()]
        for name, text in (("channels", channels), ("drop", drop))
        if text
    }
    named = {name: text for name, text in (("time", time), ("label", label)) if text}
    return {**named, **listed}


def open_watch(
    model: Path,
    *,
    budget: str | None = None,
    rule: str | None = None,
    method: str | None = None,
    period: str | None = None,
) -> Watch:
    """The model as its file has it, or calibrated anew for what was said otherwise, which is then told."""
    from tisat.watch import Watch

    found = Watch.load(model)
    asked = {"budget": budget, "rule": rule, "method": method, "period": period}
    given = {name: value for name, value in asked.items() if value is not None}
    if not given or given == {"budget": found.budget}:
        return found
    own = {"budget": found.budget, "rule": found.rule, "method": found.method, "random_state": found.random_state}
    other = Watch(found.detector, **{**own, **given})
    other.reading = found.reading
    other.calibrate()
    kept = "" if found.budget is None else f" (the model's own: {found.budget})"
    typer.echo(f"note: calibrated anew for {other.calibration.budget}{kept}", err=True)
    return other
