"""``tisat fit``: learn what is normal from a file, and keep it in one."""

from __future__ import annotations

import inspect
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tisat.cli.machines import FleetBudget, Where, budget_of, fleet_words, read_machines, refuse_failed, same_machine
from tisat.cli.options import How, Period, RuleSet, read_settings, reads_files, rule_of
from tisat.cli.output import JsonFlag, print_json, training_reported
from tisat.cli.output_files import Overwrite, check_outputs
from tisat.utils.types import JsonDict, Params

if TYPE_CHECKING:
    from tisat.batch import FitEach, Machine

SHOWN_NOTES = 3  # of a fleet, the most frequent
SHOWN_MACHINES = 3  # that a note is of


@reads_files
def fit(
    out: Annotated[Path, typer.Option(help="Write the fitted detector here.")],
    files: Annotated[
        list[str] | None, typer.Argument(help="Files of normal rows, folders or patterns.", metavar="FILE...")
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(help="A file of normal rows, a folder or a pattern; give it again for more.", metavar="FILE"),
    ] = None,
    detector: Annotated[
        str | None, typer.Option(help="A name of `tisat detectors`; the default one sees most kinds of faults.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the detector, name=value; give it again for more.")
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            help="Tail of each file kept from the model, to calibrate alarms on; by default cheap detectors are cross-fitted instead.",
            min=0.0,
            max=0.5,
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="False alarms you accept: 1/day (the default), 3/week, '1/1000 rows', 0.001."),
    ] = None,
    fleet_budget: FleetBudget = None,
    each_one: Annotated[
        bool, typer.Option("--each", help="One model for each machine, into the folder --out; else one for all.")
    ] = False,
    group_by: Annotated[
        str | None,
        typer.Option(
            help="With --each: machines of a group share a model, and each keeps a threshold of its own. auto (machines alike), a csv file "
            "with the columns machine and group, or a regular expression that finds the group in a machine's name."
        ),
    ] = None,
    where: Where = Where(),
    counter: Annotated[
        list[str] | None,
        typer.Option(
            help="A channel that only grows, to be looked at by its growth; give it again for more. Recognised unless given."
        ),
    ] = None,
    no_counter: Annotated[
        list[str] | None,
        typer.Option(help="A channel that is no counter though it only grows; give it again for more."),
    ] = None,
    rule: Annotated[str, typer.Option(help="Alarm rule: excess, threshold, paper or drift.")] = "excess",
    rule_set: RuleSet = None,
    method: Annotated[
        str,
        typer.Option(
            help="How the threshold is found: auto, episodes or bootstrap; for the paper rule also its formulas."
        ),
    ] = "auto",
    control: Annotated[
        bool,
        typer.Option(help="Let the threshold follow the alarms, so that in the long run weak ones keep to the budget."),
    ] = True,
    contaminated: Annotated[
        bool,
        typer.Option(
            "--contaminated",
            help="The files may hold anomalies: rows that stand out by the detector's own out-of-sample scores are left out.",
        ),
    ] = False,
    period: Period = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="For neural detectors: keep in this file where training stands after every epoch, and say so."
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from --checkpoint if it exists.")] = False,
    overwrite: Overwrite = False,
    json: JsonFlag = False,
    how: How | None = None,
) -> None:
    """Learn what is normal, find the threshold for a budget, and keep both in one file."""
    from tisat import registry
    from tisat.alarms.rules import make_rule
    from tisat.alarms.sentences import schedule_note, switches_note
    from tisat.batch.consecutive import joined_note
    from tisat.batch.likeness import likeness
    from tisat.datasets.sizes import (
        FOR_FEW,
        LEAST_FOR_DEFAULT,
        LEAST_ROWS,
        is_small,
        missing_notes,
        size_notes,
    )
    from tisat.errors import CalibrationWarning, InputError, ParameterError, SeriesError
    from tisat.io.counters import choose_counters, difference, said_of
    from tisat.utils.near_names import meant
    from tisat.watch import Watch

    cls = registry.resolve(registry.DEFAULT if detector is None else detector)
    values = read_settings(settings or [])
    parameter_names = [name for name in inspect.signature(cls.__init__).parameters if name != "self"]
    for name in values:
        if name not in parameter_names:
            raise ParameterError(
                f"The detector {registry.name_of(cls)!r} must be given parameters it has: {', '.join(parameter_names)}. Got {name!r} instead.{meant(name, parameter_names)}"
            )
    alarm_rule = rule_of(rule, rule_set) or rule
    make_rule(alarm_rule)  # refused before files are read
    if not out.resolve().parent.is_dir():
        raise InputError(f"The folder of --out must exist. There is no {str(out.resolve().parent)!r}.")
    if not each_one and out.is_dir():
        raise InputError(
            f"--out must be a file. {str(out)!r} is a folder: --each fits a model for each machine into it."
        )
    if not each_one:
        outputs = {"--out": out, **({} if resume else {"--checkpoint": checkpoint})}
        reads = [*(files or []), *(train or []), *([checkpoint] if resume else [])]
        check_outputs(outputs, inputs=reads, overwrite=overwrite)
    options: Params = {}
    if checkpoint is not None or resume:
        if "checkpoint" not in inspect.signature(cls.fit).parameters:
            raise ParameterError(f"The detector {registry.name_of(cls)!r} must be a neural one to keep checkpoints.")
        if checkpoint is None:
            raise ParameterError("--resume must come with --checkpoint: the file to go on from.")
        options = {"checkpoint": checkpoint, "resume": resume}
    how = how or {}
    train = [*(files or []), *(train or [])]
    if not train:
        raise InputError("tisat fit must be given files of normal rows. Got none: tisat fit good.csv --out model.tisat")
    if each_one:
        from tisat.batch import FitEach, find_machines

        if counter and group_by is not None:
            raise ParameterError(
                "--counter must come without --group-by: a shared model looks at channels as they are."
            )
        known_machines = find_machines(train, how)
        fit_options = {
            "budget": budget_of(budget, fleet_budget, len(known_machines)),
            "rule": alarm_rule,
            "method": method,
            "control": control,
            "period": period,
            **({"counters": counter} if counter else {}),
            **({"contaminated": True} if contaminated else {}),
        }
        job = FitEach(
            registry.name_of(cls), str(out), values, fit_options, {"holdout": holdout}, how, {}, no_counter or ()
        )
        _check_folder(known_machines, out)
        if group_by is not None:
            job = replace(job, shared=_fit_groups(known_machines, job, out, group_by, where))
        left = _left_to_fit(known_machines, job, train, overwrite=overwrite)
        _fit_each(known_machines, left, job, out, where, json=json)
        return
    if group_by is not None:
        raise ParameterError("--group-by is for a model of each machine: it must come with --each.")
    if where.engine != "local" or where.address is not None:
        raise ParameterError(
            "--engine is for many models: it must come with --each. One model is fitted in this process."
        )
    series = pooled = list(read_machines(train, how, jobs=where.jobs).values())
    names = choose_counters(series, counter or (), no_counter or ())
    grown = [difference(one, names, period=one.period) for one in series]
    alike = likeness(grown) if len(series) > 1 else None
    files_joined = ""
    if whole := same_machine(train, series):
        files_joined = joined_note([one.name for one in series], unlike=alike is not None and alike.unlike)
        series, alike = [whole], None
    default = registry.name_of(cls) == registry.DEFAULT
    if holdout is None and (rows := sum(map(len, series))) < (LEAST_FOR_DEFAULT if default else LEAST_ROWS):
        other = f" for prism, {LEAST_ROWS} with --detector {FOR_FEW}"
        raise InputError(
            f"tisat fit must be given at least {LEAST_FOR_DEFAULT if default else LEAST_ROWS} rows{other if default else ''}. Got {rows} instead."
        )
    budget = budget_of(budget, fleet_budget, len(series))
    findings = {name: text for one in series for name, text in one.seen.items()}
    size = size_notes(sum(map(len, series)), series[0].n_channels)
    if detector is not None and is_small(sum(map(len, series))):
        size = ()  # somebody has chosen
    size = (*size, *missing_notes(sum(one.missing for one in series), sum(one.values.size for one in series)))
    for note in () if json else size:
        typer.echo(f"note: {note}", err=True)  # before memory and minutes are spent
    watch = Watch(
        cls(**values), budget=budget, rule=alarm_rule, method=method, control=control, period=period, counters=names,
        contaminated=contaminated,
    )  # fmt: skip
    watch.reading = {**how, **({"seen": findings} if findings else {})}
    with warnings.catch_warnings(), training_reported():
        warnings.simplefilter("ignore", CalibrationWarning)  # the notes of the calibration say the same
        try:
            watch.fit(series, holdout=holdout, **options)
        except SeriesError as error:
            if len({frozenset(one.channels) for one in series}) == 1:
                raise
            raise SeriesError(f"{error} For machines that differ: --each, a model for each machine.") from None
        except KeyboardInterrupt:
            typer.echo(
                _interrupted(checkpoint, in_epochs="checkpoint" in inspect.signature(cls.fit).parameters), err=True
            )
            raise
    watch.save(out)
    fitted, calibration = watch.detector, watch.calibration
    told = [name for name in names if name not in (counter or [])]
    notes = (
        [note for one in series for note in one.notes]
        + ([said_of(told, pooled)] if told else [])
        + list(calibration.notes)
    )
    if switches := [watch.channels[c] for c, _ in getattr(fitted, "switches", ())]:
        notes.append(switches_note(switches, modes=bool(getattr(fitted, "knows_modes", False))))
    if times := getattr(fitted, "scheduled_times", ""):
        notes.append(schedule_note(times))
    if files_joined:
        notes.append(files_joined)
    if json:
        notes = [*size, *notes]
    if len(series) > 1:
        notes.append(fleet_words(calibration.budget, len(series)))
    if alike is not None and alike.unlike:
        notes.append(str(alike))
    summary = {
        "model": str(out),
        "detector": repr(fitted),
        "rows": fitted.trained_on_["rows"],
        "channels": fitted.n_channels_,
        "normal_points": len(fitted.normal_),
        "normal_source": fitted.normal_source_,
        "bytes": out.stat().st_size,
        "budget": calibration.budget,
        "calibration": calibration.to_json(),
        "notes": notes,
    }
    if json:
        print_json(summary)
        return
    for note in dict.fromkeys(notes):
        typer.echo(f"note: {note}", err=True)
    typer.echo(
        f"{summary['detector']} fitted on {summary['rows']:,} rows of {summary['channels']} channel{'s' * (summary['channels'] != 1)}; "
        f"written to {out} ({summary['bytes']:,} bytes)"
    )
    typer.echo(str(calibration))
    if budget is None:
        other = "3/week" if watch.period is not None else "'1/1000 rows'"
        typer.echo(f"That budget is the default; for another: --budget {other}")


