"""/metrics: how each entity stands, and how the service itself does.

``tisat_alarm_ratio`` at or above 1 is an alarm.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from tisat import __version__
from tisat_serve.engine import row_encoding as packing
from tisat_serve.service import Service

Figures = Iterable[tuple[tuple[str, ...], float]]  # values of the labels, and the figure
WHO = ("entity", "group")
STATUSES = ("ok", "alarm", "warming up", "unusable", "silent", "waiting")
LATENCY = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics(Collector):
    """Figures of a service, read when they are asked for."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.registry = CollectorRegistry()
        self.registry.register(self)
        asked, judged = "Time from a request to its answer.", "Time to write and judge the rows of one transaction."
        every: Any = {"registry": self.registry, "buckets": LATENCY}
        self.requests = Histogram("tisat_request_seconds", asked, ("endpoint", "code"), **every)
        judge = Histogram("tisat_judge_seconds", judged, **every)
        rows = "Rows written and scored in one transaction."
        together = Histogram("tisat_rows_together", rows, registry=self.registry, buckets=(1, 10, 100, 1000, 10000))
        known = {"judge_seconds": judge, "rows_together": together}
        service.observe = lambda name, value: known[name].observe(value)

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """See :class:`prometheus_client.registry.Collector`."""
        yield from self._entity_metrics()
        yield from self._budget_metrics()
        yield from self._service_metrics()

    def _entity_metrics(self) -> Iterator[Metric]:
        engine = self.service.engine
        now = engine.steady()
        with engine.lock:
            cells = [
                ((c.name, c.group), c.ratio, max(now - c.heard, 0.0), c.late, engine.entities.status(c))
                for c in engine.cells.values()
            ]
        ratios = [(who, ratio) for who, ratio, *_ in cells if math.isfinite(ratio)]
        counts = [((word,), sum(cell[-1] == word for cell in cells)) for word in STATUSES]
        ages = [(who, age) for who, _, age, *_ in cells]
        said = "Statistic / threshold of the last row: 1 or more is an alarm."
        yield gauge("tisat_alarm_ratio", said, ratios, WHO)
        yield gauge("tisat_last_row_age_seconds", "Seconds since the last row came.", ages, WHO)
        yield counter("tisat_late_rows", "Rows that came too late or twice.", ((c[0], c[3]) for c in cells), WHO)
        yield gauge("tisat_alarm_active", "1 while an alarm is on.", ((c[0], c[4] == "alarm") for c in cells), WHO)
        yield gauge("tisat_entities", "Entities in each status.", counts, ("status",))

    def _budget_metrics(self) -> Iterator[Metric]:
        service = self.service
        yield counter("tisat_alarms", "Alarms raised, by sort.", service.store_counts(), ("sort",))
        budgets = service.view.budgets()
        for name, help_text, field in (
            ("tisat_threshold", "Threshold in force for new entities.", "threshold"),
            ("tisat_budget_asked_time_steps", "Rows between two false alarms of one entity, asked for.", "asked"),
            ("tisat_budget_supported_time_steps", "The rarest budget the training data supports.", "supported"),
        ):
            yield gauge(name, help_text, (((one.group,), getattr(one, field)) for one in budgets), ("group",))
        line = service.ledger_line()
        allowed = "False alarms the budget allows in the rows scored in the kept history."
        yield gauge("tisat_budget_allowed", allowed, [((), line.allowed)])
        words = ("true", "false", "expected", "new_normal", "unmarked")
        raised = [((word,), getattr(line, word)) for word in words]
        yield gauge("tisat_budget_raised", "Statistical alarms raised, by label.", raised, ("label",))
        over = "1 where alarms marked false are beyond the budget with 95 % confidence."
        yield gauge("tisat_budget_over", over, [((), line.over)])

    def _service_metrics(self) -> Iterator[Metric]:
        service, engine = self.service, self.service.engine
        rows = [((word,), engine.counts[word]) for word in packing.STATUSES]
        yield counter("tisat_rows", "Rows by what became of them.", rows, ("status",))
        for name, help_text, value in (
            ("tisat_rows_turned_away", "Rows turned away because too many waited.", service.turned_away),
            ("tisat_states_saved", "States of entities written to the disk.", engine.counts["saves"]),
            ("tisat_entities_enrolled", "Entities that enrolled since the start.", engine.counts["enrolled"]),
            ("tisat_rows_replayed", "Rows scored again from the log at the start.", engine.replayed),
        ):
            yield counter(name, help_text, [((), value)])
        log = engine.store.read("SELECT coalesce(sum(count), 0) FROM log")[0][0]
        outbox = engine.store.read("SELECT count(*) FROM outbox")[0][0]
        gauges = [
            ("tisat_rows_waiting", "Rows in the queue.", service.waiting),
            ("tisat_rows_per_second", "Rows scored a second, lately.", service.rate),
            ("tisat_ready", "1 while rows are taken.", service.ready),
            ("tisat_problems", "Sources and sinks that do not work now, and other troubles.", len(service.problems)),
            ("tisat_disk_full", "1 while rows are refused for want of room.", engine.store.full),
            ("tisat_store_bytes", "Size of the store.", engine.store.bytes),
            ("tisat_log_rows", "Rows in the log that a restart may have to look at.", log),
            ("tisat_outbox_waiting", "Messages that are not sent yet.", outbox),
            ("tisat_resident_bytes", "Memory of the process.", resident_bytes()),
            ("tisat_cpu_seconds", "Processor time used.", sum(os.times()[:2])),
            ("tisat_started_seconds", "When it started, seconds since 1970.", service.started),
        ]
        for part in service.parts:
            gauges += [
                (f"tisat_{part.name}_{key}", f"Of {part.name}: {key}.", value) for key, value in part.report().items()
            ]
        for name, help_text, value in gauges:
            yield gauge(name, help_text, [((), value)])
        yield gauge("tisat_build_info", "The version that runs.", [((__version__,), 1.0)], ("version",))


def _family(
    kind: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    said: str,
    figures: Figures,
    labels: Sequence[str] = (),
) -> Metric:
    made = kind(name, said, labels=labels)
    for of, value in figures:
        made.add_metric(of, float(value))
    return made


gauge, counter = partial(_family, GaugeMetricFamily), partial(_family, CounterMetricFamily)


def resident_bytes() -> float:
    """Memory of this process that is in use now."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return float(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        try:
            import resource
        except ImportError:  # not on every system
            return 0.0
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024
