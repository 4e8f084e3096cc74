"""Alarms of several machines that are one incident: the definition that the library's page and the service share.

An alarm belongs to the incident of an earlier one if its onset or its raise lies between ten sampling periods before the onset of that alarm and
ten after its raise. A fault that machines share begins at one time, while each alarm is raised when its evidence suffices; an onset is an estimate,
so alarms that are raised together count too.
"""

TOGETHER = 10  # sampling periods
