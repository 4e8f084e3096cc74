"""A line of the ledger as a bar: what was allowed, what was raised, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

from tisat.serve.structs import LedgerLine

WIDTH = 300.0  # of the drawing, in its own units
PARTS = ("true", "expected", "new_normal", "false", "unmarked")


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
