"""A switch that ends a watch between two lines."""

from __future__ import annotations

from collections.abc import Iterator


class Interrupted(BaseException):
    """A signal to end, raised only while waiting for a line."""


class Switch:
    """Ends a watch between two lines: a signal that comes while a line is scored waits for its result."""

    def __init__(self) -> None:
        self.waiting = False
        self.off = False
        self.signal = 2  # the number of the signal that turned it off

    def __call__(self, number: int = 2, *_: object) -> None:
        """Turn it off; as a signal handler."""
        again, self.off = self.off, True
        if not again:
            self.signal = int(number)
        if self.waiting and not again:
            raise Interrupted

    def next(self, lines: Iterator[bytes]) -> bytes | None:
        """The next line; None where there is none, or the switch was turned before one came."""
        line: bytes | None = None
        try:
            self.waiting = True
            if not self.off:
                line = next(lines, None)
            self.waiting = False
        except Interrupted:
            self.waiting = False  # a line that has come is judged first
        return line
