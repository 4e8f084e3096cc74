"""``tisat update``, ``tisat recalibrate``, ``tisat label``: life after day one. Nothing changes by itself."""

from __future__ import annotations

import csv
import io
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tisat.cli.machines import SUFFIX, Where, read_machine, read_machines, reading_of, refuse_failed
from tisat.cli.options import How, Model, reads_files
from tisat.cli.output import JsonFlag, print_json
from tisat.cli.output_files import Overwrite, check_outputs

if TYPE_CHECKING:
    from tisat.watch import Watch

Out = Annotated[Path, typer.Option(help="Write the new model here; the old one stays as it is.")]


@reads_files
def update(
    model: Model,
    train: Annotated[
        list[str],
        typer.Option(help="Files, folders or patterns of normal rows, the old ones too; give it again for more."),
    ],
    out: Out,
    where: Where = Where(),
    overwrite: Overwrite = False,
    json: JsonFlag = False,
    how: How | None = None,
) -> None:
    """Fit a model again with the same settings: detector, rule, budget, channels and how files are read.

    A model keeps no rows, so give the files it was fitted on together with the new ones. Of a folder of models (tisat fit --each)
    each machine's is fitted again, into the folder --out.
    """
    from tisat.watch import Watch

    if model.is_dir():
        _update_each(model, train, out, how or {}, where, overwrite=overwrite, json=json)
        return
    check_outputs({"--out": out}, inputs=[*train, model], overwrite=overwrite)
    watch = Watch.load(model)
    reading = {**watch.reading, **(how or {})}
    series = list(read_machines(train, reading).values())
    watch.reading = reading
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the notes of the calibration say the same
        fresh = watch.refitted(series)
    fresh.save(out)
    _print_change(watch, fresh, out, json=json)


def _update_each(
    model: Path, train: list[str], out: Path, how: How, where: Where, *, overwrite: bool, json: bool
) -> None:
    """Every machine's model again, into a folder."""
    from tisat.batch import UpdateEach, find_machines
    from tisat.errors import InputError

    if out.exists() and not out.is_dir():
        raise InputError(f"--out must be a folder for the models of a folder. Got the file {str(out)!r}.")
    machines = find_machines(train, {**reading_of(model), **how})
    targets = {f"--out ({one.name})": out / f"{one.name}{SUFFIX}" for one in machines}
    check_outputs(targets, inputs=[*train, model], overwrite=overwrite)
    out.mkdir(exist_ok=True)
    rows = where.rows(UpdateEach(str(model), str(out), how), machines)
    if json:
        print_json(rows)
        return
    good = sum(not row["trouble"] for row in rows)
    typer.echo(f"{good} models of {len(rows)} machines fitted again, written to {out}")
    refuse_failed(rows, "fitted")


def recalibrate(
    model: Model,
    out: Out,
    budget: Annotated[str, typer.Option(help="False alarms you accept from now on: 1/day, 3/week, daily, 0.1%.")],
    overwrite: Overwrite = False,
    json: JsonFlag = False,
) -> None:
    """Find the threshold for another budget, from what the model keeps of its normal data."""
    from tisat.watch import Watch

    check_outputs({"--out": out}, inputs=[model], overwrite=overwrite)
    watch = Watch.load(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the notes of the calibration say the same
        fresh = watch.recalibrated(budget)
    fresh.save(out)
    _print_change(watch, fresh, out, json=json)


def _print_change(kept: Watch, fresh: Watch, out: Path, *, json: bool) -> None:
    before, after = kept.calibration, fresh.calibration
    notes = list(dict.fromkeys(after.notes))
    if json:
        print_json({"model": str(out), "before": before.to_json(), "after": after.to_json(), "notes": notes})
        return
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"before: budget {before.budget}, h = {before.threshold:.4g}")
    typer.echo(f"now:    budget {after.budget}: {after}")
    typer.echo(f"written to {out}")


