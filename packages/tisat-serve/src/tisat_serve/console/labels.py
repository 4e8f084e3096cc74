"""Numbers, moments and stretches of time as the pages write them, and a line of the ledger as a bar."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup

from tisat_serve.structs import LedgerLine

STATUS = {
    "alarm": "alarm on",
    "silent": "no rows come",
    "unusable": "cannot be judged",
    "warming up": "warming up",
    "waiting": "no row yet",
    "ok": "calm",
}  # in the order of what needs attention
LABELS = {
    "true": "a true fault",
    "false": "a false alarm",
    "expected": "expected",
    "new normal": "the new normal",
    "unmarked": "unmarked",
}
WIDTH = 300.0  # of the drawing, in its own units
PARTS = ("true", "expected", "new_normal", "false", "unmarked")
RANGES = {"15m": 900.0, "1h": 3600.0, "6h": 6 * 3600.0, "24h": 86400.0, "7d": 7 * 86400.0, "30d": 30 * 86400.0}


def number(value: float | None) -> str:
    """Four digits that count, no more.

    Examples
    --------
    >>> number(71.2996), number(1234567.0), number(0.00012351), number(None), number(3.0)
    ('71.3', '1,234,567', '0.0001235', '–', '3')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 1e9 or abs(value) < 1e-5:
        return f"{value:.3e}"
    places = max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def moment(seconds: float | None, fine: bool = False) -> Markup:  # noqa: FBT001, FBT002 - a filter of templates
    """A moment, in UTC, to the second where ``fine``.

    The browser writes it in the reader's own time.
    """
    if seconds is None:
        return Markup("–")
    if not -62135596800 <= seconds < 253402300800:  # years 1 to 9999
        return Markup("{} s").format(number(seconds))
    date = datetime.fromtimestamp(seconds, tz=UTC)
    return Markup('<time datetime="{}" data-t="{}"{}>{}</time>').format(
        date.strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds,
        Markup(" data-fine") if fine else "",
        date.strftime("%Y-%m-%d %H:%M:%S UTC" if fine else "%Y-%m-%d %H:%M UTC"),
    )


def clock(seconds: float) -> str:
    """A moment as a field of a form takes it, in UTC.

    Examples
    --------
    >>> clock(1770000000.0)
    '2026-02-02T02:40'
    """
    return datetime.fromtimestamp(min(max(seconds, -6e10), 2.5e11), tz=UTC).strftime("%Y-%m-%dT%H:%M")


def stretch(seconds: float | None) -> str:
    """How long something took.

    Examples
    --------
    >>> stretch(42), stretch(60 * 90), stretch(86400 * 3.5), stretch(-120), stretch(None)
    ('42 s', '1 h 30 min', '3 d 12 h', '-2 min', '–')
    """
    if seconds is None:
        return "–"
    sign, rest = ("-" if seconds < 0 else ""), abs(seconds)
    if rest < 60:
        return f"{sign}{rest:.0f} s"
    units = [("d", 86400), ("h", 3600), ("min", 60)]
    parts = []
    for name, size in units:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count:.0f} {name}")
    return sign + " ".join(parts[:2])


def level(ratio: float | None) -> str:
    """The colour class of a ratio: calm, near, over."""
    if ratio is None:
        return "none"
    return "over" if ratio >= 1.0 else "near" if ratio >= 0.5 else "calm"


@dataclass(frozen=True)
class Segment:
    """A stretch of a bar."""

    name: str
    count: int
    x: float
    width: float


@dataclass(frozen=True)
class Bar:
    """The places of a bar's parts, for an SVG of width ``WIDTH``."""

    segments: tuple[Segment, ...]
    allowed: float
    low: float
    high: float


def bar_of(line: LedgerLine, top: float) -> Bar:
    """The bar of a line, on a scale that ends at ``top``.

    Examples
    --------
    >>> line = LedgerLine("a", 1000, 2.0, 4, 1, 1, 0, 0, 2, 0, 1.1, 10.2, 0.0, 5.6, False, False)
    >>> bar = bar_of(line, 10.0)
    >>> [(part.name, part.x, part.width) for part in bar.segments], bar.allowed
    ([('true', 0.0, 30.0), ('false', 30.0, 30.0), ('unmarked', 60.0, 60.0)], 60.0)
    """
    unit = WIDTH / top
    segments, x = [], 0.0
    for name in PARTS:
        count = getattr(line, name)
        if count:
            segments.append(Segment(name, count, x, count * unit))
            x += count * unit
    return Bar(
        tuple(segments), min(line.allowed * unit, WIDTH), line.raised_low * unit, min(line.raised_high * unit, WIDTH)
    )
