"""``tisat alarm``: the alarms of a file, within a false-alarm budget."""

from __future__ import annotations

import re
import shlex
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tisat.cli.machines import FleetBudget, Where, budget_of, fleet_words, reading_of
from tisat.cli.options import How, Model, Overrides, Tolerance, open_watch, reading_text, reads_files
from tisat.cli.output import JsonFlag, print_json, print_table
from tisat.cli.output_files import Overwrite, check_outputs, save_figure
from tisat.utils.types import JsonDict

if TYPE_CHECKING:
    from tisat.alarms import Alarm, Alarms
    from tisat.batch import MachineAlarms
    from tisat.gap_filling import Silence
    from tisat.series import Series
    from tisat.utils.types import Array

MOST = 20  # alarms in the printed table
LEAST = 0.005  # a share below it is not worth a word


@dataclass(frozen=True)
class AlarmOutputs:
    """The files that alarms are written to, and how many channels they show."""

    out: Annotated[Path | None, typer.Option(help="Write the alarms here: .csv, .parquet or .jsonl.")] = None
    picture: Annotated[Path | None, typer.Option(help="Draw them here: .png, .svg or .pdf.")] = None
    html: Annotated[
        Path | None, typer.Option(help="Write a page here to look at, zoom and send on: one file, no network.")
    ] = None
    shown: Annotated[int, typer.Option("--show-channels", help="Channels to draw and to name.", min=0)] = 3

    def check(self, inputs: Sequence[str | Path], *, overwrite: bool) -> None:
        """Refuse files that are there already or are read, and tables of a kind that cannot be written."""
        from tisat.alarms.files import table_suffix

        outputs = {"--out": self.out, "--picture": self.picture, "--html": self.html}
        check_outputs(outputs, inputs=inputs, overwrite=overwrite)
        if self.out is not None:
            table_suffix(self.out)  # before rows are scored, not after

    def write(self, alarms: Alarms, series: Series, expected: tuple[Array, Array] | None, command: str) -> None:
        """Write the table, the picture and the page of one series, each where it was asked for."""
        if self.out is not None:
            alarms.write(self.out)
        if self.picture is not None:
            save_figure(alarms.plot(series, channels=self.shown), self.picture)
        if self.html is not None:
            from tisat.persistence.model_file import write_bytes
            from tisat.plotting.alarm_page import alarm_page

            write_bytes(self.html, alarm_page(alarms, series, expected=expected, command=command).encode())

    def report(self, alarms: Alarms, name: str, notes: Sequence[str], *, json: bool) -> None:
        """Print the alarms of one series, as a table or as JSON."""
        if json:
            print_json(document_of(alarms) | {"notes": list(dict.fromkeys(notes))})
            return
        show_alarms(alarms, name, notes, shown=self.shown)
        if self.html is not None:
            typer.echo(f"page written to {self.html}", err=True)


