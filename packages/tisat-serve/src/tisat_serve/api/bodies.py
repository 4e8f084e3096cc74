"""Rows as clients send them: JSON, NDJSON or CSV, packed or not. A row that cannot be read is refused alone."""

from __future__ import annotations

import csv
import io
import math
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from tisat.errors import InputError
from tisat.io.missing_values import read_number
from tisat_serve.structs import Outcome, Row

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
KINDS = {JSON: JSON, NDJSON: NDJSON, "application/ndjson": NDJSON, "application/jsonl": NDJSON, CSV: CSV}
_rows = msgspec.json.Decoder(list[Row]).decode
_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode
_row = msgspec.json.Decoder(Row).decode


class BodyError(InputError):
    """A body that cannot be read; ``status`` is the answer's code."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def unpacked(body: bytes, encoding: str, most: int) -> bytes:
    """The body without its packing; refuses one that grows beyond ``most`` bytes."""
    word = encoding.strip().lower()
    if word in ("", "identity"):
        return body
    if word not in ("gzip", "deflate"):
        raise BodyError(f"The Content-Encoding must be gzip, deflate or absent. Got {encoding[:40]!r} instead.", 415)
    machine = zlib.decompressobj(47)  # gzip or zlib, by its first bytes
    try:
        found = machine.decompress(body, most + 1)
    except zlib.error:
        raise BodyError(f"The body must be packed as its Content-Encoding says, {word}. It is not.") from None
    if len(found) > most:
        raise BodyError(f"The body must not be larger than {most} bytes when it is unpacked. It is.", 413)
    if not machine.eof:
        raise BodyError("The packed body must be whole. It ends too early.")
    return found


def rows_of(body: bytes, kind: str, *, entity: str = "", most: int) -> tuple[list[Row], dict[int, Outcome]]:
    """Rows, and the outcomes of those that could not be read, by their place."""
    word = kind.partition(";")[0].strip().lower()
    if word not in KINDS:
        raise BodyError(f"The Content-Type must be {JSON}, {NDJSON} or {CSV}. Got {kind[:60]!r} instead.", 415)
    if KINDS[word] == CSV:
        rows, bad = _csv(body, entity)
    else:
        rows, bad = _json(body) if KINDS[word] == JSON else _ndjson(body)
    if len(rows) + len(bad) > most:
        raise BodyError(
            f"A request must not have more than {most} rows. Got {len(rows) + len(bad)}; send them in parts.", 413
        )
    return rows, bad


def _json(body: bytes) -> tuple[list[Row], dict[int, Outcome]]:
    text = body.lstrip()
    try:
        if text[:1] == b"{":
            whole = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
            if "rows" not in whole:
                return _each([msgspec.Raw(body)])
            body = bytes(whole["rows"])
        try:
            return _rows(body), {}
        except msgspec.ValidationError:
            return _each(_raws(body))
    except (msgspec.DecodeError, RecursionError) as error:
        raise BodyError(
            f"The body must be JSON: a list of rows, or an object with 'rows'. It is not: {error}."
        ) from None


def _ndjson(body: bytes) -> tuple[list[Row], dict[int, Outcome]]:
    return _each([line for line in body.split(b"\n") if line.strip()])


def _each(parts: Sequence[Any]) -> tuple[list[Row], dict[int, Outcome]]:
    rows, bad = [], {}
    for place, part in enumerate(parts):
        try:
            rows.append(_row(part))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            said = f"A row must have 'entity' (text), 'values' (a list, or an object by channel) and 'time'. {error}."
            bad[place] = Outcome("", "refused", reason=said)
    return rows, bad


def _csv(body: bytes, entity: str) -> tuple[list[Row], dict[int, Outcome]]:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BodyError("The csv must be UTF-8. It is not.") from None
    lines = csv.reader(io.StringIO(text, newline=""))
    try:
        header = [name.strip() for name in next(lines, [])]
        rest = [cells for cells in lines if cells]
    except csv.Error as error:
        raise BodyError(f"The body must be csv. It is not: {error}.") from None
    low = [name.lower() for name in header]
    who = low.index("entity") if "entity" in low else None
    when = next((low.index(name) for name in ("time", "timestamp") if name in low), None)
    if who is None and not entity:
        raise BodyError(
            "The csv must have a header with a column 'entity', or the address must say ?entity=name. Got neither."
        )
    channels = [(place, name) for place, name in enumerate(header) if place not in (who, when)]
    rows, bad = [], {}
    for number, cells in enumerate(rest):
        try:
            if len(cells) != len(header):
                raise ValueError(f"it has {len(cells)} cells, the header {len(header)}")
            values = {name: _cell(cells[place]) for place, name in channels}
            rows.append(
                Row(
                    cells[who].strip() if who is not None else entity, values, cells[when] if when is not None else None
                )
            )
        except ValueError as error:
            bad[number] = Outcome(
                entity, "refused", reason=f"A csv row must have a number or nothing in each channel: {error}."
            )
    return rows, bad


def _cell(text: str) -> float | None:
    value = read_number(text)
    if math.isinf(value):
        raise ValueError(f"{text.strip()[:40]!r} is not finite")
    return None if math.isnan(value) else value


def rows_guessed(body: bytes, kind: str) -> int:
    """About how many rows a body has, without decoding it.

    Examples
    --------
    >>> rows_guessed(b'[{"entity": "a", "values": [1]}, {"entity": "b", "values": [1]}]', "application/json")
    2
    """
    sign = b"\n" if "csv" in kind else b'"entity"'
    return max(1, body.count(sign))
