"""``tisat alarm``: the alarms of a file, within a false-alarm budget."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from tisat.cli._output import JsonFlag, print_json, print_table


def alarm(
    file: Annotated[Path, typer.Argument(help="A csv or parquet file.", metavar="FILE")],
    model: Annotated[Path, typer.Option(help="A fitted detector, as written by tisat fit.")],
    budget: Annotated[str, typer.Option(help="False alarms you can bear: 1/day, 3/week, '1/1000 instants', 0.001.")],
    rule: Annotated[str, typer.Option(help="excess, threshold or paper.")] = "excess",
    method: Annotated[str, typer.Option(help="auto, bootstrap, empirical, weibull, exact or paper.")] = "auto",
    period: Annotated[
        str | None, typer.Option(help="Sampling period, such as '1 min', if there are no timestamps.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the alarms here: .csv, .parquet or .jsonl.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw them here: .png or .svg.")] = None,
    channels: Annotated[int, typer.Option(help="Channels to draw and to name.", min=0)] = 3,
    json: JsonFlag = False,
) -> None:
    """Raise the alarms of a file: when, since when, until when, which channels, and what the budget was worth."""
    from tisat.base import load
    from tisat.errors import CalibrationWarning
    from tisat.series import Series

    detector = load(model)
    series = Series.read(file)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalibrationWarning)
        found = detector.alarms(series, false_alarms=budget, rule=rule, method=method, period=period)
    if out is not None:
        found.write(out)
    if picture is not None:
        found.plot(series, channels=channels).savefig(picture, dpi=120)
    if json:
        print_json({"calibration": found.calibration.to_json(), "alarms": found.to_rows()})
        return
    rows = []
    for one in found:
        blamed = ", ".join(f"{channel} {share:.0%}" for channel, share in list(one.channels.items())[:channels])
        moments = (
            instant if stamp is None else stamp
            for instant, stamp in (
                (one.raised, one.raised_time),
                (one.onset, one.onset_time),
                (one.cleared, one.cleared_time),
            )
        )
        rows.append(
            [
                *(
                    ("still on" if moment is None else str(moment).removesuffix(".000000000").replace("T", " "))
                    for moment in moments
                ),
                one.peak / one.threshold,
                blamed,
            ]
        )
    note = "\n".join([str(found.calibration), *(f"note: {warning.message}" for warning in caught)])
    print_table(
        f"{series.name}: {len(found)} alarm{'s' * (len(found) != 1)} in {len(series)} instants",
        ["raised", "onset", "cleared", "peak / h", "channels"],
        rows,
        note=note,
    )
