"""/metrics: how each entity stands, and how the service itself does. ``tisat_alarm_ratio`` at or above 1 is an alarm."""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from tisat._version import __version__

if TYPE_CHECKING:
    from tisat.serve.service import Service

STATUSES = ("ok", "alarm", "warming up", "unusable", "silent", "waiting")
LATENCY = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics(Collector):
    """Figures of a service, read when they are asked for."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.requests = Histogram(
            "tisat_request_seconds",
            "Time from a request to its answer.",
            ("endpoint", "code"),
            registry=self.registry,
            buckets=LATENCY,
        )
        judge = Histogram(
            "tisat_judge_seconds",
            "Time to write and judge the rows of one transaction.",
            registry=self.registry,
            buckets=LATENCY,
        )
        together = Histogram(
            "tisat_rows_together",
            "Rows written and judged in one transaction.",
            registry=self.registry,
            buckets=(1, 10, 100, 1000, 10000),
        )
        known = {"judge_seconds": judge, "rows_together": together}
        service.observe = lambda name, value: known[name].observe(value)

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Any]:
        """See :class:`prometheus_client.registry.Collector`."""
        yield from self._entities()
        yield from self._budget()
        yield from self._self()

    def _entities(self) -> Iterator[Any]:
        engine = self.service.engine
        ratio = GaugeMetricFamily(
            "tisat_alarm_ratio",
            "Statistic / threshold of the last row: 1 or more is an alarm.",
            labels=("entity", "group"),
        )
        age = GaugeMetricFamily(
            "tisat_last_row_age_seconds", "Seconds since the last row came.", labels=("entity", "group")
        )
        late = CounterMetricFamily("tisat_late_rows", "Rows that came too late or twice.", labels=("entity", "group"))
        active = GaugeMetricFamily("tisat_alarm_active", "1 while the alarm is on.", labels=("entity", "group"))
        status = GaugeMetricFamily("tisat_entities", "Entities in each status.", labels=("status",))
        now = engine.clock()
        with engine.lock:
            cells = [
                (c.name, c.group, c.ratio, c.received, c.late, "silent" if c.quiet else c.status)
                for c in engine.cells.values()
            ]
        for name, group, value, received, count, word in cells:
            labels = (name, group)
            if math.isfinite(value):
                ratio.add_metric(labels, value)
            age.add_metric(labels, max(now - received, 0.0))
            late.add_metric(labels, count)
            active.add_metric(labels, float(word == "alarm"))
        for word in STATUSES:
            status.add_metric((word,), sum(cell[-1] == word for cell in cells))
        yield from (ratio, age, late, active, status)

    def _budget(self) -> Iterator[Any]:
        service = self.service
        found = dict(service.store_counts())
        alarms = CounterMetricFamily("tisat_alarms", "Alarms raised, by sort.", labels=("sort",))
        for (sort,), count in found.items():
            alarms.add_metric((sort,), count)
        yield alarms
        threshold = GaugeMetricFamily("tisat_threshold", "Threshold in force for new entities.", labels=("group",))
        asked = GaugeMetricFamily(
            "tisat_budget_asked_instants",
            "Instants between two false alarms of one entity, asked for.",
            labels=("group",),
        )
        vouched = GaugeMetricFamily(
            "tisat_budget_vouched_instants", "The rarest budget the training data vouches for.", labels=("group",)
        )
        for budget in service.view.budgets():
            threshold.add_metric((budget.group,), budget.threshold)
            asked.add_metric((budget.group,), budget.asked)
            vouched.add_metric((budget.group,), budget.vouched)
        yield from (threshold, asked, vouched)
        line = service.ledger_line()
        allowed = GaugeMetricFamily(
            "tisat_budget_allowed", "False alarms the budget allows in the rows judged in the kept history."
        )
        allowed.add_metric((), line.allowed)
        raised = GaugeMetricFamily("tisat_budget_raised", "Statistical alarms raised, by label.", labels=("label",))
        for word in ("true", "false", "expected", "new_normal", "unmarked"):
            raised.add_metric((word,), getattr(line, word))
        over = GaugeMetricFamily(
            "tisat_budget_over", "1 where alarms marked false are beyond the budget with 95 % confidence."
        )
        over.add_metric((), float(line.over))
        yield from (allowed, raised, over)

    def _self(self) -> Iterator[Any]:
        service, engine = self.service, self.service.engine
        rows = CounterMetricFamily("tisat_rows", "Rows by what became of them.", labels=("status",))
        for word in ("ok", "warming up", "unusable", "late", "duplicate", "unconfirmed", "refused"):
            rows.add_metric((word,), engine.counts[word])
        yield rows
        for name, help_, value in (
            ("tisat_rows_turned_away", "Rows turned away because too many waited.", service.turned_away),
            ("tisat_states_saved", "States of entities written to the disk.", engine.counts["saves"]),
            ("tisat_entities_enrolled", "Entities that enrolled since the start.", engine.counts["enrolled"]),
            ("tisat_rows_replayed", "Rows judged again from the log at the start.", engine.replayed),
        ):
            family = CounterMetricFamily(name, help_)
            family.add_metric((), value)
            yield family
        usage = resource.getrusage(resource.RUSAGE_SELF)
        log = engine.store.read("SELECT count(*), coalesce(sum(count), 0) FROM log")[0]
        gauges = [
            ("tisat_rows_waiting", "Rows in the queue.", service.waiting),
            ("tisat_rows_per_second", "Rows judged a second, lately.", service.rate),
            ("tisat_ready", "1 while rows are taken.", float(service.ready)),
            ("tisat_problems", "Sources and sinks that do not work now, and other troubles.", len(service.problems)),
            ("tisat_disk_full", "1 while rows are refused for want of room.", float(engine.full)),
            ("tisat_store_bytes", "Size of the store.", engine.store.bytes),
            ("tisat_log_rows", "Rows in the log that a restart may have to look at.", log[1]),
            (
                "tisat_outbox_waiting",
                "Messages that are not sent yet.",
                engine.store.read("SELECT count(*) FROM outbox")[0][0],
            ),
            ("tisat_resident_bytes", "Memory of the process.", resident_bytes()),
            ("tisat_cpu_seconds", "Processor time used.", usage.ru_utime + usage.ru_stime),
            ("tisat_started_seconds", "When it started, seconds since 1970.", service.started),
        ]
        for part in service.parts:
            gauges += [
                (f"tisat_{part.name}_{key}", f"Of {part.name}: {key}.", value) for key, value in part.report().items()
            ]
        for name, help_, value in gauges:
            gauge = GaugeMetricFamily(name, help_)
            gauge.add_metric((), value)
            yield gauge
        info = GaugeMetricFamily("tisat_build_info", "The version that runs.", labels=("version",))
        info.add_metric((__version__,), 1.0)
        yield info


def resident_bytes() -> float:
    """Memory of this process that is in use now."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return float(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024
