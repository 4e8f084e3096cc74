"""Where alarms go. Most sinks are told through the outbox (:mod:`.outbox`); Alertmanager is told again and again how things stand."""
