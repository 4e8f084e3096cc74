"""Write a list of answers as csv, for spreadsheets: ``?format=csv`` of any address that answers with a list."""

from __future__ import annotations

import csv
import io
from typing import Any

import msgspec

from tisat_serve.structs import Ledger

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run text that begins so


def rows_in(answer: object) -> list[Any] | None:
    """The rows of an answer that is a table; None where it is none."""
    if isinstance(answer, Ledger):
        return [answer.fleet, *answer.groups, *answer.entities]
    return answer if isinstance(answer, list) else None


def as_csv(rows: list[object]) -> str:
    """Rows as csv with a header; lists are joined, objects are JSON.

    Examples
    --------
    >>> as_csv([{"name": "=1", "ratio": 0.5, "channels": ["a", "b"]}]).splitlines()
    ['name,ratio,channels', "'=1,0.5,a; b"]
    """
    plain = [msgspec.to_builtins(row) for row in rows]
    columns = list(dict.fromkeys(name for row in plain for name in row))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_cell(row.get(name)) for name in columns] for row in plain)
    return text.getvalue()


def _cell(value: object) -> Any:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = "; ".join(value)
    elif isinstance(value, dict | list):
        value = msgspec.json.encode(value).decode()
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
