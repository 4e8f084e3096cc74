"""How numbers, times and columns are read: one room, used by files, frames, arrays, csv lines and JSON lines alike.

* :mod:`~tisat.reading.words`: what a cell may say: a number, or one word for "missing";
* :mod:`~tisat.reading.durations`: ``"10 min"``, a timedelta, seconds;
* :mod:`~tisat.reading.clock`: dates with their offset, and epoch numbers in their unit;
* :mod:`~tisat.reading.columns`: which column is the time, which the labels, and channels by name;
* :mod:`~tisat.reading.tables`: text and parquet files in batches.

What a file means cannot differ from what the same rows mean on standard input, because both ask here.
"""
