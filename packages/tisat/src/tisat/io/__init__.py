"""How numbers, times and columns are read: one package, used by files, frames, arrays, csv lines and JSON lines alike.

* :mod:`~tisat.io.missing_values`: what a cell may say: a number, or one word for "missing";
* :mod:`~tisat.io.durations`: ``"10 min"``, a timedelta, seconds;
* :mod:`~tisat.io.timestamps`: dates with their offset, and epoch numbers in their unit;
* :mod:`~tisat.io.columns`: which column is the time, which the labels, and channels by name;
* :mod:`~tisat.io.dates`, :mod:`~tisat.io.time_zones`: dates as people write them, and local time;
* :mod:`~tisat.io.compression`, :mod:`~tisat.io.text_encoding`, :mod:`~tisat.io.dialect`: how a file is packed and written;
* :mod:`~tisat.io.tables`, :mod:`~tisat.io.time_columns`: files in batches, and their time columns;
* :mod:`~tisat.io.files`: all of it together, from a path to columns with roles.

What a file means cannot differ from what the same rows mean on standard input, because both ask here.
"""
