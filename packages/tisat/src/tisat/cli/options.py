"""Options that several verbs share, read one way."""

from __future__ import annotations

import ast
import inspect
import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

import typer

from tisat.utils.types import JsonDict, Options, Params

if TYPE_CHECKING:
    from tisat.watch import Watch

How: TypeAlias = Options  # how files are read: options of Series.read
DeltaMax = Annotated[str, typer.Option(help="Longest tolerable delay: rows, or a duration such as 10min.")]
Model = Annotated[
    Path,
    typer.Option(
        help="A model, as written by tisat fit; or a folder of them, one for each machine (tisat fit --each)."
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(help="False alarms you accept: 1/day, 3/week, '1/1000 rows', 0.001; the model's own unless given."),
]
Rule = Annotated[
    str | None, typer.Option(help="Alarm rule: excess, threshold, paper or drift; the model's own unless given.")
]
RuleSet = Annotated[
    list[str] | None,
    typer.Option(
        "--rule-set", help="An option of the alarm rule, name=value, such as hold=50; give it again for more."
    ),
]
Method = Annotated[
    str | None,
    typer.Option(help="How the threshold is found: auto, episodes or bootstrap; for the paper rule also its formulas."),
]
Period = Annotated[
    str | None, typer.Option(help="Sampling period, such as '1 min', where the training data had no clock.")
]
Control = Annotated[
    bool | None,
    typer.Option(
        "--control/--no-control",
        help="Let the threshold follow the alarms, so that in the long run weak ones keep to the budget; as the model has it unless given.",
    ),
]
Rearm = Annotated[
    str | None,
    typer.Option(
        help="Take an alarm that is ongoing for the new normal after this time: 6h, '500 rows', 0; never by itself unless given."
    ),
]
# What may be said of how files are read, in every verb that reads one; the names are those of `Series.read`.
READING: dict[str, tuple[object, Any]] = {
    "time": (str | None, typer.Option(help="The column that holds the time; a date and a time of the day: Date+Time.")),
    "label": (str | None, typer.Option(help="The column that holds labels, where it is not called like one.")),
    "channels": (str | None, typer.Option(help="Only these columns are channels: a,b,c.")),
    "drop": (str | None, typer.Option(help="Leave these columns out: a,b,c.")),
    "missing": (str | None, typer.Option(help="Words that stand for a missing value: 'Bad Input,Fault'.")),
    "entity": (str | None, typer.Option(help="The column that says which machine a row is of.")),
    "delimiter": (str | None, typer.Option(help="What divides cells: , ; tab |. Found out unless given.")),
    "decimal": (str | None, typer.Option(help="The decimal sign: . or ,. Found out unless given.")),
    "encoding": (str | None, typer.Option(help="Such as latin-1 or utf-16. Found out unless given.")),
    "sheet": (str | None, typer.Option(help="The sheet of a workbook; the first that is not empty unless given.")),
    "time_format": (
        str | None,
        typer.Option(help="How times are written: day-first, month-first, '%d/%m/%Y %H:%M', s, ms."),
    ),
    "timezone": (str | None, typer.Option(help="Times are local to this zone, such as Europe/Berlin.")),
    "sort": (bool, typer.Option("--sort", help="Put rows in the order of their times.")),
    "dedup": (str | None, typer.Option(help="Of rows with the same time keep: first, last or mean.")),
}
AnyPeriod = Annotated[
    bool, typer.Option("--any-period", help="Go on where rows come at another pace than in training.")
]
IgnoreExtra = Annotated[bool, typer.Option("--ignore-extra", help="Leave out columns the model does not know.")]


WORDS = {"true": True, "false": False, "none": None}


def read_settings(settings: list[str], option: str = "--set") -> Params:
    """``["window=50", "anchor=last"]`` as keyword arguments: Python literals where they are, text otherwise.

    ``none`` is None (no limit, where a parameter says so), ``preset`` the number of the preset.

    Examples
    --------
    >>> read_settings(["window=50", "anchor=last", "dropout=0.1", "filters=(8, 16)"])
    {'window': 50, 'anchor': 'last', 'dropout': 0.1, 'filters': (8, 16)}
    >>> read_settings(["max_windows=none", "epochs=preset"])
    {'max_windows': None, 'epochs': FROM_PRESET}
    """
    from tisat.utils.parameters import FROM_PRESET

    words = {**WORDS, "preset": FROM_PRESET}
    values: Params = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{option} must look like name=value. Got {setting!r} instead.")
        try:
            values[name.strip()] = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            values[name.strip()] = words.get(text.strip().lower(), text.strip())
    return values


def rule_of(rule: str | None, settings: list[str] | None) -> str | Params | None:
    """Return what ``--rule`` and ``--rule-set`` say, as :func:`tisat.alarms.make_rule` takes it.

    Examples
    --------
    >>> rule_of("excess", ["hold=50"]), rule_of(None, ["hold=50"]), rule_of("paper", None)
    ({'name': 'excess', 'hold': 50}, {'hold': 50}, 'paper')
    """
    if not settings:
        return rule
    return {**({} if rule is None else {"name": rule}), **read_settings(settings, "--rule-set")}


def rows_or_duration(text: str) -> int | str:
    """``"100"`` is 100 rows; ``"10min"`` stays a duration.

    Examples
    --------
    >>> rows_or_duration("100"), rows_or_duration("10min")
    (100, '10min')
    """
    return int(text) if text.strip().lstrip("+-").isdigit() else text


def reads_files(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options of :data:`READING`; it gets them as ``how``, options of ``Series.read``.

    A parameter that is a dataclass stands for the options that are its fields.
    """
    hints = get_type_hints(verb, include_extras=True)
    own = inspect.signature(verb).parameters
    bundles: Params = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for parameter in own.values():
        if parameter.name in bundles:
            parameters += _options_of(bundles[parameter.name])
        elif parameter.name != "how":
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
    for name, (kind, option) in READING.items():
        if name not in own:
            default = False if kind is bool else None
            annotation: object = Annotated[kind, option]
            parameters.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            )

    def run(**given: object) -> None:
        how = reading(**{name: given.pop(name) for name in READING if name not in own})
        for name, kind in bundles.items():
            given[name] = kind(**{parameter.name: given.pop(parameter.name) for parameter in fields(kind)})
        from tisat.io.compression import opened_once

        with opened_once():
            verb(**given, how=how)

    run.__name__, run.__doc__ = verb.__name__, verb.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # inspect looks here
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _options_of(bundle: Any) -> list[inspect.Parameter]:
    hints, kind = get_type_hints(bundle, include_extras=True), inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [
        inspect.Parameter(one.name, kind, default=one.default, annotation=hints[one.name]) for one in fields(bundle)
    ]


def reading(**given: Any) -> Params:
    """Options of ``Series.read`` from the reading options of a command.

    Examples
    --------
    >>> reading(time=None, drop="host, state", decimal=",")
    {'drop': ['host', 'state'], 'decimal': ','}
    """
    return {
        name: [part.strip() for part in value.split(",") if part.strip()]
        if name in ("channels", "drop", "missing")
        else value
        for name, value in given.items()
        if value
    }


def reading_text(how: How | None) -> str:
    """Reading options as command-line text, for the next command that is printed.

    Examples
    --------
    >>> reading_text({"drop": ["host", "my state"], "decimal": ",", "sort": True})
    " --drop 'host,my state' --decimal , --sort"
    """
    parts = []
    for name, value in (how or {}).items():
        text = "" if value is True else ",".join(value) if isinstance(value, list) else str(value)
        parts.append(f" --{name.replace('_', '-')}" + (f" {shlex.quote(text)}" if text else ""))
    return "".join(parts)


@dataclass(frozen=True)
class Overrides:
    """Another budget, rule, method, period, control or rearm than a model was made for."""

    budget: Budget = None
    rule: Rule = None
    rule_set: RuleSet = None
    method: Method = None
    period: Period = None
    control: Control = None
    rearm: Rearm = None

    @property
    def settings(self) -> JsonDict:
        """The options that were given, by name."""
        said = {**vars(self), "rule": rule_of(self.rule, self.rule_set), "rule_set": None}
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True)
class Tolerance:
    """Which rows are taken though they are not quite what the model knows."""

    any_period: AnyPeriod = False
    ignore_extra: IgnoreExtra = False


def open_watch(model: Path, overrides: Overrides, *, loaded: Watch | None = None) -> Watch:
    """Load a model, recalibrated where options override its own."""
    from tisat.watch import Watch

    watch = Watch.load(model) if loaded is None else loaded
    settings = {name: value for name, value in overrides.settings.items() if name != "rearm"}
    if overrides.rearm is not None:
        watch = watch.at(watch.calibration)
        watch.rearm = overrides.rearm
        _ = watch.rearm_rows  # refused here where it is no duration
    if not settings or settings == {"budget": watch.budget}:
        return watch
    other = watch.recalibrated(**settings)
    kept = "" if watch.budget is None else f" (the model's own: {watch.budget})"
    typer.echo(f"note: calibrated anew for {other.calibration.budget}{kept}", err=True)
    return other
