"""Expose the last row of entities beside what was expected of it, as series: value, expected, lower, upper, score.

``GET /metrics/band?match=pump-*``, in Prometheus' text format: scraped beside ``/metrics``, a dashboard draws the band.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

from tisat.errors import ParameterError
from tisat_serve.folder.archive import rows_of
from tisat_serve.service import Service
from tisat_serve.views.prometheus import gauge

MOST = 200  # entities of one answer: each is explained anew
LABELS = ("entity", "group", "channel")
SERIES = {
    "tisat_value": "Value of the last row.",
    "tisat_expected": "What was expected of it.",
    "tisat_expected_lower": "Expected less the usual spread.",
    "tisat_expected_upper": "Expected plus the usual spread.",
}
FIGURES = {
    "tisat_score": "Score of the last row.",
    "tisat_statistic": "Alarm statistic after the last row.",
    "tisat_entity_threshold": "Threshold in force; the alarm is on at or above it.",
}


class _Band(Collector):
    def __init__(self, service: Service, names: list[str]) -> None:
        self.service, self.names = service, names

    def collect(self) -> Iterator[Metric]:
        """See :class:`prometheus_client.registry.Collector`."""
        channels: dict[str, list[tuple[tuple[str, ...], float]]] = {name: [] for name in SERIES}
        figures: dict[str, list[tuple[tuple[str, ...], float]]] = {name: [] for name in FIGURES}
        view, engine = self.service.view, self.service.engine
        for name in self.names:
            cell = engine.entities.get(name)
            if cell.at is None:
                continue
            info = view.entity(name)
            last = view.history(name, start=cell.at * 1e-9 - 1e-3, points=1, channels=1000)
            for channel in last.channels:
                who = (name, info.group, channel.name)
                expected, spread = channel.expected[-1], channel.spread[-1]
                low, high = (None if expected is None or spread is None else expected + s * spread for s in (-1, 1))
                for series, value in zip(SERIES, (channel.values[-1], expected, low, high), strict=True):
                    if value is not None:
                        channels[series].append((who, value))
            _, body = rows_of(engine.entities, name, cell.at, cell.at + 1)
            score = float(body.score[-1]) if len(body.score) else math.nan
            for series, figure in zip(FIGURES, (score, info.statistic, info.threshold), strict=True):
                if figure is not None and math.isfinite(figure):
                    figures[series].append(((name, info.group), figure))
        for series, said in SERIES.items():
            yield gauge(series, said, channels[series], LABELS)
        for series, said in FIGURES.items():
            yield gauge(series, said, figures[series], LABELS[:2])


def band(service: Service, match: str) -> bytes:
    """The series of the entities of a pattern.

    Raises
    ------
    ParameterError
        Where more than :data:`MOST` match.
    """
    names = fnmatch.filter(list(service.engine.cells), match)
    if len(names) > MOST:
        raise ParameterError(
            f"The pattern must match at most {MOST} entities. {match[:200]!r} matches {len(names)}; scrape several patterns.",
            parameter="match",
        )
    registry = CollectorRegistry()
    registry.register(_Band(service, sorted(names)))
    return generate_latest(registry)
