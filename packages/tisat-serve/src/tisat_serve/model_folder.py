"""A folder of models, as ``tisat fit --each`` writes it: a group for each machine."""

from __future__ import annotations

import glob
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tisat.errors import InputError

if TYPE_CHECKING:
    from tisat_serve.config_tables import GroupTable


def one_each(group: GroupTable) -> list[GroupTable]:
    """The group; of a folder of models one for each machine that it matches, under the machine's name."""
    folder = Path(group.model)
    if not folder.is_dir():
        return [group]
    files = sorted(folder.glob("*.tisat"))
    if not files:
        raise InputError(
            f"The folder {str(folder)!r} must hold models, as tisat fit --each writes them. There are none."
        )
    chosen = [one for one in files if fnmatchcase(one.stem, group.match)]
    if not chosen:
        raise InputError(
            f"The match of the group {group.name!r} must fit a model of {str(folder)!r}, such as {files[0].stem!r}. Got {group.match!r} instead."
        )
    return [
        msgspec.structs.replace(group, name=one.stem, model=str(one), match=glob.escape(one.stem)) for one in chosen
    ]
