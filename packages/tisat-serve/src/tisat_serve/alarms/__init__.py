"""Alarms in the store: events, incidents, known patterns, the budget report."""