def _interrupted(checkpoint: Path | None, *, in_epochs: bool) -> str:
    """The sentence about a training that was interrupted: what is kept, and how to continue."""
    if checkpoint is not None and checkpoint.exists():
        return f"tisat: interrupted. {checkpoint} holds the finished epochs: the same command with --resume continues after them."
    if checkpoint is not None:
        return "tisat: interrupted before the first epoch ended: nothing is kept."
    more = " --checkpoint FILE keeps every finished epoch, and --resume continues." if in_epochs else ""
    return f"tisat: interrupted, and nothing is kept.{more}"


def _check_folder(machines: list[Machine], out: Path) -> None:
    """Make the folder of models; refuse machines that cannot be files of it."""
    from tisat.errors import InputError

    if out.exists() and not out.is_dir():
        raise InputError(
            f"--out must be a folder with --each: one model for each machine goes there. Got the file {str(out)!r}."
        )
    out.mkdir(exist_ok=True)
    names = (one.name for one in machines)
    wrong = next((name for name in names if Path(name).name != name or name.startswith(".")), None)
    if wrong is not None:
        raise InputError(f"The name of a machine must do as the name of a file with --each. Got {wrong!r} instead.")


def _fit_groups(machines: list[Machine], job: FitEach, out: Path, asked: str, where: Where) -> dict[str, str]:
    """A model for each group of machines, in the folder ``groups``; the file each machine shares."""
    from tisat.batch import Describe, FitGroup, Machine, group_machines
    from tisat.batch.groups import AUTO

    def looked_at() -> list[Any]:
        found = {one.machine: one for one in where.each(Describe(job.how), machines)}
        return [found[machine.name] for machine in machines]

    groups = group_machines(asked, machines, looked_at)
    members: dict[str, list[Machine]] = {}
    for machine in machines:
        if machine.name in groups:
            members.setdefault(groups[machine.name], []).append(machine)
    folder = out / "groups"
    folder.mkdir(exist_ok=True)
    files = {name: f"group-{number + 1}" for number, name in enumerate(members)}
    learn = FitGroup(
        job.detector, str(folder), {files[name]: tuple(many) for name, many in members.items()}, job.settings, job.how,
        alike=asked == AUTO,
    )  # fmt: skip
    done = where.each(learn, [Machine(files[name], ()) for name in members])
    rows = {row["machine"]: row for row in done}
    for name, many in members.items():
        trouble = rows[files[name]]["trouble"]
        typer.echo(
            f"group {name}: {len(many)} machine{'s' * (len(many) != 1)}"
            + (f"; no model for all, each gets one of its own: {trouble}" if trouble else ""),
            err=True,
        )
        if unlike := rows[files[name]].get("unlike"):
            typer.echo(f"note: {unlike} Without --group-by each gets a model of its own.", err=True)
    return {
        machine.name: rows[files[name]]["model"]
        for name, many in members.items()
        for machine in many
        if not rows[files[name]]["trouble"]
    }


