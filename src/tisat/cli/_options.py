"""Options that several verbs share, read one way."""

from __future__ import annotations

from typing import Annotated

import typer

DeltaMax = Annotated[str, typer.Option(help="Longest tolerable delay: instants, or a duration such as 10min.")]


def instants_or_duration(text: str) -> int | str:
    """``"100"`` is 100 instants; ``"10min"`` stays a duration.

    Examples
    --------
    >>> instants_or_duration("100"), instants_or_duration("10min")
    (100, '10min')
    """
    return int(text) if text.strip().lstrip("+-").isdigit() else text
