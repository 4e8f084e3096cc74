"""``tisat watch``: rows on standard input, results on standard output, for as long as rows come."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tisat.cli.options import How, Overrides, Tolerance, open_watch, reads_files
from tisat.cli.output_files import Overwrite, check_outputs

if TYPE_CHECKING:
    from tisat.watch import Monitor, Watch
    from tisat.watch.fleet_stream import FleetLines
    from tisat.watch.text_stream import Note


@reads_files
def watch(
    model: Annotated[
        Path, typer.Option(help="The model file of one machine, or of all that share a model.", metavar="FILE")
    ],
    overrides: Overrides = Overrides(),
    state: Annotated[Path | None, typer.Option(help="Keep the state here, and go on from it if it is there.")] = None,
    every: Annotated[int, typer.Option(help="Lines between two states.", min=1)] = 100,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write results to this file instead of standard output; with --state each line is then scored exactly once, whatever happens."
        ),
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Write behind what --output holds already, where there is no state.")
    ] = False,
    overwrite: Overwrite = False,
    live: Annotated[
        bool, typer.Option("--live", help="The input does not begin again after a restart: pass over nothing.")
    ] = False,
    alarms_only: Annotated[
        bool, typer.Option("--alarms-only", help="Write only what raises or clears an alarm, or falls silent.")
    ] = False,
    recalibrate: Annotated[
        bool, typer.Option("--recalibrate", help="Go on from a state that was kept at another threshold.")
    ] = False,
    tolerance: Tolerance = Tolerance(),
    name: Annotated[str | None, typer.Option(help="The entity, as alarms call it.")] = None,
    how: How | None = None,
) -> None:
    """Score rows as they come: csv or JSON lines in, one result per row as JSON lines out.

    `tail -n +1 -F telemetry.csv | tisat watch --model m.tisat --state m.state --output results.jsonl`
    """
    from tisat.errors import CalibrationWarning, InputError, SeriesError
    from tisat.io.files import Reading
    from tisat.utils.locking import locked
    from tisat.watch.text_stream import BoundedLines, LineReader, Switch, after, watch_lines

    _check_files(model, state, output)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalibrationWarning)
        model_watch = open_watch(model, overrides)
    for warning in caught:
        _say(f"note: {cast(Warning, warning.message).args[0]}")
    guard: Any = nullcontext()
    if state is not None:
        refusal = InputError(f"The state {str(state)!r} must have one watcher at a time. Another one holds it.")
        guard = locked(state.with_name(state.name + ".lock"), refusal)
    with guard:
        reading = Reading.of({**model_watch.reading, **(how or {})})
        fresh = state is None or not state.is_file()
        monitor, note = _open_monitor(
            model_watch, state, name, recalibrate=recalibrate, many=reading.entity is not None
        )
        _say(str(monitor.calibration))
        if output is not None:
            _prepare_output(output, note, fresh=fresh, append=append, overwrite=overwrite)
        if state is not None and fresh:  # so that a process killed before its first state begins again here
            monitor.snapshot(state, note=vars(note))
        switch = Switch()
        for name_of in ("SIGINT", "SIGTERM", "SIGHUP"):  # not every system has the last
            if hasattr(signal, name_of):
                signal.signal(getattr(signal, name_of), switch)
        before = monitor.tally
        reader = LineReader(
            model_watch.channels,
            header=note.header,
            how=reading,
            ignore_extra=tolerance.ignore_extra or "channels" in model_watch.reading,
        )
        with nullcontext(sys.stdout.buffer) if output is None else output.open("ab") as target:
            lines = BoundedLines(sys.stdin.buffer)
            with _reader_may_leave():
                watch_lines(
                    monitor,
                    lines if live else after(lines, note),
                    target,
                    reader=reader,
                    state=state,
                    every=every,
                    note=note,
                    alarms_only=alarms_only,
                    any_period=tolerance.any_period,
                    report=_say,
                    switch=switch,
                    ahead=lines.at_hand,
                )
    tally = monitor.tally
    if reader.words.summary:
        _say(reader.words.summary)
    _say(
        f"{tally}; {_alarms_on(monitor.alarm, monitor.ongoing)}"
        + (f"; silent: {', '.join(monitor.silent)}" if monitor.silent else "")
    )
    if switch.off:
        raise typer.Exit(128 + switch.signal)
    if tally.rows and tally.refused + tally.unusable + tally.late == tally.rows:
        raise SeriesError(f"Not one row could be judged: {tally}. The lines above say why.")
    lost = tally.late + tally.refused - before.late - before.refused
    if 2 * lost > tally.rows - before.rows:
        raise SeriesError(f"Most rows came late or were refused: {tally}. The lines above say why.")


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """End quietly when the reader of standard output has left (``| head``)."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def _alarms_on(alarm: Any, ongoing: Any) -> str:
    if isinstance(alarm, list) and (alarm or ongoing):
        on = [f"an alarm is on at {', '.join(alarm)}"] if alarm else []
        return ", ".join([*on, *([f"still different: {', '.join(ongoing)}"] if ongoing else [])])
    still = [f"an alarm is ongoing since {one.cleared_time or f'row {one.cleared}'}" for one in ongoing]
    return ", ".join(["an alarm is on" if alarm else "no alarm is on", *still])


