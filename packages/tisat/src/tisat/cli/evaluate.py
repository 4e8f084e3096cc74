"""``tisat evaluate``: alarms against labelled events, beside what trivial baselines get."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tisat.cli.machines import read_machines
from tisat.cli.options import DeltaMax, How, reads_files, rows_or_duration
from tisat.cli.output import JsonFlag, print_json, print_table
from tisat.cli.score_files import read_labels
from tisat.utils.types import JsonDict


@reads_files
def evaluate(
    file: Annotated[
        str, typer.Argument(help="A file with a label column, a folder or a pattern of them.", metavar="FILE")
    ],
    alarms: Annotated[Path, typer.Argument(help="Alarms as written by `tisat alarm --out`.", metavar="ALARMS")],
    delta_max: DeltaMax = "100",
    json: JsonFlag = False,
    how: How | None = None,
) -> None:
    """Count alarms against labelled events: detected, delays, false alarms, beside what trivial baselines get. For scores: audit."""
    from tisat.alarms.files import read_active
    from tisat.errors import SeriesError
    from tisat.io.columns import LabelsAloneError
    from tisat.metrics import evaluate_alarms

    try:
        machines = read_machines([file], how or {})
    except LabelsAloneError:
        machines = read_labels(Path(file), (how or {}).get("label"))
    bare = next((series for series in machines.values() if series.labels is None), None)
    if bare is not None:
        named = f" of {bare.name!r}" if len(machines) > 1 else ""
        raise SeriesError(
            f"The file {file!r} must have a label column{named}. Got {', '.join(bare.channels)}; --label says which it is."
        )
    if len(machines) > 1:
        _evaluate_fleet(machines, alarms, delta_max, json=json)
        return
    series = next(iter(machines.values()))
    assert series.labels is not None
    active = read_active(alarms, length=len(series))
    evaluation = evaluate_alarms(
        series.labels, active, delta_max=rows_or_duration(delta_max), timestamps=series.timestamps
    )
    if json:
        rows = [vars(row) for row in evaluation.rows]
        print_json(
            {
                "events": evaluation.counts.n_events,
                "delta_max": delta_max,
                "beats_baselines": evaluation.beats_baselines,
                "rows": rows,
            }
        )
        return
    print_table(
        str(evaluation.counts),
        ("alarms", "detected", "false alarms", "precision", "event F1", "delay / max"),
        [(r.name, r.detected, r.false_alarms, r.precision, r.event_f1, r.normalised_delay) for r in evaluation.rows],
        note=f"delta_max = {delta_max}; rotated: the same alarms at random times, mean of 100 draws",
    )


def _evaluate_fleet(machines: JsonDict, alarms: Path, delta_max: str, *, json: bool) -> None:
    """Evaluate the alarms of many machines, by their column ``series``, and of all."""
    from tisat.alarms.files import read_active
    from tisat.metrics import evaluate_alarms

    rows: list[JsonDict] = []
    for name, series in machines.items():
        active = read_active(alarms, length=len(series), series=name)
        evaluation = evaluate_alarms(
            series.labels, active, delta_max=rows_or_duration(delta_max), timestamps=series.timestamps
        )
        mine = evaluation.rows[0]
        rows.append(
            {
                "machine": name,
                "events": evaluation.counts.n_events,
                "detected": mine.detected,
                "false_alarms": mine.false_alarms,
            }
        )
    rows.sort(key=lambda row: (row["detected"] - row["events"], -row["false_alarms"]))
    total = {"machine": "all", **{key: sum(row[key] for row in rows) for key in ("events", "detected", "false_alarms")}}
    if json:
        print_json({"delta_max": delta_max, "total": total, "machines": rows})
        return
    print_table(
        f"{len(rows)} machines: {total['detected']:g} of {total['events']} events detected, {total['false_alarms']:g} false alarms",
        ("machine", "events", "detected", "false alarms"),
        [list(row.values()) for row in (*rows, total)],
        note=f"delta_max = {delta_max}; most missed first",
    )
