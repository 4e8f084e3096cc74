"""Bodies of requests and answers.

The endpoint of rows, as JSON, NDJSON or CSV, packed or not. A row that cannot be read is refused alone.
"""

from __future__ import annotations

import asyncio
import csv
import functools
import io
import math
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from tisat.errors import ConflictError, InputError, NotFoundError, TisatError
from tisat.io.missing_values import read_number
from tisat_serve.service import BusyError, Service
from tisat_serve.store import StoreFullError
from tisat_serve.structs import Outcome, Outcomes, Row

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
KINDS = {JSON: JSON, NDJSON: NDJSON, "application/ndjson": NDJSON, "application/jsonl": NDJSON, CSV: CSV}
_rows = msgspec.json.Decoder(list[Row]).decode
_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode
_row = msgspec.json.Decoder(Row).decode
BODY_SECONDS = 60.0  # in which a body must be here
ARRIVING = 128 << 20  # bytes of all bodies that are not here whole yet
DECODED = 4  # bodies decoded at once: each takes up to 100 MB while it is
_encode = msgspec.json.Encoder().encode
_arriving = 0
MOST_VALUES = 500_000  # commas in a body: what a value takes while it is decoded is 30 to 100 bytes


class _Whole(msgspec.Struct):
    rows: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_whole = msgspec.json.Decoder(_Whole).decode


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
        data = machine.decompress(body, most + 1)
    except zlib.error:
        raise BodyError(f"The body must be packed as its Content-Encoding says, {word}. It is not.") from None
    if len(data) > most:
        raise BodyError(f"The body must not be larger than {most} bytes when it is unpacked. It is.", 413)
    if not machine.eof:
        raise BodyError("The packed body must be whole. It ends too early.")
    return data


def rows_of(body: bytes, kind: str, *, entity: str = "", most: int) -> tuple[list[Row], dict[int, Outcome]]:
    """Rows, and the outcomes of those that could not be read, by their place."""
    word = kind.partition(";")[0].strip().lower()
    if word not in KINDS:
        raise BodyError(f"The Content-Type must be {JSON}, {NDJSON} or {CSV}. Got {kind[:60]!r} instead.", 415)
    if body.count(b",") > MOST_VALUES:
        raise BodyError(f"A request must not have more than {MOST_VALUES} values. It has; send it in parts.", 413)
    if KINDS[word] == CSV:
        return _csv(body, entity, most)
    return _json(body, most) if KINDS[word] == JSON else _rows_one_by_one(_lines(body), most)


def _too_many(most: int) -> BodyError:
    return BodyError(f"A request must not have more than {most} rows. It has; send them in parts.", 413)


def _json(body: bytes, most: int) -> tuple[list[Row], dict[int, Outcome]]:
    try:
        if body.lstrip()[:1] == b"{":
            whole = _whole(body)
            if whole.rows is msgspec.UNSET:
                return _rows_one_by_one([body], most)
            body = bytes(whole.rows)
        if body.count(b"{") > 2 * most and len(_raws(body)) > most:  # before a row is made of each
            raise _too_many(most)
        try:
            rows = _rows(body)
        except msgspec.ValidationError:
            return _rows_one_by_one(_raws(body), most)
        if len(rows) > most:
            raise _too_many(most)
        return rows, {}
    except (msgspec.DecodeError, RecursionError) as error:
        raise BodyError(
            f"The body must be JSON: a list of rows, or an object with 'rows'. It is not: {error}."
        ) from None


def _lines(body: bytes) -> Iterator[bytes]:
    """The lines of a body that are not empty, one at a time."""
    return (line for line in io.BytesIO(body) if not line.isspace())


def _rows_one_by_one(parts: Iterable[Any], most: int) -> tuple[list[Row], dict[int, Outcome]]:
    """Read rows one by one and stop at the first too many.

    Rows that are wrong alike share one reason.
    """
    rows, bad = [], {}
    notes: dict[str, str] = {}
    for place, part in enumerate(parts):
        if place >= most:
            raise _too_many(most)
        try:
            rows.append(_row(part))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            why = f"A row must have 'entity' (text), 'values' (a list, or an object by channel) and 'time'. {error}."
            bad[place] = Outcome("", "refused", reason=notes.setdefault(why, why))
    return rows, bad


def _csv(body: bytes, entity: str, most: int) -> tuple[list[Row], dict[int, Outcome]]:
    lines = csv.reader(io.TextIOWrapper(io.BytesIO(body), encoding="utf-8-sig", newline=""))  # line by line
    try:
        return _csv_rows(lines, entity, most)
    except UnicodeDecodeError:
        raise BodyError("The csv must be UTF-8. It is not.") from None
    except csv.Error as error:
        raise BodyError(f"The body must be csv. It is not: {error}.") from None


