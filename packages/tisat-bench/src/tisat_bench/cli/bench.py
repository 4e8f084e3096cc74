"""``tisat bench``: run an experiment file, resume it, and write its tables and report."""

from __future__ import annotations

import json as jsonlib
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tisat.cli.output import JsonFlag, print_json, print_table
from tisat.cli.output_files import Overwrite, check_folder, check_outputs

if TYPE_CHECKING:
    from tisat.utils.types import JsonDict
    from tisat_bench.driver import Progress, Watcher
    from tisat_bench.task import Task


def _duration(seconds: float) -> str:
    if seconds != seconds:
        return "time left unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min left" if hours else f"{minutes} min {rest:02} s left"


@contextmanager
def _progress_line(total: int) -> Iterator[Watcher]:
    """A live line on a terminal; in a log file, a line whenever another twentieth is done."""
    from tisat.utils.progress import progress as bar_of

    step, counts = max(total // 20, 1), {"done": 0, "logged": -1}
    with bar_of("tasks", total=total) as bar:

        def show_progress(progress: Progress) -> None:
            finished = progress.total - progress.left
            running = "; ".join(map(str, list(progress.running.values())[:2])) or "none"
            note = f"{finished} of {total} · {len(progress.failed)} failed · running {len(progress.running)}: {running}"
            bar.advance(finished - counts["done"], note=note)
            counts["done"] = finished
            twentieth = (progress.done + len(progress.failed)) // step
            if twentieth > counts["logged"] and not sys.stderr.isatty():
                typer.echo(f"{progress}; {_duration(progress.seconds_left)}", err=True)
            counts["logged"] = twentieth

        yield show_progress


def _run_one_task(text: str, data: str | None, experiment: Path | None) -> None:
    """Run one task here, with its whole error on standard error; of data sets of your own the experiment knows the files."""
    from tisat.errors import InputError
    from tisat_bench.experiment import read_experiment
    from tisat_bench.sources import Source
    from tisat_bench.task import Task
    from tisat_bench.task_run import run_from

    try:
        document = jsonlib.loads(text)
    except ValueError:
        raise InputError(
            "The '--task' option of tisat bench must be the JSON of a task, as a failed row prints it."
        ) from None
    task = Task.from_json(document)
    own = {} if experiment is None else read_experiment(experiment, data=data).sources
    outcome = run_from(task, own.get(task.dataset) or Source(task.dataset, data))
    if outcome.failed:
        typer.echo(outcome.row["traceback"], err=True)
    print_json({key: value for key, value in outcome.row.items() if key not in ("task", "traceback", "command")})
    if outcome.failed:
        raise typer.Exit(1)


def bench(
    experiment: Annotated[
        Path | None,
        typer.Argument(
            help="A TOML file, such as experiments/table2.toml; or tsb-ad-m, tsb-ad-u: beside the published results of TSB-AD."
        ),
    ] = None,
    store: Annotated[
        Path, typer.Option(help="The folder of results; a run continues where the last one stopped.")
    ] = Path("results"),
    data: Annotated[str | None, typer.Option(help="The folder of the data sets; TISAT_DATA where not given.")] = None,
    engine: Annotated[str, typer.Option(help="local (processes), ray (a cluster) or inline (this process).")] = "local",
    jobs: Annotated[int, typer.Option(help="Tasks at once, each with one thread.")] = 1,
    address: Annotated[
        str | None, typer.Option(help="The Ray cluster; a new one on this machine where not given.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds after which a task is given up (local engine).")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only these detectors or systems, by name; may be given several times.")
    ] = None,
    series: Annotated[
        list[str] | None,
        typer.Option(
            help="With tsb-ad-m or tsb-ad-u: only these series of its list.",
            metavar="NAME",
        ),
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            help="With tsb-ad-m or tsb-ad-u: NAME=FOLDER, scores of another detector, one .npy, .npz or .csv for each series.",
            metavar="NAME=FOLDER",
        ),
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run again what failed before.")] = False,
    no_run: Annotated[bool, typer.Option("--no-run", help="Evaluate what is stored, run nothing.")] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write report and tables (HTML, Markdown, LaTeX, csv) into this folder.")
    ] = None,
    freeze: Annotated[
        Path | None,
        typer.Option(
            help="Write the small csv and JSON files that tables are made from into this folder; with --overwrite, add to what is frozen there."
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="Run this one task (JSON, as a failed row prints it) and show its whole error.")
    ] = None,
    overwrite: Overwrite = False,
    json: JsonFlag = False,
) -> None:
    """Run data sets x detectors x seeds, resumable, and make the tables of the paper from the results."""
    from tisat.batch.engines import Engine, make_engine
    from tisat.batch.process_engine import Local
    from tisat.errors import ParameterError
    from tisat.registry import imported
    from tisat_bench.cli.tsb_ad import BENCHMARKS, compare_on, show
    from tisat_bench.driver import drive, pending
    from tisat_bench.experiment import read_experiment
    from tisat_bench.frozen import frozen_folder
    from tisat_bench.store import Store

    if task is not None:
        _run_one_task(task, data, experiment)
        return
    if str(experiment) in BENCHMARKS:
        if report is not None:
            check_outputs({f"--report ({experiment}.md)": report / f"{experiment}.md"}, overwrite=overwrite)
        compared = compare_on(
            str(experiment), data=data, store=store, only=only or (), chosen=series or (), scores=scores or (),
            run=not no_run,
        )  # fmt: skip
        show(compared, report=report, json=json)
        return
    for option, given in (("--scores", scores), ("--series", series)):
        if given:
            raise ParameterError(f"The '{option}' option of tisat bench must come with tsb-ad-m or tsb-ad-u.")
    if experiment is None:
        raise ParameterError(
            "The argument of tisat bench must be an experiment file, such as experiments/table2.toml. Got none."
        )
    if freeze is not None and only:
        raise ParameterError(
            "The '--freeze' option of tisat bench must come without '--only': it describes the whole experiment. "
            "Run with '--only' first, then freeze with '--no-run'."
        )
    if str(experiment).startswith("tsb-ad") and not experiment.exists():
        raise ParameterError(f"The benchmark must be tsb-ad-m or tsb-ad-u. Got {str(experiment)!r} instead.")
    plan = read_experiment(experiment, data=data)
    reads = [experiment, store, data]
    check_folder("--report", report, inputs=reads, overwrite=overwrite)
    check_folder(
        "--freeze", None if freeze is None else frozen_folder(freeze, plan.name), inputs=reads, overwrite=overwrite
    )
    results = Store(store)
    if only:
        plan = plan.restricted(only)
    tasks = list(plan.tasks())
    if not no_run:
        runner: Engine
        if engine == "local":  # in a process of its own even where it is the only one: a task may die or be given up
            runner = Local(jobs=jobs, timeout=timeout)
        else:
            runner = make_engine(engine, jobs=jobs, address=address)
        unique, missing = pending(tasks, results, retry_failed=retry_failed)
        typer.echo(f"{plan.title}: {len(unique)} tasks, {len(missing)} to run, store {store}", err=True)
        with _progress_line(len(unique)) as watch:
            progress = drive(tasks, plan.sources, results, runner, retry_failed=retry_failed, watch=watch)
        typer.echo(f"{plan.title}: {progress}", err=True)
        if progress.interrupted:
            typer.echo("tisat: interrupted; run the same command to go on", err=True)
            raise typer.Exit(130)
    rows = results.rows()
    if no_run:
        _say_missing(tasks, rows, store)
    failed = [rows[one.id] for one in tasks if rows.get(one.id, {}).get("status") == "failed"]
    place = [str(experiment), *(["--data", data] if data else []), *(f"--import={one}" for one in imported())]
    for row in failed:
        command = row["command"].replace("tisat bench", f"tisat bench {shlex.join(place)}", 1)
        typer.echo(f"failed: {row['reason']}\n    {command}", err=True)
    _write_results(plan, results, report=report, freeze=freeze, json=json)


