r"""Influx line protocol: ``measurement,tag=a,other=b field=1.5,more=2i 1770000000000000000``, as Telegraf and InfluxDB clients send it.

Commas, spaces and equals signs in names are escaped with a backslash; text fields are in quotes and are left out.
"""

from __future__ import annotations

import math
import re

from tisat.errors import InputError
from tisat_serve.sources.samples import Sample, Samples

PRECISIONS = {"ns": 1, "n": 1, "us": 10**3, "u": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_SPACE = re.compile(r"(?<!\\) ")
_COMMA = re.compile(r"(?<!\\),")
_FIELD = re.compile(r'((?:\\.|[^=,\\])+)=("(?:\\.|[^"\\])*"|[^,"]*)(?:,|$)')
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def _plain(name: str) -> str:
    return re.sub(r"\\([,= ])", r"\1", name)


def parse_line(line: str) -> tuple[str, dict[str, str], dict[str, float], int | None]:
    r"""Measurement, tags, numeric fields and the time of a line.

    Examples
    --------
    >>> parse_line(r'cpu,host=a\ b usage=0.5,count=3i,note="x, y=1" 17')
    ('cpu', {'host': 'a b'}, {'usage': 0.5, 'count': 3.0}, 17)
    """
    head, rest = _split(line)
    name, *pairs = _COMMA.split(head)
    tags = {}
    for pair in pairs:
        key, sign, value = re.sub(r"(?<!\\)=", "\x00", pair, count=1).partition("\x00")
        if not sign:
            raise ValueError("a tag must be name=value")
        tags[_plain(key)] = _plain(value)
    end = _last_space(rest)
    body, stamp = (rest[:end], rest[end + 1 :].strip()) if end >= 0 else (rest, "")
    if stamp and not re.fullmatch(r"-?\d{1,19}", stamp):
        raise ValueError("the time must be a whole number")
    values, place = {}, 0
    for field in _FIELD.finditer(body):
        if field.start() != place:
            break
        place = field.end()
        number = _number(field[2])
        if number is not None:
            values[_plain(field[1])] = number
    if place != len(body) or not body:
        raise ValueError("fields must be name=value")
    return _plain(name), tags, values, int(stamp) if stamp else None


def _split(line: str) -> tuple[str, str]:
    found = _SPACE.search(line)
    if found is None or found.start() == 0:
        raise ValueError("a line must be: measurement,tags fields time")
    return line[: found.start()], line[found.end() :].strip()


def _last_space(text: str) -> int:
    """Find the last space outside quotes, after which the time begins."""
    quoted, last, place = False, -1, 0
    while place < len(text):
        sign = text[place]
        if sign == "\\":
            place += 2
            continue
        if sign == '"':
            quoted = not quoted
        elif sign == " " and not quoted:
            last = place
        place += 1
    return last


def _number(text: str) -> float | None:
    """A number; None for text. Whole numbers end in i or u."""
    if text[:1] == '"':
        return None
    if text in ("t", "T", "true", "True", "TRUE"):
        return 1.0
    if text in ("f", "F", "false", "False", "FALSE"):
        return 0.0
    plain = text[:-1] if text[-1:] in ("i", "u") else text
    if not _NUMBER.fullmatch(plain):
        raise ValueError(f"{text[:40]!r} must be a number")
    value = float(plain)
    return value if math.isfinite(value) else None


def samples_of(body: bytes, source: Samples, *, precision: str, now: int) -> tuple[list[Sample], list[str]]:
    """The samples of a body, and what was wrong with which line."""
    if precision not in PRECISIONS:
        raise InputError(f"The precision must be one of ns, us, ms, s, m, h. Got {precision[:20]!r} instead.")
    try:
        lines = body.decode().split("\n")
    except UnicodeDecodeError:
        raise InputError("The lines must be UTF-8. They are not.") from None
    samples: list[Sample] = []
    wrong: list[str] = []
    for number, line in enumerate(lines, 1):
        plain = line.strip()
        if not plain or plain.startswith("#"):
            continue
        try:
            measurement, tags, values, stamp = parse_line(plain)
        except ValueError as error:
            wrong.append(f"line {number}: {error}")
            continue
        at = now if stamp is None else stamp * PRECISIONS[precision]
        if not -(2**62) < at < 2**62:
            wrong.append(f"line {number}: the time must lie between the years 1824 and 2116")
            continue
        key = tuple(sorted(tags.items()))
        for name, value in values.items():
            found = source.route((measurement, name, key), tags, measurement, name)
            if found is not None:
                samples.append(Sample(*found, at, value))
    return samples, wrong
