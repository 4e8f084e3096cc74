"""The command line: one thin file a verb, in the order of the flow. No mathematics here.

Exit codes: 0 done; 1 bad input, said in one sentence; 2 wrong usage; 130 interrupted. Figures go to standard output
(``--json`` for machines), everything else to standard error, progress bars only to a terminal.

Verb modules import the heavy parts inside their functions, so that ``tisat --help`` is quick.
"""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tisat._version import __version__
from tisat.errors import TisatError

FLOW = (
    "data", "look", "detectors", "fit", "show", "score", "alarm", "watch", "serve", "update", "recalibrate", "label", "far", "evaluate", "audit", "bench", "tables", "demo",
)  # fmt: skip


class _InFlowOrder(TyperGroup):
    """Verbs in the order of the flow, whether or not they have sub-commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=FLOW.index)


app = typer.Typer(
    name="tisat",
    cls=_InFlowOrder,
    help="Time-series anomaly detection with an alarm budget, and with scores that a coin cannot win.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tisat {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Time-series anomaly detection with an alarm budget, and with scores that a coin cannot win."""


# In flow order; a verb with sub-commands is a Typer, one without is a function. One line a verb:
#     app.add_typer(data.app, name="data")          app.command("fit")(fit.fit)
from tisat.cli import (  # noqa: E402
    alarm,
    audit,
    bench,
    data,
    demo,
    detectors,
    evaluate,
    far,
    fit,
    keep,
    look,
    score,
    serve,
    show,
    watch,
)

app.add_typer(data.app, name="data")
app.command("look")(look.look)
app.command("detectors")(detectors.detectors)
app.command("fit")(fit.fit)
app.command("show")(show.show)
app.command("score")(score.score)
app.command("alarm")(alarm.alarm)
app.command("watch")(watch.watch)
app.add_typer(serve.app, name="serve")
app.command("update")(keep.update)
app.command("recalibrate")(keep.recalibrate)
app.command("label")(keep.label)
app.command("far")(far.far)
app.command("evaluate")(evaluate.evaluate)
app.add_typer(audit.app, name="audit")
app.command("bench")(bench.bench)
app.command("tables")(bench.tables)
app.command("demo")(demo.demo)


# Parameters of Python that have an option of another name, or of the same.
OPTIONS = {"false_alarms": "budget", "budget": "budget", "rule": "rule", "method": "method", "period": "period", "train": "train",
           "delta_max": "delta-max", "holdout": "holdout", "detector": "detector"}  # fmt: skip


def as_typed(sentence: str) -> str:
    """An error as somebody at the command line would say it: options, not parameters of Python.

    Examples
    --------
    >>> as_typed("The 'rule' parameter of make_rule must be excess. Got 'x' instead; give period='1 min'.")
    "--rule must be excess. Got 'x' instead; give --period '1 min'."
    """

    def option(found: re.Match[str]) -> str:
        name = OPTIONS.get(found["name"])
        return found[0] if name is None else f"--{name}"

    sentence = re.sub(r"[Tt]he '(?P<name>\w+)' (?:parameter|argument)(?: of [\w.]+)?", option, sentence)
    sentence = re.sub(r"\bThe budget(?: of false alarms)? must\b", "--budget must", sentence)
    return re.sub(r"\b(?P<name>period|budget|method|rule)=(?=')", lambda found: f"--{found['name']} ", sentence)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; ``arguments`` default to the process's own."""
    try:
        app(args=arguments)
    except TisatError as error:
        typer.echo(f"tisat: {as_typed(str(error))}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has left: nothing to say, and nobody to say it to
        sys.exit(0)
    except OSError as error:
        typer.echo(f"tisat: {error.strerror or error}: {error.filename or ''}".rstrip(": "), err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("tisat: interrupted", err=True)
        sys.exit(130)
