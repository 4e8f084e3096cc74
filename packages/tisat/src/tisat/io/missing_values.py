"""What a cell of text may say: a number, or that there is none."""

from __future__ import annotations

from collections.abc import Sequence

# Lower case; a cell is compared without its surrounding spaces and in lower case.
MISSING = frozenset({"", "nan", "null", "none", "na", "n/a", "#n/a", "nil", "-", "--"})


def is_missing(cell: str) -> bool:
    """Whether a cell says that its value is missing.

    Examples
    --------
    >>> is_missing(" #N/A "), is_missing("NONE"), is_missing("0")
    (True, True, False)
    """
    return cell.strip().lower() in MISSING


def is_word(cell: str, words: Sequence[str]) -> bool:
    """Whether a cell is one of the words, in any case.

    Examples
    --------
    >>> is_word(" BAD INPUT", ["Bad Input"]), is_word("2.5", [])
    (True, False)
    """
    return bool(words) and cell.strip().lower() in {word.strip().lower() for word in words}


def spellings(words: Sequence[str] = ()) -> list[str]:
    """Every way the missing words, and those given, are commonly written, for readers that compare letter by letter."""
    known = {*MISSING, *words, *(word.lower() for word in words)}
    found = {form for word in known for form in (word, word.upper(), word.title(), word.capitalize())}
    return sorted(found | {"NaN"})


def read_number(cell: str, *, decimal: str = ".") -> float:
    """The number a cell holds, NaN where it says that there is none; ValueError where it says something else.

    Examples
    --------
    >>> read_number("2,5", decimal=","), read_number("n/a")
    (2.5, nan)
    """
    text = cell.strip()
    if is_missing(text):
        return float("nan")
    if "_" in text or not text.isascii():
        raise ValueError(text)  # Python reads 1_000 and digits of every script as numbers; files do not mean it
    return float(text if decimal == "." else text.replace(decimal, "."))


def is_number(cell: str, *, decimal: str = ".") -> bool:
    """Whether a cell holds a number or says that it is missing."""
    try:
        read_number(cell, decimal=decimal)
    except ValueError:
        return False
    return True