def _csv_rows(lines: Iterator[list[str]], entity: str, most: int) -> tuple[list[Row], dict[int, Outcome]]:
    header = [name.strip() for name in next(lines, [])]
    low = [name.lower() for name in header]
    who = low.index("entity") if "entity" in low else None
    when = next((low.index(name) for name in ("time", "timestamp") if name in low), None)
    if who is None and not entity:
        raise BodyError(
            "The csv must have a header with a column 'entity', or the address must say ?entity=name. Got neither."
        )
    channels = [(place, name) for place, name in enumerate(header) if place not in (who, when)]
    rows, bad = [], {}
    notes: dict[str, str] = {}
    for number, cells in enumerate(cells for cells in lines if cells):
        if number >= most:
            raise _too_many(most)
        name = cells[who].strip() if who is not None and who < len(cells) else entity
        try:
            if len(cells) != len(header):
                raise ValueError(f"it has {len(cells)} cells, the header {len(header)}")
            values = {name: _cell(cells[place]) for place, name in channels}
            rows.append(Row(name, values, cells[when] if when is not None else None))
        except ValueError as error:
            why = f"A csv row must have a number or nothing in each channel: {error}."
            bad[number] = Outcome(entity, "refused", reason=notes.setdefault(why, why))
    return rows, bad


def _cell(text: str) -> float | str | None:
    """The value of a cell.

    Text that is no number is left to the model, which may know it for a missing value.
    """
    try:
        value = read_number(text)
    except ValueError:
        return text.strip()
    if math.isinf(value):
        raise ValueError(f"{text.strip()[:40]!r} is not finite")
    return None if math.isnan(value) else value


def answer(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(_encode(value), status, headers, "application/json")


def refusal(error: Exception) -> Response:
    """The answer to what cannot be: one sentence and the code that fits."""
    document = {"error": str(error)}
    if isinstance(error, BusyError):
        return answer(document, 429, {"Retry-After": str(error.after)})
    if isinstance(error, StoreFullError):
        return answer(document, 507, {"Retry-After": "30"})
    if isinstance(error, BodyError):
        return answer(document, error.status)
    if isinstance(error, msgspec.ValidationError):
        return answer({"error": f"A parameter or a field must be as /openapi.json says. It is not: {error}."}, 422)
    if isinstance(error, msgspec.DecodeError):
        return answer({"error": f"The body must be JSON. It is not: {error}."}, 400)
    code = 404 if isinstance(error, NotFoundError) else 409 if isinstance(error, ConflictError) else 400
    parameter = getattr(error, "parameter", None)
    return answer(document if parameter is None else {**document, "parameter": parameter}, code)


async def body_of(request: Request, most: int, *, unpack: bool = True) -> bytes:
    """Read the body, unpacked unless told.

    Refuse one that is larger than ``most`` bytes or does not come in time.
    """
    global _arriving
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                _arriving += len(part)
                if size > most:
                    raise BodyError(f"The body must not be larger than {most} bytes. It is; send it in parts.", 413)
                if _arriving > ARRIVING:
                    raise BusyError(f"No more than {ARRIVING} bytes of bodies may arrive at once. Send it again.", 1)
                parts.append(part)
    except TimeoutError:
        raise BodyError(f"The body must come within {BODY_SECONDS:g} seconds. Got {size} bytes by then.", 408) from None
    finally:
        _arriving -= size
    whole = b"".join(parts)
    encoding = request.headers.get("content-encoding", "") if unpack else ""
    return await run_in_threadpool(unpacked, whole, encoding, most) if encoding else whole


def rows_endpoint(service: Service) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint that takes rows and answers with their outcomes."""
    decoding = CapacityLimiter(DECODED)

    async def rows(request: Request) -> Response:
        settings = service.settings
        try:
            body = await body_of(request, settings.body_bytes)
            kind = request.headers.get("content-type", "")
            # Turned away before it is decoded: overload costs next to nothing.
            service.check_room(max(1, body.count(b"\n" if "csv" in kind else b'"entity"')))  # about as many rows
            entity = request.query_params.get("entity", "")
            decode = functools.partial(rows_of, body, kind, entity=entity, most=settings.rows_in_request)
            found, bad = await to_thread.run_sync(decode, limiter=decoding)
            outcomes: list[Outcome] = []
            if found:
                outcomes = await asyncio.wrap_future(service.submit(found))
        except TisatError as error:
            return refusal(error)
        good = iter(outcomes)
        whole = [bad[k] if k in bad else next(good) for k in range(len(bad) + len(outcomes))] if bad else outcomes
        refused = sum(one.status == "refused" for one in whole)
        return answer(Outcomes(whole, len(whole) - refused, refused))

    return rows
