"""``tisat demo``: the main job, on generated data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tisat.cli.output import JsonFlag, print_json, print_table
from tisat.cli.output_files import Overwrite, check_outputs
from tisat.registry import DEFAULT


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for report.html, alarms.csv and the model.")] = Path(
        "demo"
    ),
    detector: Annotated[str, typer.Option("--detector", help="A name of `tisat detectors`.")] = DEFAULT,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the generated plant.")] = 3,
    overwrite: Overwrite = False,
    json: JsonFlag = False,
) -> None:
    """Generate a plant, learn, set an alarm budget, raise alarms, evaluate beside the baseline scores, write a report."""
    from tisat import registry
    from tisat.persistence.model_file import write_bytes
    from tisat.plotting import demo_page as flow

    registry.resolve(detector)  # a wrong name is refused before a plant is made
    files = {f"--out ({name})": out / name for name in ("report.html", "alarms.csv", "model.tisat")}
    check_outputs(files, overwrite=overwrite)
    command = f"tisat demo --out {out.name} --detector {detector} --seed {seed}"
    demo_result = flow.run_demo(detector=detector, random_state=seed, say=lambda line: typer.echo(line, err=True))
    out.mkdir(parents=True, exist_ok=True)
    write_bytes(out / "report.html", flow.demo_page(demo_result, command=command).encode())
    demo_result.alarms.write(out / "alarms.csv")
    demo_result.watch.save(out / "model.tisat")
    if json:
        print_json(flow.demo_document(demo_result))
        return
    typer.echo("\n".join(flow.key_figures(demo_result)) + "\n")
    print_table("The faults", flow.FAULT_COLUMNS, flow.fault_rows(demo_result))
    print_table("The alarms", flow.ALARM_COLUMNS[:-1], [row[:-1] for row in flow.alarm_rows(demo_result, reasons=1)])
    print_table(
        f"What the scores are worth (delta_max = {flow.DELTA_MAX})",
        flow.SCORE_COLUMNS,
        flow.score_rows(demo_result),
        note="1 is perfect; baseline scores are what trivial baselines get on the same labels; oracle: the threshold was chosen on them.",
    )
    typer.echo(
        f"Written: {out / 'report.html'}, {out / 'alarms.csv'}, {out / 'model.tisat'} ({demo_result.seconds:.0f} s)",
        err=True,
    )
    typer.echo(
        "See it live: `tisat serve --demo`, then open http://127.0.0.1:8765 (30 pumps, faults arrive while you watch). "
        f"Serve this model: `tisat serve --model {out / 'model.tisat'} --data {out / 'watch'}`",
        err=True,
    )
