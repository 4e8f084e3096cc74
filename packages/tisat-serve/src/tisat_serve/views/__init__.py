"""Read-only answers: entities, alarms, charts, figures for Prometheus."""
