"""``tisat look`` and ``tisat suggest``: a first look at a file, what will be done with each of its channels, and which detectors are worth a try."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tisat.cli.machines import read_machines, same_machine
from tisat.cli.options import How, reading_text, reads_files
from tisat.cli.output import JsonFlag, print_json, print_table
from tisat.cli.output_files import Overwrite, check_outputs, save_figure
from tisat.io.durations import spelt

if TYPE_CHECKING:
    from tisat.datasets.profile import ChannelLook, Look
    from tisat.series import Series

SEVERAL = 3  # channels with the same advice, from which on it is said once
SHORT = 20  # letters; shorter advice stays in the table


@reads_files
def look(
    file: Annotated[str, typer.Argument(help="A file, a folder or a pattern.", metavar="FILE")],
    picture: Annotated[Path | None, typer.Option(help="Draw the channels here: .png, .svg or .pdf.")] = None,
    overwrite: Overwrite = False,
    json: JsonFlag = False,
    how: How | None = None,
) -> None:
    """Look at a file: rows, clock, gaps, and of each channel its range, what it is like, and what is done with it."""
    from tisat.datasets.profile import draw_look
    from tisat.datasets.profile import look as look_at
    from tisat.datasets.sizes import FOR_FEW, is_small
    from tisat.errors import ParameterError
    from tisat.registry import DEFAULT

    check_outputs({"--picture": picture}, inputs=[file], overwrite=overwrite)
    machines = read_machines([file], how or {})
    if picture is not None and len(machines) > 1:
        raise ParameterError(f"--picture draws one machine. Got {len(machines)}; give one file.")
    looks = [look_at(series) for series in machines.values()]
    if picture is not None:
        save_figure(draw_look(next(iter(machines.values()))), picture)
    if json:
        print_json(looks[0].to_json() if len(looks) == 1 else [first_look.to_json() for first_look in looks])
        return
    if len(looks) > 1:
        one_machine = same_machine([file], list(machines.values()))
        print_table(
            f"{len(looks)} files that follow each other in time" if one_machine else f"{len(looks)} machines",
            ["file" if one_machine else "machine", "rows", "first", "last", "gaps", "channels", "look at"],
            [_machine(first_look) for first_look in looks],
            note=f"For the channels of one {'file' if one_machine else 'machine'}: tisat look on {'it' if one_machine else 'its file'}.",
        )
        if any(_next(first_look, "", file, how) for first_look in looks):
            end = "--out model.tisat" if one_machine else "--each --out models"
            typer.echo(f"next: tisat fit {shlex.quote(file)}{reading_text(dict(how or {}))} {end}")
        return
    first_look = looks[0]
    few = f"--detector {FOR_FEW} " if is_small(first_look.usable) else ""
    cells, shared = _advice(first_look)
    print_table(
        f"{first_look.name}: {first_look.rows:,} rows of {_channels(first_look)}{_clock(first_look)}",
        ["channel", "range", "median", "kind", "what is done with it"],
        [
            [c.name, *_range(c), c.kind, f"{c.missing:.1%} missing: {said}" if c.missing else said]
            for c, said in zip(first_look.channels, cells, strict=True)
        ],
        note="\n".join([*shared, *(f"note: {note}" for note in first_look.notes), *_remarks(first_look)]),
    )  # fmt: skip
    unfit = _unfit(next(iter(machines.values())), FOR_FEW if few else DEFAULT)
    for line in _next(first_look, f"tisat fit {few}--train FILE --out model.tisat", file, how, unfit):
        typer.echo(line)  # in one line: it is copied


def _range(one: ChannelLook) -> tuple[str, str]:
    """The range and the median of a channel; a dash where it has no value."""
    return ("–", "–") if one.kind == "empty" else (f"{one.least:.4g} - {one.most:.4g}", f"{one.median:.4g}")


def _unfit(series: Series, detector: str) -> list[str]:
    """The channels that ``fit`` would refuse: empty ones, and those too sparse for the detector."""
    if not series.missing:
        return []
    from tisat.detectors import make
    from tisat.detectors.fitting import empty_channels, sparse_channels

    empty = empty_channels([series])
    sparse = sparse_channels([series], context=make(detector)._context() or 0, without=empty)
    return [name for name in series.channels if name in empty or name in sparse]


def _advice(one: Look) -> tuple[list[str], list[str]]:
    """Advice for each channel; advice that several share goes in a line below."""
    keys = [
        re.sub(r"\d+", "0", re.sub(rf"(--[a-z-]+) {re.escape(shlex.quote(c.name))}(?!\S)", r"\1 *", c.advice))
        for c in one.channels
    ]
    cells, lines = [c.advice for c in one.channels], list[str]()
    for key in dict.fromkeys(keys):
        group = [c for c, advice in zip(one.channels, keys, strict=True) if advice == key]
        if len(group) < SEVERAL or len(key) < SHORT:
            continue
        names, mark = [c.name for c in group], f"({len(lines) + 1})"
        longest = max(group, key=lambda c: (c.longest_gap, c.longest_run))
        advice = longest.advice
        for option in ("--drop", "--counter", "--no-counter"):
            many = f" {option} ".join(map(shlex.quote, names)) if option != "--drop" else shlex.quote(",".join(names))
            advice = advice.replace(f"{option} {shlex.quote(longest.name)}", f"{option} {many}")
        lines.append(f"{mark} {len(group)} channels: {advice}")
        cells = [mark if other == key else cell for other, cell in zip(keys, cells, strict=True)]
    return cells, lines


def _next(one: Look, command: str, file: str, how: How | None, unfit: Sequence[str] = ()) -> list[str]:
    """The command to type next, one that runs without the ``unfit`` channels; none where there is nothing to fit."""
    from tisat.datasets.sizes import too_few

    if too_few(one.usable) or len(one.empty) == len(one.channels):
        return []
    options = dict(how or {})
    if "channels" in options:  # --drop is for those that nobody has asked for
        options["channels"] = [name for name in options["channels"] if name not in unfit]
    elif unfit:
        options["drop"] = [*options.get("drop", []), *unfit]
    return [f"next: {command.replace('FILE', shlex.quote(file) + reading_text(options))}"]


def _channels(one: Look) -> str:
    return f"{len(one.channels)} channel{'s' * (len(one.channels) != 1)}"


def _clock(one: Look) -> str:
    if one.first is None or one.period is None:
        return ", no clock"
    return f", {one.first} to {one.last}, one every {spelt(one.period)}".replace("T", " ")


def _remarks(one: Look) -> list[str]:
    from tisat.datasets.sizes import repeated_notes, size_notes

    remarks = list(size_notes(one.usable, len(one.channels)))
    if one.first is None:
        remarks.append(
            "No time column (name it with --time); without one, budgets count rows: 1/10000 rows unless given."
        )
    if one.gaps:
        rows = f", {one.rows_missing} row{'s' * (one.rows_missing != 1)} missing" if one.rows_missing else ""
        remarks.append(
            f"{one.gaps} gap{'s' * (one.gaps != 1)} in time, the longest {spelt(one.longest_gap)}{rows}; not filled."
        )
    if one.rows_empty:
        remarks.append(
            f"{one.rows_empty:,} of {one.rows:,} rows have no value in any channel: {one.usable:,} can be used."
        )
    remarks += repeated_notes(one.duplicated_rows, one.rows)
    if one.copied is not None:
        count, first, earlier = one.copied
        remarks.append(
            f"{count:,} rows from row {first:,} on are those from row {earlier:,} on again: was a stretch written twice?"
        )
    if one.events is not None:
        remarks.append(
            f"{one.events} labelled event{'s' * (one.events != 1)}; labels are never looked at when fitting."
        )
    return remarks


def _machine(one: Look) -> list[object]:
    odd = [f"{c.name} {c.kind}" for c in one.channels if c.kind in ("constant", "stuck", "counter", "empty")]
    return [
        one.name,
        one.rows,
        _minute(one.first),
        _minute(one.last),
        one.gaps,
        len(one.channels),
        ", ".join(odd[:4]),
    ]


def _minute(stamp: str | float | None) -> str:
    """A time that fits a narrow column, the date over the time of the day; without seconds where there are none."""
    return str("" if stamp is None else stamp).replace("T", "\n").removesuffix(":00")


@reads_files
def suggest(
    file: Annotated[
        str, typer.Argument(help="A file of normal rows; of a folder the first is looked at.", metavar="FILE")
    ],
    json: JsonFlag = False,
    how: How | None = None,
) -> None:
    """Look at a file and say which detectors are worth a try, and why."""
    from tisat.datasets.profile import look as look_at
    from tisat.detectors.suggestions import suggest as look_and_say

    machines = read_machines([file], how or {})
    name, series = next(iter(machines.items()))
    suggestions = look_and_say(series)
    if json:
        print_json({"series": name, **suggestions.to_json()})
        return
    more = f" (the first of {len(machines)} machines)" if len(machines) > 1 else ""
    commands = []
    if suggestions.detectors:
        first = suggestions.detectors[0]
        commands = _next(look_at(series), first.command, file, how, _unfit(series, first.detector))
    typer.echo("\n\n".join([f"{name}{more}:\n{suggestions}", *commands]))
