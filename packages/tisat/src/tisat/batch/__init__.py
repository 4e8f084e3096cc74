"""Many machines: where the rows of each lie, and the same work on every one of them, on one core or a cluster.

* :func:`find_machines`: the machines that files, folders, patterns, long tables and partitioned data sets mean, without
  reading their rows;
* :class:`Machine`: one of them; ``read()`` reads its rows alone;
* :func:`group_machines`: which of them share a model;
* :class:`FitEach`, :class:`FitGroup`, :class:`UpdateEach`, :class:`AlarmEach`, :class:`ScoreEach`: jobs for an engine of :mod:`tisat.batch.engines`; each machine is read where it is worked on, so
  that no row passes through the process that hands out the work.
"""

from __future__ import annotations

from tisat.batch.alarming import AlarmEach, MachineAlarms, ScoreEach
from tisat.batch.fitting import FitEach, FitGroup, UpdateEach
from tisat.batch.groups import Describe, group_machines
from tisat.batch.machines import Machine, find_machines

__all__ = [
    "AlarmEach",
    "Describe",
    "FitEach",
    "FitGroup",
    "Machine",
    "MachineAlarms",
    "ScoreEach",
    "UpdateEach",
    "find_machines",
    "group_machines",
]
