"""Scripts and styles that pages carry inside them.

Where they come from is in README.md beside this file.
"""

from __future__ import annotations

from importlib.resources import files


def read(name: str) -> str:
    """The text of one file of this folder.

    Examples
    --------
    >>> "uPlot" in read("uPlot.iife.min.js")
    True
    """
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
