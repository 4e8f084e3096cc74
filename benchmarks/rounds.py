"""The one way things are timed against each other: in turns, the best round of each, which a busy machine disturbs least."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def best_of(
    functions: Mapping[str, Callable[[], object]], *, rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Seconds of each function's quickest round; they take turns, after one round that does not count."""
    best = dict.fromkeys(functions, float("inf"))
    for number in range(rounds + 1):
        for name, function in functions.items():
            started = clock()
            function()
            if number:
                best[name] = min(best[name], clock() - started)
    return best
