"""``tisat evaluate``: alarms against labelled events, beside what fools get."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tisat.cli._options import DeltaMax, instants_or_duration, reads_files
from tisat.cli._output import JsonFlag, print_json, print_table


@reads_files
def evaluate(
    file: Annotated[Path, typer.Argument(help="A csv or parquet file with a label column.", metavar="FILE")],
    alarms: Annotated[Path, typer.Argument(help="Alarms as written by `tisat alarm --out`.", metavar="ALARMS")],
    delta_max: DeltaMax = "100",
    json: JsonFlag = False,
    how: dict[str, Any] | None = None,
) -> None:
    """Count alarms against labelled events: detected, delays, false alarms, beside what fools get. For scores: audit."""
    from tisat.errors import SeriesError
    from tisat.metrics import evaluate_alarms
    from tisat.sequential.alarm_files import read_active
    from tisat.series import Series

    series = Series.read(file, **(how or {}))
    if series.labels is None:
        raise SeriesError(f"The file {str(file)!r} must have a label column. Got {', '.join(series.channels)}.")
    active = read_active(alarms, length=len(series))
    found = evaluate_alarms(
        series.labels, active, delta_max=instants_or_duration(delta_max), timestamps=series.timestamps
    )
    if json:
        rows = [{name: getattr(row, name) for name in row.__dataclass_fields__} for row in found.rows]
        print_json(
            {"events": found.counts.n_events, "delta_max": delta_max, "beats_fools": found.beats_fools, "rows": rows}
        )
        return
    print_table(
        str(found.counts),
        ("alarms", "detected", "false alarms", "precision", "event F1", "delay / max"),
        [(r.name, r.detected, r.false_alarms, r.precision, r.event_f1, r.normalised_delay) for r in found.rows],
        note=f"delta_max = {delta_max}; rotated: the same alarms at random times, mean of 100 draws",
    )
