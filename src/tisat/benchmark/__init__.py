"""The flow, many times: data sets x detectors x seeds, on one machine or a cluster, to tables a reviewer can check.

In the order of use:

* :mod:`~tisat.benchmark.experiment`: a TOML file becomes tasks;
* :mod:`~tisat.benchmark.task`: a task is a frozen value with a content hash;
* :mod:`~tisat.benchmark.run`: ``run_task``, a pure function from a task and its data to scores;
* :mod:`~tisat.benchmark.drive`: many of them, on an engine of :mod:`tisat.engines`: in processes or on Ray;
* :mod:`~tisat.benchmark.store`: results on disk, append-only;
* :mod:`~tisat.benchmark.evaluation`: stored scores under each alarm rule, counted against the labels, as often as one likes;
* :mod:`~tisat.benchmark.statistics`: what a difference means;
* :mod:`~tisat.benchmark.tables`, :mod:`~tisat.benchmark.chance`: tables, of systems and of what chance gets.

No threshold sees test labels unless its column is called oracle. Every table shows what a fool gets.
"""
