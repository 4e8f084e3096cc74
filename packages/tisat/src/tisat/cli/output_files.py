"""Checks of the files that a verb is about to write: nothing is overwritten unasked, no input ever."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from tisat.errors import InputError, ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Identity: TypeAlias = tuple[int, int] | Path

PICTURES = (".png", ".svg", ".pdf")
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace output files that are there already.")]


def check_outputs(
    outputs: Mapping[str, Path | None], *, inputs: Iterable[str | Path | None] = (), overwrite: bool = False
) -> None:
    """Refuse outputs that would replace a file of the user's, or whose folder is not there.

    Parameters
    ----------
    outputs : mapping
        Option, as it is typed, to the file it names; ``--out (NAME)`` is a file in a folder that the verb makes.
    inputs : iterable of paths
        Files, folders and patterns that are read: never an output, whatever is said. So is the file behind standard input.
    overwrite : bool
        Replace files that are there.

    Raises
    ------
    InputError
    """
    given = {option: path for option, path in outputs.items() if path is not None}
    read = {_identity(file) for path in inputs if path is not None for file in _files(Path(path))}
    before: dict[Identity, str] = {}  # sets and dictionaries: a fleet has thousands of both
    for option, path in given.items():
        same = before.setdefault(identity := _identity(path), option)
        if same != option:
            raise InputError(f"{option} and {same} must be different files. Got {str(path)!r} for both.")
        if identity in read or is_standard_input(path):
            raise InputError(f"{option} must not be a file that is read here. Got {str(path)!r}; give another name.")
        if path.is_dir():
            raise InputError(f"{option} must be a file. {str(path)!r} is a folder: name a file in it.")
        if option.startswith("--picture") and path.suffix.lower() not in PICTURES:
            raise ParameterError(f"--picture must end in {', '.join(PICTURES)}. Got {str(path)!r} instead.")
        if "(" not in option and not path.resolve().parent.is_dir():
            raise InputError(f"The folder of {option} must exist. There is no {str(path.resolve().parent)!r}.")
        if not overwrite and path.is_file() and path.stat().st_size:
            continued = "to go on from it: --resume; " if option == "--checkpoint" else ""
            raise InputError(
                f"{option} must be a new file. {str(path)!r} is there already; {continued}to replace it: --overwrite."
            )


def check_folder(
    option: str, folder: Path | None, *, inputs: Iterable[str | Path | None] = (), overwrite: bool = False
) -> None:
    """Refuse a folder of outputs that holds files already, or that is read or lies around what is read.

    Parameters
    ----------
    option : str
        As it is typed.
    folder : Path or None
        Where many files will be written, whose names are not known before the work is done.
    inputs : iterable of paths
        Files and folders that are read: never replaced, whatever is said.
    overwrite : bool
        Replace files that are there.

    Raises
    ------
    InputError
    """
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{option} must be a folder. Got the file {str(folder)!r}.")
    for path in inputs:
        where = None if path is None else Path(path) if Path(path).is_dir() else Path(path).parent / "?"
        if where is not None and _identity(folder) == _identity(where):
            raise InputError(
                f"{option} must not be a folder that is read here. Got {str(folder)!r}; give another name."
            )
    if not overwrite and folder.is_dir() and any(folder.iterdir()):
        raise InputError(
            f"{option} must be a new or an empty folder. {str(folder)!r} holds files; to replace them: --overwrite."
        )


def save_figure(figure: Figure, path: Path) -> None:
    """Write a matplotlib figure, whole or not at all; the suffix says how."""
    from tisat.persistence.model_file import write_bytes

    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=120, format=path.suffix.lstrip(".").lower() or None)
    write_bytes(path, buffer.getvalue())


def is_standard_input(path: Path) -> bool:
    """Whether a file is the one that standard input is read from."""
    try:
        mine, other = os.fstat(sys.stdin.fileno()), path.stat()
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISREG(other.st_mode) and os.path.samestat(mine, other)


def _files(path: Path) -> list[Path]:
    """The files that a path or a pattern means; those of a folder are only compared with what would be written there."""
    if path.is_dir():
        return [file for file in path.iterdir() if file.is_file()]
    if path.exists():
        return [path]
    try:
        return [file for file in Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))) if file.is_file()]
    except (ValueError, NotImplementedError, OSError):
        return []


def _identity(path: Path) -> Identity:
    """The place on disk of a file that is there, and the name of one that is not; the same for two names of a file."""
    try:
        found = path.stat()
    except OSError:
        return path.absolute()
    return (found.st_dev, found.st_ino)
