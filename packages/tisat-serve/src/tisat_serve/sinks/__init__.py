"""Sinks of alarms: through the outbox (:mod:`.outbox`), or Alertmanager."""
