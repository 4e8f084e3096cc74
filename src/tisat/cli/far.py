"""``tisat far``: is a false-alarm budget kept? On a file of your own, on the data sets, on ideal data (the paper's Figure 3)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tisat.cli._output import JsonFlag, print_json, print_table

if TYPE_CHECKING:
    from tisat.sequential.far import Promise


def far(
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Data sets (smd, msl, smap, swat, psm) or files; none: ideal data only.", metavar="DATA"),
    ] = None,
    root: Annotated[
        Path | None, typer.Option("--data", help="The folder that holds the data sets.", envvar="TISAT_DATA")
    ] = None,
    entities: Annotated[str | None, typer.Option(help="Only these, separated by commas.")] = None,
    detector: Annotated[str | None, typer.Option(help="A name of `tisat detectors`.")] = None,
    rule: Annotated[
        str | None,
        typer.Option(help="excess, threshold, paper, paper:weibull or paper:log; several separated by commas."),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Of a file of your own: the false alarms you can bear, 1/day unless given.")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="Of files of your own: write one HTML page here.")] = None,
    method: Annotated[str | None, typer.Option(help="Only these methods, separated by commas.")] = None,
    targets: Annotated[
        str | None,
        typer.Option(help="Target periods in instants, separated by commas; by default a third of the nominal data."),
    ] = None,
    tail: Annotated[
        float, typer.Option(help="Share of each training split, its end, that alarms are counted on.", min=0.1, max=0.8)
    ] = 0.5,
    picture: Annotated[Path | None, typer.Option(help="Draw log period against h here: .png or .svg.")] = None,
    json: JsonFlag = False,
) -> None:
    """Count false alarms on nominal data nobody has seen, beside what was promised.

    Of a file, the second half is held out: asked, vouched for, realised, and what more data would buy. Of a data set, the end of
    each training split. Without either, ideal data.
    """
    from tisat.datasets import NAMES
    from tisat.report.far import draw_promises, draw_study, ideal_study, study

    if data and targets is None and not any(name in NAMES for name in data):
        _own(data, detector, rule or "excess", method or "auto", budget, tail, picture, page, json=json)
        return
    detector, rule = detector or "linear-mean", rule or "paper"
    if not data:
        found, curves = ideal_study()
    else:
        chosen = None if entities is None else [name.strip() for name in entities.split(",")]
        periods = None if targets is None else _periods(targets)
        methods = None if method is None else [name.strip() for name in method.split(",")]
        rules = [name.strip() for name in rule.split(",")]
        found = study(
            data,
            root=root,
            entities=chosen,
            detector=detector,
            rules=rules,
            methods=methods,
            targets=periods,
            tail=tail,
        )
    if picture is not None:
        # Thresholds of real data have no common scale.
        (draw_promises(found) if data else draw_study(curves)).savefig(picture, dpi=110)
    if json:
        print_json([{**vars(one), "realised": one.realised, "kept": one.kept} for one in found])
        return
    print_table(
        "False-alarm period, in instants: asked for, and counted on held-out nominal data",
        ["entity", "rule", "method", "used", "target", "realised", "95 % low", "high", "alarms", "instants", "kept"],
        [_row(one) for one in found],
        note=_summary(found),
    )


def _own(
    files: list[str],
    detector: str | None,
    rules: str,
    methods: str,
    budget: str | None,
    tail: float,
    picture: Path | None,
    page: Path | None,
    *,
    json: bool,
) -> None:
    """Files of a person's own: one answer a file, rule and method."""
    from tisat import registry
    from tisat.artefact import write_bytes
    from tisat.report import own_far
    from tisat.series import Series

    studies = []
    for file in files:
        series = Series.read(file)
        for rule in (name.strip() for name in rules.split(",")):
            name, _, form = rule.partition(":")
            studies += [
                own_far.own_study(
                    series, detector=detector or registry.DEFAULT, rule=name, method=method.strip(), budget=budget,
                    tail=tail, **({"form": form} if form else {}),
                )
                for method in methods.split(",")
            ]  # fmt: skip
    if picture is not None:
        for number, one in enumerate(studies):
            file_name = picture if number == 0 else picture.with_stem(f"{picture.stem}-{number + 1}")
            own_far.draw(one).savefig(file_name, dpi=120)
    if page is not None:
        write_bytes(page, own_far.page(studies, command=f"tisat far {' '.join(map(str, files))}").encode())
    if json:
        print_json(
            [
                {
                    "file": one.name, "rule": one.rule, "method": one.method, "detector": one.detector, "words": one.words,
                    "vouched": one.whole.vouched, "extrapolated": one.whole.extrapolated, "threshold": one.whole.threshold,
                    "ladder": [{**vars(step), "realised": step.realised, "verdict": step.verdict} for step in one.ladder],
                }
                for one in studies
            ]
        )  # fmt: skip
        return
    for one in studies:
        columns, rows = own_far.rows_of(one)
        print_table(
            f"{one.name}: {one.detector}, {one.rule} rule by {one.method}; thresholds from the first half, counted in the second",
            columns, rows, note="\n".join(one.words),
        )  # fmt: skip


def _periods(text: str) -> list[float]:
    """The targets as typed, in instants."""
    from tisat.errors import ParameterError

    try:
        found = [float(value) for value in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(1.0 < value < float("inf") for value in found):
        raise ParameterError(f"--targets must be instants between two alarms, such as 500,5000. Got {text!r} instead.")
    return found


def _row(one: Promise) -> list[Any]:
    high = math.inf if one.high is None else one.high
    return [
        one.entity, f"{one.rule}:{one.form}" if one.form else one.rule, one.method, one.used, round(one.target), _instants(one.realised), round(one.low), _instants(high),
        one.alarms, one.instants, "yes" if one.kept else "no",
    ]  # fmt: skip


def _instants(value: float) -> str:
    return "none seen" if math.isinf(value) else f"{value:.0f}"


def _summary(found: list[Promise]) -> str:
    """How often each rule and method kept its target."""
    kept: dict[str, list[bool]] = {}
    for one in found:
        kept.setdefault(f"{one.rule}{':' * bool(one.form)}{one.form} by {one.method}", []).append(one.kept)
    return "\n".join(f"{name}: target kept in {sum(flags)} of {len(flags)}" for name, flags in kept.items())
