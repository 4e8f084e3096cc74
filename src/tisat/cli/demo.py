"""``tisat demo``: placeholder until the alarm layer lands in this tree."""

from __future__ import annotations


def demo() -> None:
    """Generate, train, alarm, evaluate, report."""
    raise SystemExit("not yet")