def _left_to_fit(machines: list[Machine], job: FitEach, train: list[str], *, overwrite: bool) -> list[Machine]:
    """The machines without a model made this very way; a model made in another way is not replaced unasked."""
    begun = job.before()
    own = {one.name for one in machines if begun.get(one.name, {}).get("key") == job.key(one)}
    targets = {
        kind: {f"--out ({one.name})": job.file(one) for one in machines if (one.name in own) == kind}
        for kind in (True, False)
    }
    check_outputs(targets[True], inputs=train, overwrite=True)
    check_outputs(targets[False], inputs=train, overwrite=overwrite)
    return [one for one in machines if one.name not in own or begun[one.name]["trouble"] or not job.file(one).is_file()]


def _kinds_of_notes(found: list[JsonDict]) -> list[tuple[str, list[str]]]:
    """The notes with the machines they are of, the most frequent first; those that differ in numbers alone are one kind, worded as of the first."""
    kinds: dict[str, tuple[str, list[str]]] = {}
    for finding in found:
        for note in finding.get("notes", ()):
            whose = kinds.setdefault(re.sub(r"\d+([.,:]\d+)*( (s|min|h|d)\b)?", "0", note), (note, []))[1]
            if finding["machine"] not in whose[-1:]:
                whose.append(str(finding["machine"]))
    return sorted(kinds.values(), key=lambda kind: -len(kind[1]))