def _say_missing(tasks: Sequence[Task], rows: Mapping[str, JsonDict], store: Path) -> None:
    """Say how many tasks have no result in the store; refuse a store that has none of them."""
    from tisat.errors import InputError

    wanted = {task.id for task in tasks}
    missing = len(wanted - rows.keys())
    if missing and missing == len(wanted):
        raise InputError(
            f"The store {str(store)!r} must hold results of the experiment. Got none of its {missing} tasks; run it without --no-run, or name another --store."
        )
    if missing:
        typer.echo(
            f"{missing} of {len(wanted)} tasks have no result in {store}; without --no-run they are run", err=True
        )


def _write_results(plan: Any, results: Any, *, report: Path | None, freeze: Path | None, json: bool) -> None:
    from dataclasses import asdict

    from tisat_bench.evaluation import Results
    from tisat_bench.frozen import FILES, gather, write_frozen
    from tisat_bench.tables import tables_of

    evaluation = Results(plan, results)
    frozen = gather(evaluation)
    if freeze is not None:
        typer.echo(f"frozen: {write_frozen(freeze, frozen)}", err=True)
    if report is not None:
        from tisat_bench.report import write_report

        typed = shlex.join(["tisat", *sys.argv[1:]])
        typer.echo(f"report: {write_report(report, frozen, evaluation, command=typed)}", err=True)
    if json:
        print_json({"about": frozen.about, **{name: [asdict(row) for row in getattr(frozen, name)] for name in FILES}})
        return
    for table in tables_of(frozen):
        print_table(table.title, table.headers, table.rows, note=table.caption)


def tables(
    frozen: Annotated[Path, typer.Argument(help="The folder of frozen results.")] = Path("experiments/frozen"),
    out: Annotated[Path, typer.Option(help="The folder the Markdown pages are written into.")] = Path("docs/tables"),
    overwrite: Overwrite = False,
) -> None:
    """Make the Markdown pages of the documentation from frozen results, byte for byte."""
    from tisat.errors import InputError
    from tisat.persistence.model_file import write_bytes
    from tisat_bench.frozen import read_frozen
    from tisat_bench.tables import markdown_page

    folders = sorted(file.parent for file in frozen.glob("*/about.json"))
    if not folders:
        raise InputError(
            f"The folder {str(frozen)!r} must hold frozen results. There are none; give experiments/frozen of the repository, or write some with tisat bench --freeze."
        )
    pages = {folder: out / f"{folder.name}.md" for folder in folders}
    reads = [file for folder in folders for file in folder.iterdir()]
    check_outputs({f"--out ({page.name})": page for page in pages.values()}, inputs=reads, overwrite=overwrite)
    out.mkdir(parents=True, exist_ok=True)
    for folder, page in pages.items():
        write_bytes(page, markdown_page(read_frozen(folder)).encode())
        typer.echo(str(page), err=True)
