"""How numbers, times and columns are read: one room, used by files, frames, arrays, csv lines and JSON lines alike.

* :mod:`~tisat.reading.words`: what a cell may say: a number, or one word for "missing";
* :mod:`~tisat.reading.durations`: ``"10 min"``, a timedelta, seconds;
* :mod:`~tisat.reading.clock`: dates with their offset, and epoch numbers in their unit;
* :mod:`~tisat.reading.columns`: which column is the time, which the labels, and channels by name;
* :mod:`~tisat.reading.dates`, :mod:`~tisat.reading.zones`: dates as people write them, and local time;
* :mod:`~tisat.reading.packing`, :mod:`~tisat.reading.sniffing`: how a file is packed and written;
* :mod:`~tisat.reading.tables`, :mod:`~tisat.reading.times`: files in batches, and their time columns;
* :mod:`~tisat.reading.files`: all of it together, from a path to columns with roles.

What a file means cannot differ from what the same rows mean on standard input, because both ask here.
"""