@reads_files
def alarm(
    files: Annotated[
        list[str], typer.Argument(help="Files, folders or patterns such as 'plant/*.csv'.", metavar="FILE...")
    ],
    model: Model,
    overrides: Overrides = Overrides(),
    fleet_budget: FleetBudget = None,
    tolerance: Tolerance = Tolerance(),
    outputs: AlarmOutputs = AlarmOutputs(),
    suppress: Annotated[
        list[str] | None,
        typer.Option(
            help="Mark alarms about this, do not drop them: CHANNEL, CHANNEL:up, CHANNEL:down, CHANNEL:2.5 (a smaller change, in its units), CHANNEL:5%, CHANNEL:down:2.5. CHANNEL may be a pattern."
        ),
    ] = None,
    where: Where = Where(),
    overwrite: Overwrite = False,
    json: JsonFlag = False,
    how: How | None = None,
) -> None:
    """Raise the alarms of a file: when, since when, until when, which channels, and what the budget was worth.

    Of many machines (several files, a folder, --entity) the ones that need attention first.
    """
    from tisat.alarms.ongoing import called
    from tisat.alarms.suppression import Suppression
    from tisat.batch import AlarmEach, find_machines
    from tisat.batch.consecutive import in_turn
    from tisat.batch.machines import model_file
    from tisat.errors import CalibrationWarning, ParameterError, SeriesWarning
    from tisat.persistence.model_file import write_bytes
    from tisat.watch import Watch
    from tisat.watch.gap_notes import gaps_note

    outputs.check([*files, model], overwrite=overwrite)
    html = outputs.html
    rules = [Suppression.parse(one) for one in suppress or ()]
    loaded = None if model.is_dir() else Watch.load(model)
    reading = {**(reading_of(model) if loaded is None else loaded.reading), **(how or {})}
    machines = find_machines(files, reading)
    overrides = replace(overrides, budget=budget_of(overrides.budget, fleet_budget, len(machines)))
    if len(machines) > 1:
        if outputs.picture is not None:
            raise ParameterError(f"--picture draws one machine. Got {len(machines)}; --html draws them all.")
        job = AlarmEach(str(model), vars(tolerance), overrides.settings, how or {}, drawn=html is not None)
        results = list(where.each(job, machines))
        results = [one.suppress(rules) for one in results] if rules else results
        results.sort(key=lambda one: (*one.urgency(), one.machine), reverse=True)
        budget = next((each.budget for one in results for each in one.alarms), overrides.budget or "")
        words = fleet_words(budget, len(machines)) if budget else ""
        shared = budget or ("" if loaded is None else loaded.calibration.budget)
        clocked = loaded is not None and all(one.clock for one in results)
        if clocked and " over " not in shared and in_turn((one.first, one.last) for one in results):
            words = f"These files follow each other in time: of one machine, they share the budget {shared}."
        if html is not None:
            from tisat.plotting.fleet_page import fleet_page

            command = _command(files, model, overrides, how)
            write_bytes(html, fleet_page(results, budget=words, command=command).encode())
            typer.echo(f"page written to {html}", err=True)
        _fleet(results, out=outputs.out, json=json, words=words)
        return
    series = machines[0].read(reading)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalibrationWarning)
        warnings.simplefilter("always", SeriesWarning)
        watch = open_watch(model_file(model, series.name), overrides, loaded=loaded)
        alarms = watch.alarms(series, **vars(tolerance))
        if rules:
            alarms = alarms.suppress(*(Suppression.parse(one, channels=watch.channels) for one in suppress or ()))
    checked, expected = series, None
    if html is not None:
        from tisat.plotting.charts import rows_drawn
        from tisat.watch.protocols import check_series

        checked = check_series(watch.detector, series, ignore_extra=tolerance.ignore_extra)
        expected = watch.detector.expected(checked, at=rows_drawn(len(checked)))
    outputs.write(alarms, checked, expected, _command(files, model, overrides, how))
    moved = [str(alarms.movement)] if alarms.movement is not None and alarms.movement.moved else []
    if moved and (merged := len(alarms) - len(called(alarms))):
        moved[0] += f" {merged} of those counted were merged."
    gaps = gaps_note(series, alarms.scores, period=watch.period)
    notes = [
        *moved,
        *filter(None, [gaps]),
        *series.notes,
        *alarms.calibration.notes,
        *(str(warning.message) for warning in caught),
    ]
    if advice := alarms.calibration.advice:  # alone: the lines of the calibration say the rest
        notes = [*(note for note in notes if not note.endswith(advice)), advice]
    outputs.report(alarms, series.name, notes, json=json)


def _command(files: Sequence[str], model: Path, overrides: Overrides, how: How | None) -> str:
    """The command that a page shows; of files elsewhere the names alone, because pages are sent on."""
    paths = [*map(Path, files), model]
    *read, used = (shlex.quote(path.name if path.is_absolute() else str(path)) for path in paths)
    said = {name: value for name, value in vars(overrides).items() if value is not None}
    said.pop("rule_set", None)
    if (control := said.pop("control", None)) is not None:
        said["control" if control else "no_control"] = True
    sets = "".join(f" --rule-set {shlex.quote(one)}" for one in overrides.rule_set or ())
    return f"tisat alarm {' '.join(read)} --model {used}{reading_text(said)}{sets}{reading_text(how)}"


