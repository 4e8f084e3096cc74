"""Checks of what a state file holds before a monitor continues from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tisat.errors import ArtefactError
from tisat.gap_filling import Stamp
from tisat.watch.watch import Watch


def check_stamp(stamp: object, name: str) -> Stamp:
    """The time of a row from a state file; refused where it cannot be one."""
    if stamp is None or (isinstance(stamp, str | float | int) and not isinstance(stamp, bool)):
        return stamp
    raise ArtefactError(f"The {name!r} of a monitor must be a time or nothing. Got {str(stamp)[:40]!r} instead.")


@contextmanager
def whole_state(header: Mapping[str, Any], watch: Watch, where: str, *, kind: str) -> Iterator[None]:
    """Refuse a state of something else or of another watch; and whatever a damaged one makes of our code is one sentence."""
    if header.get("kind") != kind:
        raise ArtefactError(f"The state file {where!r} must hold a {kind}. Got {header.get('kind')!r} instead.")
    if header.get("watch") != watch.fingerprint():
        raise ArtefactError(
            f"The state file {where!r} must belong to this model and rule. It was written with another one; "
            "give that one, or begin with a new state file."
        )
    try:
        yield
    except ArtefactError:
        raise
    except Exception as error:
        raise ArtefactError(
            f"The state file {where!r} must hold a whole {kind}. It does not: {str(error)[:300]}"
        ) from None
