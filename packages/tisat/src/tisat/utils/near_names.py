"""The name that somebody probably meant: one helper for channels, columns, detectors, rules, options, parameters and files."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from pathlib import Path

NEAR = 0.6  # of difflib: the least likeness of two names


def _plain(name: object) -> str:
    """A name without what people write in different ways: case, hyphens, underscores and spaces."""
    return re.sub(r"[-_.\s]+", "", str(name).casefold())


def meant(word: object, known: Collection[str], aliases: Mapping[str, str] | None = None) -> str:
    """`` Did you mean 'flow'?`` where a name is close to one that is known, else nothing.

    Parameters
    ----------
    word : object
        What was given.
    known : collection of str
    aliases : mapping, optional
        Other words for known names, such as those of other packages.

    Examples
    --------
    >>> meant("presure", ["pressure", "flow"])
    " Did you mean 'pressure'?"
    >>> meant("KNN", ["nearest-neighbors", "lof"], {"knn": "nearest-neighbors"})
    " Did you mean 'nearest-neighbors'?"
    """
    found = nearest_name(word, known, aliases)
    return f" Did you mean {found!r}?" if found is not None else ""


def nearest_name(word: object, known: Collection[str], aliases: Mapping[str, str] | None = None) -> str | None:
    """The known name that is closest to a word; None where none is close.

    Examples
    --------
    >>> nearest_name("presure", ["pressure", "flow"])
    'pressure'
    """
    folded = {_plain(name): str(name) for name in known}
    for other, name in (aliases or {}).items():
        if name in known:
            folded.setdefault(_plain(other), name)
    close = difflib.get_close_matches(_plain(word), folded, n=1, cutoff=NEAR)
    return folded[close[0]] if close else None


def meant_file(path: str | Path) -> str:
    """`` Did you mean 'week.csv'?`` where a name in the folder of a file is close to its own; of a folder that it is one; else nothing.

    Examples
    --------
    >>> meant_file("no-such-folder/week.csv")
    ''
    """
    file = Path(path)
    try:
        if file.is_dir():
            return (
                f" It is a folder: give one of its files, such as {str(min(file.iterdir(), default=file / 'name'))!r}."
            )
        return meant(file.name, [other.name for other in file.parent.iterdir()])
    except OSError:
        return ""
