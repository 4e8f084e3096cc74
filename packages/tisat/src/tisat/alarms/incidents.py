"""Alarms of several machines that are one incident: the definition that the library's page and the service share.

An alarm belongs to the incident of an earlier one that was not over when it began, if it began at most :data:`SPREAD` sampling periods after
that one was raised. An alarm began at its onset, but not earlier than :data:`TOGETHER` periods before its raise: an onset is an estimate, the
last row the statistic was 0, and may lie hours before the fault.
"""

TOGETHER = 10  # sampling periods between the beginning of an alarm and its raise, at most
SPREAD = 5  # sampling periods that a fault takes from one machine to another, at most
