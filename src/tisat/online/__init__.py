"""The flow, row by row: a plan for a budget, monitors, fleets, rows on standard input. The same alarms as offline.

:class:`~tisat.online.monitor.Monitor` judges the rows of one entity, :class:`~tisat.online.fleet.Fleet` those of many in one
pass of the network; :mod:`~tisat.online.watching` reads rows as text and survives being killed. Detectors come in by what
they do: nothing here imports :mod:`tisat.base`.
"""
