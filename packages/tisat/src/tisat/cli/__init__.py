"""The command line: one thin file for each verb, in the order of the flow. No mathematics here.

Exit codes: 0 done; 1 bad input, said in one sentence; 2 wrong usage; 130 interrupted. Figures go to standard output
(``--json`` for machines), everything else to standard error, progress bars only to a terminal.

A verb's module is imported when the verb is typed, and imports the heavy parts inside its functions; ``tisat --help`` imports nothing.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from importlib import import_module
from typing import Any

from tisat import __version__
from tisat.errors import MissingExtraError, ParameterError, TisatError

ABOUT = "Time-series anomaly detection with a false-alarm budget."

# One line for each verb, in the order of the flow: "module:attribute" (a function, or an app where the verb has sub-commands) and
# what it does. A verb of another package stands under that package's name instead: its target is an entry point of the group VERB_GROUP.
VERBS = {
    "data": (
        "tisat-bench",
        "The five benchmarks of the paper: get them, check them, count random guesses on their labels.",
    ),
    "look": ("look:look", "Look at a file: rows, clock, gaps, and the range and kind of each channel."),
    "suggest": ("look:suggest", "Look at a file and name the detectors worth a try, with the reasons."),
    "compare": (
        "compare:compare",
        "Compare detectors on a file of normal rows: budget met, injected faults found by kind, cost.",
    ),
    "detectors": ("show:detectors", "List the detectors by name, with one line about each."),
    "fit": ("fit:fit", "Train on normal data, find the threshold for a budget, and save both in one file."),
    "show": ("show:show", "Describe a model: detector, parameters, training data, sizes, channels."),
    "score": ("score:score", "Score every row of a file: higher is more anomalous; empty while warming up."),
    "alarm": ("alarm:alarm", "Raise the alarms of a file: when, since when, until when, which channels, and why."),
    "scan": (
        "scan:scan",
        "Learn from and score the same file, in blocks: alarms where no stretch is known to be normal.",
    ),
    "watch": ("watch:watch", "Check rows as they come: csv or JSON lines in, one result per row as JSON lines out."),
    "serve": ("tisat-serve", "Run as a service: rows in over HTTP, alarms out, and a console."),
    "update": ("maintain:update", "Fit a model again with the same settings on more normal data."),
    "recalibrate": (
        "maintain:recalibrate",
        "Find the threshold for another budget, from the scores in the model file.",
    ),
    "label": ("maintain:label", "Label alarms as true or false and preview the resulting threshold."),
    "backtest": (
        "backtest:backtest",
        "Walk forward through history: which alarms would have been raised, and at which budgets.",
    ),
    "far": ("far:far", "Count false alarms on held-out normal data, beside the budget."),
    "evaluate": (
        "evaluate:evaluate",
        "Count true and false alarms against labels; compare with trivial baselines. For scores: audit.",
    ),
    "audit": (
        "audit:audit_verb",
        "Evaluate scores against labels: tisat audit LABELS SCORES, with trivial baselines beside every number.",
    ),
    "bench": ("tisat-bench", "Run data sets x detectors x seeds, resumable, and make the tables of the paper."),
    "tables": ("tisat-bench", "Make the Markdown pages of the documentation from frozen results, byte for byte."),
    "demo": ("demo:demo", "Generate a plant, train, set an alarm budget, raise alarms, evaluate, write a report."),
}
VERB_GROUP = "tisat.verbs"  # the entry points under which an installed package offers verbs: name = "module:attribute"


def load_verb(name: str) -> Any:
    """Import the function or Typer application behind a verb.

    Raises
    ------
    MissingExtraError
        When the verb belongs to a package that is not installed.
    """
    target = VERBS[name][0] if name in VERBS else ""
    if ":" in target:
        module, _, attribute = target.partition(":")
        return getattr(import_module(f"tisat.cli.{module}"), attribute)
    from importlib.metadata import entry_points

    for point in entry_points(group=VERB_GROUP, name=name):
        return point.load()
    raise MissingExtraError(
        f"tisat {name} needs the package {target}. Install it with: pip install ./packages/{target} in the folder of tisat's source",
        name=target,
    )


def installed_verbs() -> dict[str, str]:
    """Verbs that other installed packages add, besides those of the table, with the module that has them."""
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=VERB_GROUP) if point.name not in VERBS}


def build(only: str | None = None) -> Any:
    """The Typer application; with one verb alone where the others are not needed."""
    import typer

    from tisat.cli.help_texts import example, grouped

    app = typer.Typer(
        name="tisat", help=ABOUT, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown"
    )

    def say_version(asked: bool) -> None:
        if asked:
            typer.echo(f"tisat {__version__}")
            raise typer.Exit

    def root(
        version: bool = typer.Option(
            False, "--version", callback=say_version, is_eager=True, help="Print the version and stop."
        ),
    ) -> None:
        pass

    app.callback()(root)
    for name in [*VERBS, *installed_verbs()] if only is None else [only]:
        try:
            verb = load_verb(name)
        except MissingExtraError:
            if only is not None:
                raise
        else:
            if isinstance(verb, typer.Typer):
                app.add_typer(grouped(verb), name=name, epilog=example(name))
            else:
                app.command(name, epilog=example(name))(grouped(verb))
    return app


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'tisat.cli' has no attribute {name!r}")
    globals()["app"] = found = build()
    return found


def overview() -> str:
    """The text of ``tisat --help``."""
    wide = max(map(len, VERBS)) + 2
    lines = ["Usage: tisat [--version] [--help] VERB ...", "", ABOUT, "", "Verbs, in the order of the flow:"]
    lines += [f"  {name:{wide}}{what}" for name, (_, what) in VERBS.items()]
    return "\n".join(
        [
            *lines,
            "",
            "--import module:Class makes a detector of your own known in any verb.",
            "tisat VERB --help has the options of a verb; --install-completion teaches your shell. Begin with: tisat look FILE",
        ]
    )


# Parameters of Python that have an option of another name, or of the same.
OPTIONS = {"false_alarms": "budget", "budget": "budget", "rule": "rule", "method": "method", "period": "period", "train": "train",
           "delta_max": "delta-max", "holdout": "holdout", "detector": "detector", "rearm": "rearm", "refit": "refit"}  # fmt: skip


def sentence_of(error: TisatError) -> str:
    """Return what is printed of an error; the option stands for the parameter of Python that it is about.

    Examples
    --------
    >>> sentence_of(ParameterError.about("rule", "must be excess. Got 'x' instead.", whose="make_rule"))
    "--rule must be excess. Got 'x' instead."
    """
    if isinstance(error, ParameterError) and error.parameter in OPTIONS and error.predicate is not None:
        return f"--{OPTIONS[error.parameter]} {error.predicate}"
    return str(error)


def take_imports(arguments: list[str]) -> list[str]:
    """Register what ``--import module:Class`` names, for this process and those it starts; the other arguments are left.

    Examples
    --------
    >>> take_imports(["fit", "--import", "tisat.detectors.random_guess:RandomGuess", "--out", "m"])
    ['fit', '--out', 'm']
    >>> os.environ.pop("TISAT_IMPORT")  # where child processes read it
    'random-guess=tisat.detectors.random_guess:RandomGuess'
    """
    rest, targets = [], []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "--import":
            targets.append(next(waiting, ""))
        elif argument.startswith("--import="):
            targets.append(argument.partition("=")[2])
        else:
            rest.append(argument)
    if targets:
        from tisat import registry

        if "" not in sys.path and os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())  # as python -m does
        said = [f"{registry.add(target)}={target.rpartition('=')[2]}" for target in targets]
        os.environ[registry.IMPORTS] = " ".join([*os.environ.get(registry.IMPORTS, "").split(), *said])
    return rest


def _refused(sentence: str, *, whole: bool) -> None:
    """Say an error and end with 1.

    Where the process is ours (``whole``) and arrow has read files for it, it ends at once: a thread of arrow may still let go of a
    file of ours, and where Python's own end takes the interpreter away beneath it, one command in sixty is aborted with another code.
    """
    sys.stderr.write(f"tisat: {sentence}\n")
    if whole and "pyarrow" in sys.modules:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
    sys.exit(1)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; ``arguments`` default to the process's own."""
    words = sys.argv[1:] if arguments is None else arguments
    if arguments is None:
        gc.set_threshold(
            100_000
        )  # imports make many objects that stay; looking for garbage among them is a tenth of a short run
    if words in ([], ["--help"], ["-h"]):
        sys.stdout.write(overview() + "\n")
        sys.exit(0 if words else 2)
    try:
        words = take_imports(words)
        build(words[0] if words[0] in VERBS or words[0] in installed_verbs() else None)(args=words)
    except TisatError as error:
        _refused(sentence_of(error), whole=arguments is None)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has left: nothing to say, and nobody to say it to
        sys.exit(0)
    except OSError as error:
        _refused(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), whole=arguments is None)
    except KeyboardInterrupt:
        sys.stderr.write("tisat: interrupted" + "\n")
        sys.exit(130)
