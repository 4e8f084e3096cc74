"""``tisat far``: count false alarms on held-out rows of your own file, beside the budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tisat.cli.output import JsonFlag, print_json, print_table
from tisat.cli.output_files import Overwrite, check_outputs, save_figure
from tisat.registry import DEFAULT
from tisat.utils.types import Params


def far(
    files: Annotated[list[str], typer.Argument(help="Files of normal rows.", metavar="FILE")],
    detector: Annotated[str, typer.Option(help="A name of `tisat detectors`.")] = DEFAULT,
    rule: Annotated[
        str, typer.Option(help="excess, threshold, paper, paper:weibull or paper:log; several separated by commas.")
    ] = "excess",
    budget: Annotated[str | None, typer.Option(help="The false alarms you accept, 1/day unless given.")] = None,
    method: Annotated[str, typer.Option(help="Methods of calibration, separated by commas.")] = "auto",
    page: Annotated[Path | None, typer.Option(help="Write one HTML page here.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the periods here: .png or .svg.")] = None,
    overwrite: Overwrite = False,
    json: JsonFlag = False,
) -> None:
    """Count false alarms on normal rows that training has not seen, beside the budget.

    The end of each file is held out: the rate asked for, the rate the data supports, the rate observed, and what more data would
    allow. On the published data sets and on ideal data (the paper's Figure 3): tisat data far.
    """
    pictures = _pictures(picture, len(files) * len(rule.split(",")) * len(method.split(",")))
    named = {f"--picture{f' ({study.name})' * bool(i)}": study for i, study in enumerate(pictures)}
    check_outputs({"--page": page, **named}, inputs=files, overwrite=overwrite)
    from tisat.persistence.model_file import write_bytes
    from tisat.plotting import budget_page
    from tisat.series import Series

    studies = []
    for file in files:
        series = Series.read(file)
        for wanted in (name.strip() for name in rule.split(",")):
            name, _, form = wanted.partition(":")
            more: Params = {"form": form} if form else {}
            studies += [
                budget_page.own_study(
                    series, detector=detector, rule=name, method=study.strip(), budget=budget,
                    **more,
                )
                for study in method.split(",")
            ]  # fmt: skip
    for study, target in zip(studies, pictures, strict=False):  # no pictures unless asked for
        save_figure(budget_page.draw(study), target)
    if page is not None:
        write_bytes(page, budget_page.page(studies, command=f"tisat far {' '.join(map(str, files))}").encode())
    if json:
        print_json(
            [
                {
                    "file": study.name, "rule": study.rule, "method": study.method, "detector": study.detector, "words": study.words,
                    "supported": study.whole.supported, "extrapolated": study.whole.extrapolated, "threshold": study.whole.threshold,
                    "ladder": [{**vars(step), "observed": step.observed, "verdict": step.verdict} for step in study.ladder],
                }
                for study in studies
            ]
        )  # fmt: skip
        return
    for study in studies:
        columns, rows = budget_page.rows_of(study)
        print_table(
            f"{study.name}: {study.detector}, {study.rule} rule by {study.method}; thresholds from the first half, counted in the second",
            columns, rows, note="\n".join(study.words),
        )  # fmt: skip


def _pictures(picture: Path | None, studies: int) -> list[Path]:
    """The files of the pictures: the one given, and numbered ones beside it for further studies."""
    if picture is None:
        return []
    return [picture, *(picture.with_stem(f"{picture.stem}-{number}") for number in range(2, studies + 1))]
