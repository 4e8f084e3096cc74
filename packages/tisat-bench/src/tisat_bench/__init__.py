"""The flow, many times: data sets x detectors x seeds, on one machine or a cluster, to tables a reviewer can check.

In the order of use:

* :mod:`~tisat_bench.experiment`: a TOML file becomes tasks;
* :mod:`~tisat_bench.task`: a task is a frozen value with a content hash;
* :mod:`~tisat_bench.task_run`: ``run_task``, a pure function from a task and its data to scores;
* :mod:`~tisat_bench.driver`: many of them, on an engine of :mod:`tisat.batch.engines`: in processes or on Ray;
* :mod:`~tisat_bench.store`: results on disk, append-only;
* :mod:`~tisat_bench.evaluation`: stored scores under each alarm rule, counted against the labels, as often as one likes;
* :mod:`~tisat.metrics.statistics`: what a difference means;
* :mod:`~tisat_bench.tables`, :mod:`~tisat_bench.random_baseline`: tables, of systems and of what chance gets.

No threshold sees test labels unless its column is called oracle. Every table shows what a trivial baseline gets.
"""

__version__ = "1.0.0"
