"""``tisat demo``: the main job, on generated data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tisat.cli._output import JsonFlag, print_json, print_table


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for report.html, alarms.csv and the model.")] = Path(
        "demo"
    ),
    detector: Annotated[str, typer.Option("--detector", help="A name of `tisat detectors`.")] = "tisat",
    seed: Annotated[int, typer.Option("--seed", help="Seed of the generated plant.")] = 3,
    json: JsonFlag = False,
) -> None:
    """Generate a plant, train, set an alarm budget, raise alarms, evaluate beside the floors, write a report."""
    from tisat.artefact import write_bytes
    from tisat.report import demo as flow

    command = f"tisat demo --out {out.name} --detector {detector} --seed {seed}"
    done = flow.run_demo(detector=detector, random_state=seed, say=lambda line: typer.echo(line, err=True))
    out.mkdir(parents=True, exist_ok=True)
    write_bytes(out / "report.html", flow.demo_page(done, command=command).encode())
    done.alarms.write(out / "alarms.csv")
    done.detector.save(out / "model.tisat")
    if json:
        print_json(flow.demo_document(done))
        return
    print_table(
        f"Alarms: {done.counts}",
        ("raised", "what it found", "delay", "channels blamed", "channels at fault"),
        flow.alarm_rows(done),
    )
    print_table(
        f"What the scores are worth (delta_max = {flow.DELTA_MAX})",
        ("score", "SPD", "chance-corrected", "point-adjusted F1 (oracle)"),
        flow.score_rows(done),
    )
    typer.echo(
        f"Written: {out / 'report.html'}, {out / 'alarms.csv'}, {out / 'model.tisat'} ({done.seconds:.0f} s)", err=True
    )
