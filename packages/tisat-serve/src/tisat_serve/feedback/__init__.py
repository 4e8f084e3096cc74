"""Operator feedback: labels, thresholds, maintenance windows, refits."""