def document_of(found: Alarms) -> JsonDict:
    """The alarms of one series as JSON says them."""
    return {
        "calibration": found.calibration.to_json(),
        "rows": vars(found.tally),
        "alarms": found.to_rows(),
        "movement": None if found.movement is None else vars(found.movement),
        "data": [one.to_json() for one in found.silences],
    }


def show_alarms(found: Alarms, name: str, notes: Sequence[str], *, shown: int) -> None:
    """Print the alarms of one series as a table, of very many the strongest, and the channels that fell silent."""
    from tisat.alarms.ongoing import called, count_words
    from tisat.alarms.recurrence import recurrence_lines

    def first(one: Alarm) -> tuple[bool, float]:
        return one.cleared is None, one.peak / one.threshold if one.threshold else one.peak

    listed = sorted(sorted(found, key=first, reverse=True)[:MOST], key=lambda one: one.raised)
    left = len(found) - len(listed)
    more = [f"listed: what is still on and the strongest; {left:,} more with --out or --json"] if left else []

    repeated = [f"recurring: {line}" for line in recurrence_lines(called(found))]
    print_table(
        f"{name}: {count_words(found)}{_quiet(found)}; {found.tally}",
        ["raised", "since - until", "x h", "why"],
        [_row(one, shown) for one in listed],
        note="\n".join([*more, *repeated, str(found.calibration), *(f"note: {note}" for note in dict.fromkeys(notes))]),
    )
    if found.silences:
        print_table(
            f"{name}: channels that fell silent (alarms about the data, outside the budget)",
            ["channel", "since", "noticed", "back"],
            [[one.channel, *_moments(one)] for one in found.silences],
        )


def _quiet(found: Alarms) -> str:
    suppressed, known = len(found) - len(found.unsuppressed), sum(bool(one.known) for one in found)
    return (f", {suppressed} of them suppressed" if suppressed else "") + (f", {known} of them known" if known else "")


def _fleet(found: list[MachineAlarms], *, out: Path | None, json: bool, words: str) -> None:
    """Many machines: what needs attention first."""
    from tisat.alarms.files import write_table
    from tisat.alarms.ongoing import called, count_words, merged_words
    from tisat.errors import SeriesError

    notes = [(re.sub(r"\d[\d.,:-]*", "0", note), note, one.machine) for one in found for note in one.notes]
    for kind, count in Counter(kind for kind, *_ in notes).most_common():  # those that differ in numbers are one kind
        alike = [(note, machine) for other, note, machine in notes if other == kind]
        which = f", such as {alike[0][1]}" if len({note for note, _ in alike}) > 1 else ""
        typer.echo(f"note ({count} of {len(found)}{which}): {alike[0][0]}", err=True)
    every = [one for outcome in found for one in (*outcome.alarms, *outcome.quiet)]
    every.sort(key=lambda one: (one.series, one.raised))
    if out is not None:
        write_table(out, every)
    if json:
        print_json([one.to_json() for one in found])
    else:
        loud = [one for one in found if one.alarms or one.trouble or one.silent]
        loud_alarms = [alarm for one in found for alarm in one.alarms]
        print_table(
            f"{len(found)} machines: {count_words(called(loud_alarms))} on {sum(bool(one.alarms) for one in found)} of them, "
            f"{sum(one.active for one in found)} still on; {sum(bool(one.trouble) for one in found)} could not be scored{merged_words(loud_alarms, '; ')}",
            ["machine", "alarms", "last raised", "judged", "strongest", "why"],
            [_summary(one) for one in loud],
            note=_attention(found)
            + _suppressed(found)
            + ("" if out is None else f"; all alarms are in {out}")
            + (f"\n{words}" if words else ""),
        )
    failed = [one for one in found if one.trouble]
    if len(failed) == len(found):
        raise SeriesError(f"Not one machine could be judged. The first: {found[0].machine}: {found[0].trouble}")
    if failed:
        first = f"The first: {failed[0].machine}: {failed[0].trouble}"
        typer.echo(f"tisat: {len(failed)} of {len(found)} machines could not be scored. {first}", err=True)
        raise typer.Exit(1)


