"""Groups of options and an example for each verb, for ``--help``. No verb is imported here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

# The group of an option, by the name of its parameter; options of a verb alone have no group and come first.
GROUPS = {
    **dict.fromkeys(("budget", "fleet_budget", "rule", "rule_set", "method", "period", "control", "rearm", "suppress", "contaminated"), "Budget and alarms"),
    **dict.fromkeys(("jobs", "engine", "address", "each_one", "group_by"), "Many machines"),
    **dict.fromkeys(("out", "picture", "html", "page", "overwrite", "json", "latex", "csv", "shown", "output", "append", "alarms_only", "report"), "Output"),
    **dict.fromkeys(("time", "label", "channels", "drop", "missing", "entity", "delimiter", "decimal", "encoding", "sheet", "time_format", "timezone", "sort",
                     "dedup", "any_period", "ignore_extra"), "Reading files"),
    **dict.fromkeys(("checkpoint", "resume"), "Neural detectors"),
    **dict.fromkeys(("prometheus", "query", "step", "offset", "history"), "Rows from Prometheus"),
    **dict.fromkeys(("source", "brokers", "topic", "group", "handover", "alarms_topic", "shard", "peer"), "Rows from a stream"),
    **dict.fromkeys(("alertmanager", "webhook"), "Alarms out"),
}  # fmt: skip

# One command that can be typed, for each verb.
EXAMPLES = {
    "data": "tisat data download smd",
    "look": "tisat look week.csv",
    "suggest": "tisat suggest week.csv",
    "compare": "tisat compare week.csv --budget 1/day",
    "detectors": "tisat detectors",
    "fit": "tisat fit week.csv --out pump.tisat --budget 1/day",
    "show": "tisat show pump.tisat",
    "score": "tisat score now.csv --model pump.tisat --out scores.csv",
    "alarm": "tisat alarm now.csv --model pump.tisat --html alarms.html",
    "scan": "tisat scan history.csv --budget 1/week --html alarms.html",
    "watch": "tail -n +1 -F live.csv | tisat watch --model pump.tisat --state pump.state --output results.jsonl",
    "serve": "tisat serve --model pump.tisat --data watch",
    "update": "tisat update --model pump.tisat --train newer.csv --out newer.tisat",
    "recalibrate": "tisat recalibrate --model pump.tisat --budget 1/week --out calmer.tisat",
    "label": "tisat label alarms.csv now.csv --model pump.tisat",
    "backtest": "tisat backtest history.csv --train 14d --refit 7d --budget 1/day",
    "far": "tisat far week.csv --budget 1/week",
    "evaluate": "tisat evaluate labelled.csv alarms.csv --delta-max 30min",
    "audit": "tisat audit labels.csv scores.csv --delta-max 100",
    "bench": "tisat bench experiment.toml --store results --report page",
    "tables": "tisat tables --out tables",
    "demo": "tisat demo --out demo",
}


def grouped(verb: object) -> Any:
    """Give every option of a verb its group; a Typer application keeps its own sub-commands."""
    for function in _functions(verb):
        hints = get_type_hints(function, include_extras=True)
        function.__annotations__ = hints  # text is evaluated anew each time, and would forget the groups
        for name, hint in hints.items():
            for option in getattr(hint, "__metadata__", ()):
                if name in GROUPS and type(option).__name__ == "OptionInfo" and option.rich_help_panel is None:
                    option.rich_help_panel = GROUPS[name]
    return verb


def _functions(verb: Any) -> Iterator[Callable[..., Any]]:
    main = getattr(verb, "registered_callback", None)
    if main is not None and main.callback is not None:
        yield main.callback
    elif callable(verb) and not hasattr(verb, "registered_commands"):
        yield verb


def example(name: str) -> str | None:
    """The last line of a verb's help, or none.

    Examples
    --------
    >>> example("look")
    'Example: `tisat look week.csv`'
    """
    return f"Example: `{EXAMPLES[name]}`" if name in EXAMPLES else None