def _say(sentence: str) -> None:
    typer.echo(sentence, err=True)


def _open_monitor(
    kept: Watch, state: Path | None, name: str | None, *, recalibrate: bool, many: bool
) -> tuple[Monitor | FleetLines, Note]:
    """The monitor, afresh or from its state, and where input and output stood."""
    from tisat.errors import InputError
    from tisat.watch import Monitor
    from tisat.watch.fleet_stream import FleetLines
    from tisat.watch.text_stream import Note

    if many and name is not None:
        raise InputError("--name is for one machine; --entity says which column names each of them.")
    kind: Any = FleetLines if many else Monitor
    if state is None or not state.is_file():
        return FleetLines(kept) if many else kept.monitor(name=name or ""), Note()
    monitor, document = kind.load_with_note(kept, state, recalibrate=recalibrate)
    note = Note.of(document)
    if name is not None and name != monitor.name:
        raise InputError(
            f"The state {str(state)!r} must be that of {name!r}. It is that of {monitor.name!r}; give another --state, or leave --name out."
        )
    machines = f" of {len(monitor.fleet)} machines" if many else ""
    _say(f"going on after line {note.lines} ({monitor.rows} rows{machines})")
    return monitor, note


def _check_files(model: Path, state: Path | None, output: Path | None) -> None:
    """Refuse files that are one another's, or the input's."""
    from tisat.errors import InputError

    if state is not None and state.is_dir():
        raise InputError(f"--state must be a file. Got the folder {str(state)!r}.")
    if model.is_dir():
        raise InputError(
            f"The model of tisat watch must be one file, such as {model.name}/MACHINE.tisat. Got the folder {str(model)!r}; "
            f"to watch all of its machines: tisat serve --model {model.name}"
        )
    check_outputs({"--state": state, "--output": output}, inputs=[model], overwrite=True)


def _prepare_output(output: Path, note: Note, *, fresh: bool, append: bool, overwrite: bool) -> None:
    """Cut the output back to where the state stood; without a state, refuse one that holds something."""
    from tisat.errors import InputError

    if output.exists() and not output.is_file():
        return  # a device or a pipe: nothing to cut, nothing to lose
    size = output.stat().st_size if output.exists() else 0
    if size and fresh:
        if append and overwrite:
            raise InputError("--append and --overwrite must not both be given: the output is kept or replaced.")
        if not append and not overwrite:
            raise InputError(
                f"--output must be a new file where there is no state. {str(output)!r} holds {size} bytes. "
                "To write behind them: --append; to replace them: --overwrite."
            )
        note.bytes = size if append else 0
    if size < note.bytes:
        raise InputError(
            f"The output {str(output)!r} must hold the {note.bytes} bytes the state has written. Got {size}: it was cut, moved or "
            "rotated. Put it back, or begin anew with another --state."
        )
    with output.open("ab") as file:
        file.truncate(note.bytes)
