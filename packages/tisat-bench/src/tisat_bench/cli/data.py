"""``tisat data``: list, show, verify and download data sets, and look at your own files."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tisat.cli.output import JsonFlag, print_json, print_table
from tisat.utils.types import JsonDict
from tisat_bench.cli.far import far
from tisat_bench.cli.random_guess import random_guess_table

if TYPE_CHECKING:
    from tisat_bench.datasets import Card, Dataset

app = typer.Typer(
    help="The five benchmarks of the paper: get them, check them, count random guesses on their labels.",
    no_args_is_help=True,
)
app.command("random-guess")(random_guess_table)
app.command("far")(far)

NameArgument = Annotated[str, typer.Argument(help="smd, msl, smap, swat or psm.", metavar="NAME")]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", help="The folder that holds the data sets.", envvar="TISAT_DATA", show_default="~/.cache/tisat"
    ),
]
COUNTED = ("entities", "channels", "train_rows", "test_rows", "events", "anomalous_percent")  # of a card
WRAP: Any = {"break_long_words": False, "break_on_hyphens": False}


def _presence(name: str, data: Path | None) -> str:
    """Say how much of a data set is under the root, without reading values."""
    from tisat.errors import InputError
    from tisat_bench.datasets import load

    try:
        found = load(name, data)
    except InputError:
        return "none"
    return f"{len(found)} of {found.card.entities}" if found.missing else "all"


@app.command("list")
def list_sets(data: DataOption = None, json: JsonFlag = False) -> None:
    """List the data sets: what the publisher gives, and what of it is in your folder."""
    from tisat_bench.datasets import NAMES, card, data_root

    rows = []
    for known in map(card, NAMES):
        facts = {fact: getattr(known, fact) for fact in ("name", "title", *COUNTED)}
        licence = known.licence.partition(",")[0].partition(":")[0]
        rows.append({**facts, "licence": licence, "here": _presence(known.name, data)})
    if json:
        print_json({"data": str(data_root(data)), "sets": rows})
        return
    print_table(
        f"Data sets, looked for in {data_root(data)}",
        ("name", "entities", "channels", "train", "test", "events", "% anom.", "here"),
        [[row[column] for column in ("name", *COUNTED, "here")] for row in rows],
    )


def _print_card(known: Card) -> None:
    facts = [
        ("what", known.description),
        ("source", known.source),
        ("paper", known.paper),
        ("licence", known.licence),
        ("to get it", known.obtain),
        (
            "rows",
            f"{known.train_rows:,} train, {known.test_rows:,} test, {known.channels} channels, {known.entities} entities",
        ),
        ("sampling", f"{known.period:g} s. {known.clock}"),
        ("event", f"{known.event} {known.events} of them, {known.anomalous_percent:.2f} % of the test rows."),
        *((f"problem {number}", text) for number, text in enumerate(known.problems, start=1)),
    ]
    typer.echo(f"{known.title} ({known.name})")
    for fact, text in facts:
        # Not a table: addresses and commands are there to be copied. Long words are never broken.
        typer.echo(textwrap.fill(text, 100, initial_indent=f"  {fact:<11}", subsequent_indent=" " * 13, **WRAP))


def _entity_rows(found: Dataset) -> list[JsonDict]:
    rows = []
    for entity in found:
        train, test = entity.train, entity.test
        rows.append(
            {
                "entity": entity.name,
                "channels": test.n_channels,
                "train_rows": len(train),
                "test_rows": len(test),
                "missing_values": train.missing + test.missing,
                "gaps": len(train.gaps) + len(test.gaps),
                "events": None if test.labels is None else len(test.events),
            }
        )
    return rows


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="smd, msl, smap, swat, psm, or the path of your own file or folder.")],
    data: DataOption = None,
    entities: Annotated[
        bool, typer.Option("--entities", help="Read the values too, and count entity by entity.")
    ] = False,
    train: Annotated[
        str | None, typer.Option(help="For your own files: share (0.5) or number (1000) of rows for training.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Show a data set's card: source, licence, counts, what counts as an event, known problems."""
    from tisat.errors import ParameterError
    from tisat_bench.datasets import NAMES, card, load

    if name in NAMES and not entities:
        dataset_card = card(name)
        if json:
            print_json(dataset_card.to_json())
        else:
            _print_card(dataset_card)
        return
    split: float | int | None = None
    if train is not None:
        try:
            split = float(train) if "." in train else int(train)
        except ValueError:
            raise ParameterError(
                f"The '--train' option must be a share or a number of rows. Got {train!r} instead."
            ) from None
    dataset = load(name, data, train=split)
    rows = _entity_rows(dataset)
    if json:
        print_json({"card": dataset.card.to_json(), "entities": rows, "missing": dataset.missing})
        return
    note = f"Without values here: {', '.join(dataset.missing)}" if dataset.missing else ""
    print_table(
        f"{dataset.card.title} ({dataset.name})",
        [key.replace("_", " ") for key in rows[0]],
        [list(row.values()) for row in rows],
        note=note,
    )


@app.command()
def verify(
    name: NameArgument,
    data: DataOption = None,
    values: Annotated[bool, typer.Option(help="Read every series too, and count its rows.")] = True,
    json: JsonFlag = False,
) -> None:
    """Compare a folder with the card: what is missing, what differs, what that does to row counts. Exit code 1 if anything."""
    from tisat_bench.datasets import card
    from tisat_bench.datasets import verify as check

    result = check(name, data, values=values)
    if json:
        counts = {count: getattr(result, count) for count in ("entities", "train_rows", "test_rows", "events")}
        findings = {
            "name": name,
            "folder": str(result.folder),
            "complete": result.complete,
            "checked_files": result.checked,
        }
        print_json({**findings, **counts, "findings": [vars(finding) for finding in result.findings]})
    else:
        for finding in result.findings:
            typer.echo(f"{finding.problem:<11}{finding.path}: {finding.what}")
        typer.echo(
            f"{result.checked} of {len(card(name).files)} published files compared by checksum in {result.folder}."
        )
        if values:
            typer.echo(result.summary(card(name)))
        typer.echo(
            "Nothing is missing and nothing differs."
            if result.complete
            else f"{len(result.findings)} finding{'s' * (len(result.findings) != 1)}."
        )
    if not result.complete:
        raise typer.Exit(1)


@app.command()
def download(
    name: NameArgument,
    data: DataOption = None,
    url: Annotated[
        str | None, typer.Option(help="A mirror that serves the same files, in place of the publisher.")
    ] = None,
) -> None:
    """Fetch a data set from its publisher, continuing where an earlier attempt broke off. For swat: say how to ask for it."""
    from tisat_bench.datasets import card
    from tisat_bench.datasets import download as fetch

    dataset_card = card(name)
    if not dataset_card.download:
        typer.echo(f"{dataset_card.title} is given out by its owner only. {dataset_card.obtain}")
        typer.echo("Then: tisat data verify swat --data THE_FOLDER_THAT_HOLDS_SWaT")
        return
    folder = fetch(name, data, url=url)
    typer.echo(
        f"{dataset_card.title}: {len(dataset_card.files)} files in {folder}, every checksum right. Licence: {dataset_card.licence}"
    )