def _attention(found: Sequence[MachineAlarms]) -> str:
    failed = sum(bool(one.trouble) for one in found)
    quiet = sum(not (one.alarms or one.trouble or one.silent) for one in found)
    need = f"{quiet} machine{'s need' if quiet != 1 else ' needs'} no attention"
    if failed:
        return f"{failed} of {len(found)} machines could not be scored" + (f"; {need}" if quiet else "")
    return need if quiet else "every machine needs attention"


def _suppressed(found: Sequence[MachineAlarms]) -> str:
    count = sum(len(one.quiet) for one in found)
    return (
        f"; {count} alarm{'s' * (count != 1)} suppressed: --out has {'them' if count != 1 else 'it'} too"
        if count
        else ""
    )


def _summary(one: MachineAlarms) -> list[object]:
    from tisat.alarms.ongoing import called

    last = one.alarms[-1] if one.alarms else None
    strongest = max(one.alarms, key=lambda alarm: alarm.peak / alarm.threshold, default=None)
    silent = f"silent: {', '.join(one.silent)}" if one.silent else ""
    reason = "" if strongest is None else str(strongest.reasons[0]) if strongest.reasons else strongest.kind
    return [
        one.machine,
        len(called(one.alarms)),
        "" if last is None else _moment(last.raised, last.raised_time, "") + (", on" if one.active else ""),
        f"{one.judged / one.rows:.0%}" if one.rows else "",
        "" if strongest is None else f"{one.worst:.1f} x h, {_moment(strongest.raised, strongest.raised_time, '')}",
        one.trouble or "; ".join(word for word in (reason, silent) if word),
    ]


def _moment(time_step: int | None, stamp: str | float | None, otherwise: str) -> str:
    from tisat.alarms.alarms import say_time

    if stamp is None:
        return otherwise if time_step is None else str(time_step)
    return say_time(stamp)


def _moments(one: Silence) -> list[str]:
    return [
        _moment(one.since, one.since_time, ""),
        _moment(one.noticed, one.noticed_time, ""),
        _moment(one.until, one.until_time, "still silent"),
    ]


def _row(one: Alarm, shown: int) -> list[str]:
    from tisat.alarms.tally import say_beside

    contributing = ", ".join(
        f"{channel} {share:.0%}" for channel, share in list(one.channels.items())[:shown] if share >= LEAST
    )
    reasons = [str(reason) for reason in one.reasons[:shown]] or ([contributing] if contributing else [])
    raised_at = _moment(one.raised, one.raised_time, "")
    since = say_beside(_moment(one.onset, one.onset_time, ""), raised_at)
    until = "still on" if one.cleared is None else say_beside(_moment(one.cleared, one.cleared_time, ""), raised_at)
    if one.state == "ongoing":
        until = f"ongoing since {until}"
    elif one.state == "merged":
        until = f"{until} (merged)"
    elif one.ongoing_since is not None:
        until = f"{say_beside(_moment(one.back, one.back_time, ''), raised_at)} ({one.state})"
    return [
        raised_at,
        f"{since} - {until}",
        f"{one.peak / one.threshold:.1f}" if one.threshold else "",
        "\n".join(
            [
                *([f"{one.kind}:"] if one.kind else []),
                *reasons,
                *([one.joined] if one.further else []),
                *([f"suppressed: {one.suppressed}"] if one.suppressed else []),
                *([f"known: {one.known}"] if one.known else []),
            ]
        ),
    ]