def _fit_each(
    machines: list[Machine], left: list[Machine], job: FitEach, out: Path, where: Where, *, json: bool
) -> None:
    """A model for each machine, in a folder; what was fitted before the very same way is left as it is."""
    before, again = job.before(), {one.name for one in left}
    unchanged = {one.name: before[one.name] for one in machines if one.name not in again}
    job.begin(left)
    if unchanged:
        typer.echo(
            f"{len(unchanged)} of {len(machines)} were fitted before in the same way, and are left as they are",
            err=True,
        )
    fresh = []
    for row in where.each(job, left):
        job.keep(row)
        fresh.append(row)
    rows = sorted([*unchanged.values(), *fresh], key=lambda row: str(row["machine"]))
    if json:
        print_json(rows)
        return
    budget = next((str(one["budget"]) for one in rows if one.get("budget")), "")
    if budget and len(rows) > 1:
        typer.echo(fleet_words(budget, len(rows)))
    good = sum(not one["trouble"] for one in rows)
    typer.echo(f"{good} models of {len(rows)} machines written to {out}")
    notes = _kinds_of_notes(rows)
    for note, whose in notes[:SHOWN_NOTES]:
        few = ", ".join(whose[:SHOWN_MACHINES])
        named = few if len(whose) <= SHOWN_MACHINES else f"such as {few}"
        typer.echo(f"note ({len(whose)} of {len(rows)}, {named}): {note}", err=True)
    if len(notes) > SHOWN_NOTES:
        more = len(notes) - SHOWN_NOTES
        typer.echo(f"{more} more kind{'s' * (more != 1)} of notes; --json prints the notes of every machine", err=True)
    refuse_failed(rows, "fitted", "The same command again repeats these alone.")
