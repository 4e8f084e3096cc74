"""``tisat alarm``: the alarms of a file, within a false-alarm budget."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tisat.cli._options import AnyPeriod, Budget, IgnoreExtra, Method, Model, Period, Rule, open_watch, reads_files
from tisat.cli._output import JsonFlag, print_json, print_table

if TYPE_CHECKING:
    from tisat.missing import Silence
    from tisat.sequential import Alarm

PICTURES = (".png", ".svg", ".pdf")
LEAST = 0.005  # a share below it is not worth a word


@reads_files
def alarm(
    file: Annotated[Path, typer.Argument(help="A csv or parquet file.", metavar="FILE")],
    model: Model,
    budget: Budget = None,
    rule: Rule = None,
    method: Method = None,
    period: Period = None,
    any_period: AnyPeriod = False,
    ignore_extra: IgnoreExtra = False,
    out: Annotated[Path | None, typer.Option(help="Write the alarms here: .csv, .parquet or .jsonl.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw them here: .png, .svg or .pdf.")] = None,
    shown: Annotated[int, typer.Option("--show-channels", help="Channels to draw and to name.", min=0)] = 3,
    json: JsonFlag = False,
    how: dict[str, Any] | None = None,
) -> None:
    """Raise the alarms of a file: when, since when, until when, which channels, and what the budget was worth."""
    from tisat.errors import CalibrationWarning, ParameterError

    if picture is not None and picture.suffix.lower() not in PICTURES:
        raise ParameterError(f"--picture must end in {', '.join(PICTURES)}. Got {str(picture)!r} instead.")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalibrationWarning)
        watch = open_watch(model, budget=budget, rule=rule, method=method, period=period)
        series = watch.read(file, **(how or {}))
        found = watch.alarms(series, any_period=any_period, ignore_extra=ignore_extra)
    if out is not None:
        found.write(out)
    if picture is not None:
        found.plot(series, channels=shown).savefig(picture, dpi=120)
    if json:
        document = {
            "calibration": found.calibration.to_json(),
            "rows": vars(found.tally),
            "alarms": found.to_rows(),
            "data": [one.to_json() for one in found.silences],
        }
        print_json(document)
        return
    notes = [*series.notes, *found.calibration.notes, *(str(warning.message) for warning in caught)]
    print_table(
        f"{series.name}: {len(found)} alarm{'s' * (len(found) != 1)}; {found.tally}",
        ["raised", "since", "until", "x h", "what", "why"],
        [_row(one, shown) for one in found],
        note="\n".join([str(found.calibration), *(f"note: {note}" for note in dict.fromkeys(notes))]),
    )
    if found.silences:
        print_table(
            f"{series.name}: channels that fell silent (alarms about the data, outside the budget)",
            ["channel", "since", "noticed", "back"],
            [[one.channel, *_moments(one)] for one in found.silences],
        )


def _moment(instant: int | None, stamp: str | float | None, otherwise: str) -> str:
    if stamp is None:
        return otherwise if instant is None else str(instant)
    return str(stamp).replace("T", " ")


def _moments(one: Silence) -> list[str]:
    return [
        _moment(one.since, one.since_time, ""),
        _moment(one.noticed, one.noticed_time, ""),
        _moment(one.until, one.until_time, "still silent"),
    ]


def _row(one: Alarm, shown: int) -> list[str]:
    blamed = ", ".join(
        f"{channel} {share:.0%}" for channel, share in list(one.channels.items())[:shown] if share >= LEAST
    )
    why = "; ".join(map(str, one.reasons[:shown])) or blamed
    return [
        _moment(one.raised, one.raised_time, ""),
        _moment(one.onset, one.onset_time, ""),
        _moment(one.cleared, one.cleared_time, "still on"),
        f"{one.peak / one.threshold:.1f}" if one.threshold else "",
        one.kind,
        why,
    ]
