"""``tisat data far``: do thresholds keep their promise? On the data sets and on ideal data (the paper's Figure 3)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tisat.cli.output import JsonFlag, print_json, print_table
from tisat.cli.output_files import Overwrite, check_outputs, save_figure

if TYPE_CHECKING:
    from tisat.alarms.false_alarm_study import Promise


def far(
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Data sets (smd, msl, smap, swat, psm) or files; none: ideal data only.", metavar="DATA"),
    ] = None,
    root: Annotated[
        Path | None, typer.Option("--data", help="The folder that holds the data sets.", envvar="TISAT_DATA")
    ] = None,
    detector: Annotated[str, typer.Option(help="A name of `tisat detectors`.")] = "linear-mean",
    rule: Annotated[
        str, typer.Option(help="excess, threshold, paper, paper:weibull or paper:log; several separated by commas.")
    ] = "paper",
    method: Annotated[str | None, typer.Option(help="Only these methods, separated by commas.")] = None,
    targets: Annotated[
        str | None,
        typer.Option(help="Target periods in rows, separated by commas; by default a third of the normal data."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Draw log period against h with its bounds here, .png or .svg; for other rules than paper, what was kept."
        ),
    ] = None,
    overwrite: Overwrite = False,
    json: JsonFlag = False,
) -> None:
    """Count false alarms on the held-out end of each training split, for targets and methods; without data sets, on ideal data.

    For a file and a budget of your own: tisat far FILE.
    """
    check_outputs({"--picture": picture}, inputs=data or (), overwrite=overwrite)
    from tisat_bench.false_alarm_figures import (
        draw_promises,
        draw_real,
        draw_study,
        held_out_curves,
        ideal_study,
        study,
    )

    if not data:
        studies, curves = ideal_study()
    else:
        periods = None if targets is None else _periods(targets)
        methods = None if method is None else [name.strip() for name in method.split(",")]
        rules = [name.strip() for name in rule.split(",")]
        studies = study(
            data,
            root=root,
            detector=detector,
            rules=rules,
            methods=methods,
            targets=periods,
        )
    if picture is not None:
        if not data:
            figure = draw_study(curves)
        elif rules == ["paper"]:
            figure = draw_real(held_out_curves(data, root=root, detector=detector))
        else:
            figure = draw_promises(studies)
        save_figure(figure, picture)
    if json:
        print_json([{**vars(one), "observed": one.observed, "kept": one.kept} for one in studies])
        return
    print_table(
        "False-alarm period, in rows: asked for, and counted on held-out normal data",
        ["entity", "rule, method", "target", "observed", "95 %", "alarms", "met"],
        [_row(one) for one in studies],
        note=_summary(studies),
    )


def _periods(text: str) -> list[float]:
    """The targets as typed, in rows."""
    from tisat.errors import ParameterError

    try:
        periods = [float(value) for value in text.split(",")]
    except ValueError:
        periods = []
    if not periods or not all(1.0 < value < float("inf") for value in periods):
        raise ParameterError(f"--targets must be rows between two alarms, such as 500,5000. Got {text!r} instead.")
    return periods


def _row(one: Promise) -> list[object]:
    rule = f"{one.rule}:{one.form}" if one.form not in ("", "power") else one.rule
    method = one.method if one.used == one.method else f"{one.method} ({one.used})"
    interval = f"{one.low:.0f}+" if one.high is None else f"{one.low:.0f}-{one.high:.0f}"
    return [
        one.entity, f"{rule}, {method}", round(one.target), _time_steps(one.observed), interval, one.alarms, "yes" if one.kept else "no"
    ]  # fmt: skip


def _time_steps(value: float) -> str:
    return "none seen" if math.isinf(value) else f"{value:.0f}"


def _summary(found: list[Promise]) -> str:
    """How often each rule and method kept its target."""
    kept: dict[str, list[bool]] = {}
    for one in found:
        kept.setdefault(f"{one.rule}{':' * bool(one.form)}{one.form} by {one.method}", []).append(one.kept)
    return "\n".join(f"{name}: target met in {sum(flags)} of {len(flags)}" for name, flags in kept.items())