@reads_files
def label(
    alarms: Annotated[
        Path,
        typer.Argument(
            help="A table of alarms (tisat alarm --out a.csv) with a column 'label': false, true, expected or new normal.",
            metavar="ALARMS",
        ),
    ],
    file: Annotated[str, typer.Argument(help="The file the alarms were raised on.", metavar="FILE")],
    model: Model,
    out: Annotated[
        Path | None, typer.Option(help="Take the proposal: write the model with its threshold and patterns here.")
    ] = None,
    take: Annotated[
        str,
        typer.Option(
            help="What --out takes: threshold, patterns (of two labelled alarms or more, that hide no true one), both, or all (patterns of one alarm, too)."
        ),
    ] = "both",
    overwrite: Overwrite = False,
    json: JsonFlag = False,
    how: How | None = None,
) -> None:
    """Say what alarms were, and see the threshold and the patterns that follow: nothing changes unless --out takes it.

    An alarm of a pattern that was taken is known: it stays in every table, and nobody is called.
    """
    from tisat.alarms.episode_log import LABELS, EpisodeRecord, propose
    from tisat.alarms.patterns import FEWEST, PROPOSING, known_by, propose_patterns
    from tisat.errors import InputError
    from tisat.utils.near_names import meant
    from tisat.utils.validation import check_choice
    from tisat.watch import Watch

    check_outputs({"--out": out}, inputs=[alarms, file, model], overwrite=overwrite)
    watch = Watch.load(model)
    series = read_machine(file, {**watch.reading, **(how or {})}, verb="label")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alarms_now = watch.alarms(series)
    record = EpisodeRecord.beside(watch.calibration)
    record.run(alarms_now.statistic.tolist())
    check_choice(take, "take", "tisat label", choices=("threshold", "patterns", "both", "all"))
    count, labels = 0, {}
    rows, accepted = _labels(alarms, series.name)
    for row, word, where in rows:
        if word not in LABELS:
            raise InputError(
                f"A label of {str(alarms)!r} must be {', '.join(LABELS[1:])}, or empty. Got {word!r} in {where} instead.{meant(word, LABELS[1:])}"
            )
        if word != "unlabelled":
            labels[row] = word
            count += 1
    if not rows and accepted:
        raise InputError(
            f"The table {str(alarms)!r} must have alarms of {series.name!r}, the name of {file!r}. Got those of "
            f"{', '.join(map(repr, accepted[:5]))}; give the file they were raised on."
        )
    if not count:
        raise InputError(
            f"The table {str(alarms)!r} must have labels in a column 'label': {', '.join(LABELS[1:])}. Got none; add the column "
            "in a spreadsheet, or in any editor."
        )
    patterns = propose_patterns(alarms_now.alarms, labels)
    least = {"threshold": math.inf, "all": 1}.get(take, FEWEST)
    taken = [pattern for pattern in patterns if pattern.safe and pattern.labelled >= least]
    left = [pattern.pattern for pattern in taken] if take != "patterns" else []
    covered = {
        alarm.raised for alarm in alarms_now.alarms if labels.get(alarm.raised) in PROPOSING and known_by(alarm, left)
    }
    for row, word in labels.items():
        record.label(row, "expected" if row in covered else word)  # what a pattern knows asks for no other threshold
    proposal = propose(watch.calibration, record)
    adopted = watch.at(watch.calibration)
    if take != "patterns":
        adopted.adopt(proposal)
    for pattern in taken:
        adopted.adopt(pattern)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alarms_then = adopted.alarms(series)
    calls = {
        "now": sum(not alarm.known for alarm in alarms_now),
        "then": sum(not alarm.known for alarm in alarms_then),
        "known": sum(bool(alarm.known) for alarm in alarms_then),
    }
    if out is not None:
        adopted.save(out)
    if json:
        print_json(
            {
                "labels": count,
                "words": proposal.words,
                "after": proposal.after.to_json(),
                "calls": calls,
                "model": out and str(out),
                "patterns": [{**pattern.to_json(), "taken": pattern in taken} for pattern in patterns],
            }
        )
        return
    left_out = (
        [
            f"{len(covered)} of {count} labelled alarms are left to the patterns, {count - len(covered)} to the threshold."
        ]
        if covered
        else []
    )
    why_not = {False: " (not taken, it hides what was true)", True: " (of one alarm: --take all takes it)"}
    lines = [
        f"pattern {k}{'' if pattern in taken or take == 'threshold' else why_not[pattern.safe]}: {pattern.words}"
        for k, pattern in enumerate(patterns, 1)
    ]
    typer.echo("\n".join([*left_out, *proposal.words, *lines]))
    typer.echo(_calls_in_words(**calls))
    numbers = [str(k) for k, pattern in enumerate(patterns, 1) if pattern in taken]
    parts = ["the threshold"] * (take != "patterns")
    parts += [f"pattern{'s' * (len(numbers) > 1)} {', '.join(numbers)} of {len(patterns)}"] * bool(numbers)
    content = " and ".join(parts) or "nothing new: no pattern is taken"
    typer.echo(
        f"nothing has changed; --out writes a model with {content} (--take chooses)"
        if out is None
        else f"written to {out}: {content}"
    )


def _calls_in_words(now: int, then: int, known: int) -> str:
    """The calls of a replay with everything taken together, beside those of the model in force."""
    known_words = f" ({known} known)" if known else ""
    more = f" That is {then - now} more than now; --take patterns leaves the threshold as it is." if then > now else ""
    more = more or " The labels are from this file: in new weeks the gain will be smaller." * (then < now)
    return f"In this file people would be called {then} time{'s' * (then != 1)} instead of {now}{known_words}.{more}"


def _labels(path: Path, machine: str) -> tuple[list[tuple[int, str, str]], list[str]]:
    """Rows and labels of a table of alarms with their places in it, and the other machines that it has alarms of."""
    from tisat.errors import DataFileError
    from tisat.io.compression import SHEETS, sheet_text

    if not path.is_file() or path.suffix not in (".csv", *SHEETS):
        raise DataFileError(
            f"The table of alarms {str(path)!r} must be a csv file, as tisat alarm --out writes it, or an xlsx file of it."
        )
    content = path.read_bytes() if path.suffix == ".csv" else sheet_text(path)[0]
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:  # a spreadsheet has saved it in the encoding of its system
        text = content.decode("cp1252", errors="replace")
    first = text.partition("\n")[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
    labelled_rows, accepted = [], []
    for number, row in enumerate(rows):
        whose = (row.get("series") or machine).removeprefix("'")
        if whose != machine:
            accepted.append(whose)
            continue
        try:
            raised = int(row["raised"])
        except (KeyError, TypeError, ValueError):
            raise DataFileError(f"The table {str(path)!r} must have rows in 'raised'. Row {number} has not.") from None
        where = f"line {number + 2} (raised {row.get('raised_time') or f'at row {raised}'})"
        labelled_rows.append((raised, (row.get("label") or "").strip().lower() or "unlabelled", where))
    return labelled_rows, list(dict.fromkeys(accepted))
