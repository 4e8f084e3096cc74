"""``tisat audit``: evaluate scores against labels, with trivial baselines beside every number."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tisat.cli.options import DeltaMax, rows_or_duration
from tisat.cli.output import JsonFlag, print_json, print_table, training_reported
from tisat.cli.output_files import Overwrite, check_outputs
from tisat.errors import DataFileError, ParameterError

if TYPE_CHECKING:
    from tisat.cli.score_files import ScoredSeries
    from tisat.metrics import Audit
    from tisat.metrics.comparison import Comparison

SHOWN = 10  # events and alarms listed on the terminal; --json and --html have them all


def _print(audit: Audit, comparison: Comparison) -> None:
    from tisat.plotting.audit_tables import interval_words, threshold_words

    evaluation = audit.evaluation
    typer.echo("\n".join(f"* {sentence}" for sentence in audit.verdict) + "\n")
    several = evaluation.n_series > 1
    ends = (math.nan, math.nan)
    rows = [
        (row.name, row.pooled, *((row.interval.low, row.interval.high) if row.interval else ends), *([row.per_series_mean] * several), row.baseline_score, row.corrected, row.baseline)
        for row in evaluation.rows
    ]  # fmt: skip
    events = f"{evaluation.n_events} event{'s' * (evaluation.n_events != 1)}"
    print_table(
        f"{evaluation.n_series} series, {evaluation.n_rows:,} rows, {events}, delta_max {evaluation.curve.delta_max}",
        ("score", "pooled", "low", "high", *["per-series mean"] * several, "baseline score", "corrected", "best trivial baseline"),
        rows,
        note=f"{interval_words(evaluation.n_events, f'Low, high: 95 % interval over {events} ({comparison.draws}).')} Oracle: the threshold was chosen with the labels. {threshold_words([audit])}",
    )  # fmt: skip
    typer.echo("\nBefore you quote one of them:")
    for row in evaluation.rows:
        if row.warning:
            typer.echo(f"  {row.name}: {row.warning}")
    typer.echo()
    print_table(
        "SPD by delta_max",
        ("delta_max", "pooled", "per-series mean", "baseline score", "corrected", "best trivial baseline"),
        [
            (str(p.delta_max), p.pooled, p.per_series_mean, p.baseline_score, p.corrected, p.baseline)
            for p in audit.sweep
        ],
    )
    print_table(
        "Baseline scores: SPD of trivial baselines on these labels",
        ("baseline", "pooled", "per-series mean"),
        [
            (name, float(score), score.per_series_mean)
            for name, score in evaluation.curve.baselines.named.items()
            if name != "random, simulated"  # a check of the closed form, not another baseline
        ],
    )
    missed = [(event.series, event.start, event.stop, event.time) for event in audit.missed]
    false = [(alarm.series, alarm.time_step, alarm.time) for alarm in audit.false_alarms]
    typer.echo(f"\nAt threshold {audit.threshold:.6g} ({audit.threshold_source}):")
    _print_list("events missed", ("series", "start", "stop", "time"), missed)
    _print_list("false alarms", ("series", "time_step", "time"), false)


def _print_list(what: str, columns: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    if not rows:
        typer.echo(f"no {what}")
        return
    if not any(row[-1] for row in rows):  # no clock
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    more = f"{len(rows) - SHOWN} more with --json or --html" if len(rows) > SHOWN else ""
    print_table(f"{len(rows)} {what}", columns, rows[:SHOWN], note=more)


def audit_verb(
    labels: Annotated[
        Path,
        typer.Argument(help="Labels (0/1): csv, txt, parquet, npy or npz, or a folder with one file for each series."),
    ],
    scores: Annotated[
        list[Path],
        typer.Argument(
            help="Scores, higher = more anomalous: the same forms; files pair by name. Give several to compare them.",
            metavar="SCORES...",
        ),
    ],
    delta_max: DeltaMax = "100",
    threshold: Annotated[
        float | None, typer.Option(help="Where alarms are raised; chosen with the labels (oracle) if not given.")
    ] = None,
    label_column: Annotated[str | None, typer.Option(help="The column of labels.")] = None,
    score_column: Annotated[
        str | None, typer.Option(help="The column of scores; of one file several: ours,theirs.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with pictures here.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write LaTeX tables (booktabs) here.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write every figure in full precision here.")] = None,
    resamples: Annotated[
        int, typer.Option(help="Draws of the events for the intervals, at least 100.", min=100, max=100_000)
    ] = 1000,
    overwrite: Overwrite = False,
    json: JsonFlag = False,
) -> None:
    """What scores are worth on these labels: SPD, the old scores, the baseline scores, and a result in words.

    Two or more sets of scores stand side by side, with intervals over events and a paired test: tisat audit labels.csv ours.csv theirs.csv
    """
    from tisat.cli.score_files import read_scored
    from tisat.metrics import audit
    from tisat.metrics.comparison import compare
    from tisat.utils.progress import progress

    outputs = {"--html": html, "--latex": latex, "--csv": csv}
    check_outputs(outputs, inputs=[labels, *scores], overwrite=overwrite)
    if csv is not None and csv.suffix not in (".csv", ".txt", ""):
        raise ParameterError(f"--csv must end in .csv or .txt. Got {str(csv)!r} instead.", parameter="csv")
    results = {
        name: read_scored(labels, path, label_column=label_column, score_column=column)
        for name, (path, column) in _sets(scores, score_column).items()
    }
    first = next(iter(results.values()))
    delay = rows_or_duration(delta_max)
    by_series = {name: dict(zip(one.names, one.scores, strict=True)) for name, one in results.items()}
    if len(results) > 1 and len(first.names) > 1:  # one order of series for all
        by_series = {name: {key: each[key] for key in first.names} for name, each in by_series.items()}
    several = {name: list(each.values()) for name, each in by_series.items()}
    audits: dict[str, Audit] = {}
    with training_reported():
        with progress("evaluating", total=len(several), lines=True) as bar:
            for name, each in several.items():
                audits[name] = audit(
                    first.labels, each, delta_max=delay, threshold=threshold, timestamps=first.timestamps,
                    names=first.names,
                )  # fmt: skip
                bar.advance()
        comparison = compare(
            first.labels, several, delta_max=delay, timestamps=first.timestamps, resamples=resamples,
            every=True, thresholds={name: one.threshold for name, one in audits.items()},
        )  # fmt: skip
    audits = {
        name: one.with_intervals({score: each[name] for score, each in comparison.intervals.items()})
        for name, one in audits.items()
    }
    columns = {"--label-column": label_column, "--score-column": score_column}
    named = [word for option, column in columns.items() if column is not None for word in (option, column)]
    command = shlex.join(
        ["tisat", "audit", labels.name, *(path.name for path in scores), "--delta-max", delta_max, *named]
    )
    _write(audits, comparison, first, several, html=html, latex=latex, csv=csv, command=command)
    if json:
        plain = {name: one.to_dict() for name, one in audits.items()}
        extra = {"intervals": comparison.to_dict()["intervals"]}
        print_json(
            {**next(iter(plain.values())), **extra} if len(plain) == 1 else {"audits": plain, **comparison.to_dict()}
        )
        return
    if len(audits) == 1:
        _print(next(iter(audits.values())), comparison)
    else:
        _print_side_by_side(audits, comparison)
    for path in (html, latex, csv):
        if path is not None:
            typer.echo(f"written to {path}", err=True)


def _sets(paths: Sequence[Path], column: str | None) -> dict[str, tuple[Path, str | None]]:
    """The file and the column of each set of scores by its name; several columns of one file are sets of their own."""
    columns = [name.strip() for name in (column or "").split(",")]
    if len(paths) == 1 and len(columns) > 1:
        return {name: (paths[0], name) for name in columns}
    return {name: (path, column) for name, path in _named(paths).items()}


def _named(paths: Sequence[Path]) -> dict[str, Path]:
    """Name each set of scores by its file, with the folder where names repeat."""
    stems = [path.name.partition(".")[0] or str(path) for path in paths]
    files: dict[str, Path] = {}
    for stem, path in zip(stems, paths, strict=True):
        name = stem if stems.count(stem) == 1 else str(path)
        if name in files:
            raise DataFileError(f"Each set of scores must be given once. Got {str(path)!r} again.")
        files[name] = path
    return files


def _write(
    audits: dict[str, Audit],
    comparison: Comparison,
    read: ScoredSeries,
    scores: dict[str, list[Any]],
    *,
    html: Path | None,
    latex: Path | None,
    csv: Path | None,
    command: str,
) -> None:
    """The page and the tables that were asked for."""
    from tisat.metrics.comparison import PAIRS
    from tisat.persistence.model_file import write_bytes
    from tisat.plotting.audit_page import audit_page, comparison_page
    from tisat.plotting.audit_tables import audit_csv, audit_layout, differences_layout

    if html is not None:
        if len(audits) == 1:
            name, one = next(iter(audits.items()))
            page = audit_page(one, names=read.names, scores=scores[name], command=command)
        else:
            page = comparison_page(audits, comparison, command=command)
        write_bytes(html, page.encode())
    if latex is not None:
        layouts = [audit_layout(audits, comparison)]
        if 1 < len(audits) <= PAIRS:  # of more the pairs are too many for a page
            layouts.append(differences_layout(comparison))
        write_bytes(latex, "\n".join(layout.latex() for layout in layouts).encode())
    if csv is not None:
        write_bytes(csv, audit_csv(audits, comparison).encode())


def _print_side_by_side(audits: dict[str, Audit], comparison: Comparison) -> None:
    from tisat.metrics.comparison import PAIRS
    from tisat.plotting.audit_tables import audit_layout

    layout = audit_layout(audits, comparison)
    beside = [f"{name}: {audit.evaluation['SPD'].verdict}" for name, audit in audits.items()]
    typer.echo("\n".join(f"* {sentence}" for sentence in (*beside, *comparison.verdict)) + "\n")
    rest = " All scores, intervals and pairs: --html or --json." if len(audits) > PAIRS else ""
    print_table(layout.title, [*layout.headers], [*layout.rows], note=layout.caption + rest)
