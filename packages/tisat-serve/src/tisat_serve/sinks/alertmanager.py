"""Alertmanager, API v2: every alarm that is on is told again and again, with an end a little ahead; a cleared one is told resolved.

Clients must re-send: Alertmanager forgets what nobody repeats. So there is nothing to keep here; after a restart the book says
what is on.
"""

from __future__ import annotations

import time as clocks
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from tisat.utils.types import JsonDict
from tisat_serve.http_client import ask, check_address, check_authority, without_credentials
from tisat_serve.sinks.moments import say_moment
from tisat_serve.structs import AlarmInfo
from tisat_serve.worker import ListeningPart

TIMEOUT = 10.0
OLD = 30 * 86400.0  # a start further back than this is told as when it was noticed
RESOLVED = 900.0  # seconds for which a cleared alarm is still told resolved


class Alertmanager(ListeningPart):
    """A :class:`tisat_serve.service.Part` that sends alerts to Alertmanager.

    Parameters
    ----------
    name : str
    url : str
        Such as ``http://127.0.0.1:9093``.
    every : float
        Seconds between two tellings; a new alarm is told at once.
    labels : dict
        Added to every alert.
    headers : dict
        Added to every request, such as Authorization.
    ca : str, optional
        A file of certificates to trust.
    """

    patience: ClassVar[float] = 3.0  # seconds its end waits for it; the next start tells how things stand

    def __init__(
        self,
        name: str,
        url: str,
        *,
        every: float = 60.0,
        labels: dict[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        ca: str | None = None,
    ) -> None:
        super().__init__()
        self._headers, self._ca = {"Content-Type": "application/json", **(headers or {})}, check_authority(ca)
        self.url = check_address(url, "The url of Alertmanager")
        self.name, self.every, self.labels = name, every, dict(labels or {})
        self.sent = self.failed = 0
        self._told: dict[str, str] = {}  # severity of the alarms told as on

    def report(self) -> dict[str, float]:
        """Requests that succeeded and that failed."""
        return {"sent": self.sent, "failed": self.failed}

    def _run(self) -> None:
        while not self._end.is_set():
            self._wake.clear()
            wait = self.every
            try:
                self.send_alerts()
                self.error = ""
            except Exception as error:  # whatever the server does: in a moment again
                self.failed += 1
                where = without_credentials(self.url)
                self._trouble(f"the alarms could not be told to {where}: {type(error).__name__}: {str(error)[:300]}")
                wait = min(5.0, self.every)
            self._wake.wait(wait)
            self._end.wait(0.05)  # what happens together is told together

    def send_alerts(self) -> None:
        """Send all alerts that are on or were resolved lately, even where there are none."""
        view, now = self._service.view, clocks.time()
        on = [
            alert for alert in view.alarms(active=True, suppressed=False, limit=10_000) if (alert.snoozed or 0.0) <= now
        ]
        off = [
            alert
            for alert in view.alarms(active=False, suppressed=False, limit=500)
            if alert.id in self._told or now - (alert.cleared or 0.0) < RESOLVED
        ]
        alerts = [self._alert(alert, now) for alert in on + off]
        for alert in on:  # a label that changes is another alert: the milder one is over
            mild = self._told.get(alert.id, alert.severity)
            if mild != alert.severity:
                alerts.append(self._alert(msgspec.structs.replace(alert, severity=mild, cleared=now), now))
        body = msgspec.json.encode(
            alerts
        )  # empty where there is nothing to tell: so a dead server is noticed before an alarm
        ask(f"{self.url}/api/v2/alerts", self._headers, body, timeout=TIMEOUT, ca=self._ca)
        self.sent += 1
        self._told = {alert.id: alert.severity for alert in on}

    def _alert(self, one: AlarmInfo, now: float) -> JsonDict:
        cell = self._service.engine.cells.get(one.entity)
        dated = one.sort == "silence" or cell is None or cell.dates
        begin = one.raised if dated and now - OLD < one.raised <= now else now
        end = now + 3 * self.every
        if one.cleared is not None:
            end = min(one.cleared, now) if dated and one.cleared > begin else now
        labels = {
            "alertname": {"statistic": "TisatAlarm", "silence": "TisatSilent", "channel": "TisatChannelSilent"}[
                one.sort
            ],
            "entity": one.entity,
            "group": one.group,
            "kind": one.kind,
            "channel": one.channels[0] if one.channels else "",  # to group by: what began together has it in common
            "alarm": one.id,
            "severity": one.severity,
            "incident": one.incident,
            **self.labels,
        }
        annotations = {
            "summary": f"{one.entity}: {one.kind or 'alarm'}",
            "why": one.why,
            "onset": say_moment(one.onset) if dated else f"{one.onset:g}",
            "channels": ", ".join(one.channels),
            "ratio": f"{one.ratio:.2f}",
            "budget": one.budget,
            "acknowledged": one.acknowledged,
            "state": one.state,
            "ongoing_since": say_moment(one.ongoing_since) if dated and one.ongoing_since is not None else "",
        }
        return {
            "labels": {key: value for key, value in labels.items() if value},
            "annotations": {key: value for key, value in annotations.items() if value},
            "startsAt": say_moment(begin),
            "endsAt": say_moment(max(end, begin + 0.001)),
            "generatorURL": f"{self._service.settings.url}/alarm/{one.id}",
        }
