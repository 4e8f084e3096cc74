"""``tisat serve refit|proposals|take|leave|revert|forget``: what people decide, asked of a running service over its interface."""

from __future__ import annotations

import getpass
import os
import time
import urllib.parse
from pathlib import Path
from typing import Annotated, Any

import typer

from tisat.utils.types import JsonDict
from tisat_serve.cli.serve import app

Url = Annotated[str, typer.Option(help="Where the service listens; a token is taken from TISAT_TOKEN.")]
Number = Annotated[int, typer.Argument(help="The number of the proposal.")]
Reason = Annotated[str, typer.Option(help="Why; it is kept with the change.")]
URL = "http://127.0.0.1:8765"


def ask(url: str, path: str, body: JsonDict | None = None) -> Any:
    """The answer of a running service; what it refuses is one sentence."""
    import json
    import urllib.error

    from tisat.errors import InputError
    from tisat_serve import http_client as asking

    headers = {"Content-Type": "application/json"}
    if "TISAT_TOKEN" in os.environ:
        headers["Authorization"] = f"Bearer {os.environ['TISAT_TOKEN']}"
    content = None if body is None else json.dumps(body).encode()
    address = asking.check_address(url, "--url") + path
    try:
        return json.loads(asking.ask(address, headers, content, timeout=600, most=-1))
    except urllib.error.HTTPError as error:
        try:
            said = json.load(error).get("error", "")
        except ValueError:
            said = ""
        raise InputError(said or f"The service at {url} answered {error.code}.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"--url must be where a service listens. Nothing answers at {url}: {error}.") from None


def _author() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "somebody"


def _show(one: JsonDict) -> None:
    threshold = f"threshold {one['threshold_before']:.4g} -> {one['threshold_after']:.4g}"
    what = {"refit": "another model", "pattern": "a known pattern"}.get(one["kind"], threshold)
    typer.echo(
        f"{one['id']}  {one['state']:9s} {one['entity'] or one['group']}: {what} ({one['budget']}), by {one['author']}"
    )
    for sentence in one["sentences"]:
        typer.echo(f"    {sentence}")


@app.command("refit")
def refit(
    url: Url = URL,
    group: Annotated[str, typer.Option(help="The group; the first unless given.")] = "",
    budget: Annotated[str | None, typer.Option(help="Another budget for it; as it is unless given.")] = None,
    reason: Reason = "",
) -> None:
    """Fit a group's model again on kept history and propose it, with what it would have done. Nothing changes by it."""
    _show(ask(url, "/api/v1/refits", {"group": group, "budget": budget, "author": _author(), "reason": reason}))


@app.command("proposals")
def proposals(
    url: Url = URL,
    state: Annotated[str, typer.Option(help="open, taken, left or reverted; all unless given.")] = "",
    shadow: Annotated[bool, typer.Option("--shadow", help="What open refits say of the rows that came since.")] = False,
) -> None:
    """Proposals with their consequences, the latest first."""
    for one in ask(url, f"/api/v1/proposals?state={state}"):
        _show(one)
        if shadow and one["kind"] == "refit" and one["state"] == "open":
            found = ask(url, f"/api/v1/proposals/{one['id']}/shadow")
            for sentence in found["sentences"]:
                typer.echo(f"    In the shadow, {found['rows']} rows: {sentence}")


def _decide(url: str, number: int, verb: str, reason: str) -> None:
    _show(ask(url, f"/api/v1/proposals/{number}/{verb}", {"author": _author(), "reason": reason}))


@app.command("take")
def take(number: Number, url: Url = URL, reason: Reason = "") -> None:
    """Put a proposal in force."""
    _decide(url, number, "take", reason)


@app.command("leave")
def leave(number: Number, url: Url = URL, reason: Reason = "") -> None:
    """Leave a proposal: nothing changes."""
    _decide(url, number, "leave", reason)


@app.command("revert")
def revert(number: Number, url: Url = URL, reason: Reason = "") -> None:
    """Go back to what was in force before a proposal."""
    _decide(url, number, "revert", reason)


@app.command("forget")
def forget(
    entity: Annotated[str, typer.Argument(help="The entity.", metavar="ENTITY")],
    url: Url = URL,
    data: Annotated[
        Path | None, typer.Option(help="Instead of --url: the folder of a service that is stopped.")
    ] = None,
    reason: Reason = "",
) -> None:
    """Forget an entity with its state, history, alarms and labels. A row of it that comes later enrols it afresh.

    `tisat serve forget pump-7 --reason 'scrapped'`
    """
    if data is not None:
        from tisat_serve.folder.forgetting import forget_in

        rows = forget_in(data, entity, now=time.time(), author=_author(), reason=reason)
    else:
        path = f"/api/v1/entities/{urllib.parse.quote(entity, safe='')}/forget"
        rows = ask(url, path, {"author": _author(), "reason": reason})["rows"]
    typer.echo(f"{entity}\t{rows} rows of history forgotten")
