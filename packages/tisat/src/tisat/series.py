"""Series: the value every part of the package takes in.

A series is a table of numbers with time on axis 0: values ``(T, C)``, and optionally timestamps, channel names, labels
and the name of the entity it was recorded on. It comes from numpy, pandas, polars, arrow, csv or parquet; narwhals and
arrow do the reading.

The contract for what is not there:

* a missing value is NaN and stays NaN here; what a detector does with it is said in :mod:`tisat.detectors.base`;
* infinity is an error that names its row and channel;
* duplicate or unsorted timestamps are an error that names the row; a jump in time is not, it is reported by ``gaps``.

This module does not know detectors, scores or data sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tisat.errors import DataFileError, InputError, SeriesError
from tisat.events import Events, events_from_labels
from tisat.io.columns import clock_like, order_of, position_names
from tisat.io.files import Columns, Reading, check_file, parts_of, read_columns, stem_of
from tisat.io.frames import frame_columns, named_columns
from tisat.io.time_columns import in_time_order
from tisat.io.timestamps import Times, read_times, say
from tisat.io.validate import check_times, check_values, plain_array, spread_of
from tisat.utils.html import table
from tisat.utils.near_names import meant
from tisat.utils.types import AnyArray, AnyFloats, Array, Flags, Integers
from tisat.utils.validation import check_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from narwhals.typing import IntoFrame

GAP_FACTOR = 1.5  # a step longer than this many sampling periods is a gap: a row is missing once it reaches 2


@dataclass(frozen=True, eq=False)
class Series:
    """A multi-channel series of T rows and C channels.

    Parameters
    ----------
    values : array of shape (T, C) or (T,)
        AnyFloats; NaN is a missing value. float32 stays float32, everything else becomes float64. Not copied, and marked
        read-only in the series' own view.
    timestamps : array of shape (T,), optional
        Dates (kept as ``datetime64[ns]`` in UTC) or numbers in seconds, strictly increasing. Numbers as large as dates
        since 1970 are dates, in seconds, milli-, micro- or nanoseconds by their size.
    channels : sequence of str, optional
        Names; ``"0"``, ``"1"``, ... where not given, and ``"value"`` of a single one.
    labels : array of 0 and 1, shape (T,), optional; 1 in events
    name : str
        The entity: machine, sensor, channel.
    offsets : array of shape (T,), optional
        Minutes east of UTC each date was written with; taken from the dates where they carry one.
    notes : tuple of str
        What had to be guessed when it was read, for people.
    seen : mapping
        How its file was written (delimiter, decimal sign, dates), where that was not plain csv.
    differenced : tuple of str
        Counters given as their growth per row; see :mod:`tisat.io.counters`.

    Examples
    --------
    >>> series = Series([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], labels=[0, 1, 1], name="pump")
    >>> series
    Series('pump', 3 rows x 2 channels, 1 event)
    >>> series[1:].values.tolist()
    [[3.0, 4.0], [5.0, 6.0]]
    """

    values: AnyFloats  # (T, C)
    timestamps: AnyArray | None = None  # (T,), datetime64[ns] or float64 seconds
    channels: tuple[str, ...] = ()  # C names
    labels: Flags | None = None  # (T,)
    name: str = ""  # the entity
    offsets: npt.NDArray[np.int16] | None = None  # (T,), minutes east of UTC, where the dates say so
    notes: tuple[str, ...] = ()  # what had to be guessed
    seen: Mapping[str, str] = field(default_factory=dict)  # how its file was written
    differenced: tuple[str, ...] = ()  # counters that are given as their growth per row

    def __post_init__(self) -> None:
        values = check_values(self.values).view()
        names = tuple(str(name) for name in self.channels) or position_names(values.shape[1])
        if len(names) != values.shape[1]:
            raise SeriesError(
                f"The channels of a series must name its {values.shape[1]} columns. Got {len(names)} names instead."
            )
        if len(set(names)) != len(names):
            twice = next(name for name, count in Counter(names).items() if count > 1)
            raise SeriesError(f"The channels of a series must have distinct names. Got {twice!r} twice.")
        for start in range(0, len(values), 65_536):  # in blocks: a mask of a huge series is itself huge
            infinite = np.isinf(values[start : start + 65_536])
            if infinite.any():
                row, column = (int(i) for i in np.argwhere(infinite)[0])
                raise SeriesError(
                    f"The values of a series must be finite or NaN (missing). Got {values[start + row, column]} at row {start + row}, "
                    f"channel {names[column]!r} instead. Leave such a cell empty (NaN) to have it taken for missing."
                )
        values.flags.writeable = False
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "channels", names)
        if self.timestamps is not None:
            times = self.timestamps if isinstance(self.timestamps, Times) else read_times(self.timestamps)
            object.__setattr__(self, "timestamps", check_times(times, len(values)))
            if self.offsets is None and times.offsets is not None:
                object.__setattr__(self, "offsets", times.offsets)
            if times.note and times.note not in self.notes:
                object.__setattr__(self, "notes", (*self.notes, times.note))
        if self.labels is not None:
            labels = check_labels(self.labels, "labels", "Series")
            if len(labels) != len(values):
                raise SeriesError(
                    f"The labels of a series must have one entry a row ({len(values)}). Got {len(labels)} instead."
                )
            object.__setattr__(self, "labels", labels)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        parts = [repr(self.name)] if self.name else []
        parts.append(f"{len(self)} rows x {self.n_channels} channel{'s' * (self.n_channels != 1)}")
        if self.labels is not None:
            parts.append(f"{len(self.events)} event{'s' * (len(self.events) != 1)}")
        return f"Series({', '.join(parts)})"

    def _repr_html_(self) -> str:
        cells = [
            (name, *(f"{q:.4g}" for q in spread_of(self.values[:, c]))) for c, name in enumerate(self.channels[:50])
        ]
        known = f"{self.stamp(0)} to {self.stamp(len(self) - 1)}, one every {self.period or 0.0:g} s"
        clock = "" if self.period is None else known
        return table(repr(self), ("channel", "least", "median", "most", "missing"), cells, note=clock)

    def plot(self, *, channels: int = 12) -> Figure:
        """A matplotlib figure of the first channels over time, labelled events in grey."""
        from tisat.io.channel_plot import draw_channels

        events = () if self.labels is None else self.events
        times = np.arange(len(self)) if self.timestamps is None else self.timestamps
        return draw_channels(times, self.values, self.channels, title=self.name, spans=events, most=channels)

    def __getitem__(self, rows: slice) -> Series:
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise InputError(f"A series must be indexed by a slice of rows with step 1. Got {rows!r} instead.")
        return replace(
            self,
            values=self.values[rows],
            timestamps=None if self.timestamps is None else self.timestamps[rows],
            labels=None if self.labels is None else self.labels[rows],
            offsets=None if self.offsets is None else self.offsets[rows],
        )

    @property
    def n_channels(self) -> int:
        """C, the number of channels."""
        return int(self.values.shape[1])

    @cached_property
    def events(self) -> Events:
        """The labelled events, ``(n, 2)`` half-open; an error where the series carries no labels."""
        if self.labels is None:
            raise SeriesError(f"The events of series {self.name!r} must come from labels, and it has none.")
        return events_from_labels(self.labels)

    @cached_property
    def seconds(self) -> Array | None:
        """Seconds since the first row, or None without timestamps."""
        if self.timestamps is None:
            return None
        elapsed = self.timestamps - self.timestamps[0]
        if elapsed.dtype.kind == "m":
            return np.asarray(elapsed / np.timedelta64(1, "s"), dtype=np.float64)
        return np.asarray(elapsed, dtype=np.float64)

    @cached_property
    def period(self) -> float | None:
        """The sampling period in seconds (the median step), or None without timestamps."""
        if self.seconds is None or len(self) < 2:
            return None
        return float(np.median(np.diff(self.seconds)))

    @cached_property
    def gaps(self) -> Integers:
        """The rows before which time jumps by more than 1.5 sampling periods (none without timestamps)."""
        if self.seconds is None or self.period is None:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(np.diff(self.seconds) > GAP_FACTOR * self.period).astype(np.int64) + 1

    @property
    def missing(self) -> int:
        """How many values are missing."""
        return int(np.isnan(self.values).sum())

    def stamp(self, time_step: int | None) -> str | float | None:
        """The time of a row in the user's own clock: text for dates, seconds for numbers; None where there is none."""
        if self.timestamps is None or time_step is None or not 0 <= time_step < len(self):
            return None
        dates = self.timestamps.dtype.kind == "M"
        value = int(self.timestamps[time_step].astype(np.int64)) if dates else float(self.timestamps[time_step])
        return say(value, None if self.offsets is None else int(self.offsets[time_step]), dates=dates)

    def in_order(self, channels: Sequence[str], *, whose: str, ignore_extra: bool = False) -> Series:
        """The same series with the channels of a model, by name where both have names.

        See :mod:`tisat.io.columns`.
        """
        order = order_of(self.channels, channels, whose=whose, ignore_extra=ignore_extra)
        if order is None:  # by position, under the model's names: offline and online call a channel the same
            return self if self.channels == tuple(channels) else replace(self, channels=tuple(channels))
        return replace(self, values=self.values[:, order], channels=tuple(channels))

    def select(self, channels: Sequence[str]) -> Series:
        """The same series with only these channels, in this order."""
        unknown = [name for name in channels if name not in self.channels]
        if unknown:
            raise SeriesError(
                f"Series {self.name!r} has no channel {unknown[0]!r}; it has {', '.join(self.channels)}.{meant(unknown[0], self.channels)}"
            )
        columns = [self.channels.index(name) for name in channels]
        return replace(self, values=self.values[:, columns], channels=tuple(channels))

    def without_labels(self) -> Series:
        """The same series with its labels dropped: what a detector is allowed to see."""
        return replace(self, labels=None)

    @classmethod
    def from_table(
        cls,
        table: IntoFrame,
        *,
        time: str | None = None,
        label: str | None = None,
        name: str = "",
        channels: Sequence[str] | None = None,
        drop: Sequence[str] = (),
    ) -> Series:
        """A series from a pandas, polars, arrow or any other dataframe narwhals knows.

        Parameters
        ----------
        table : dataframe
            A pandas index that holds times is the time.
        time, label : str, optional
            The columns that hold them. Where not given, the first column called like one is taken (any case): is_anomaly,
            label, labels, anomaly; timestamp, time, datetime, date, ds, ts, else the only column of dates is the time.
        name : str
            The entity.
        channels : sequence of str, optional
            The columns that are channels; all others that hold numbers unless given.
        drop : sequence of str
            Columns to leave out.
        """
        found = frame_columns(table, time=time, label=label, name=name, channels=channels, drop=drop)
        return cls._of_columns(found, name, Reading(channels=channels), file=False)

    @classmethod
    def read(cls, path: str | Path, *, name: str | None = None, **how: object) -> Series:
        """A series from a file: csv and other text with a header, xlsx, JSON lines or parquet, also packed.

        Delimiter, decimal comma, encoding, units below the header and the way dates are written are found out; ``notes``
        says what was. What is ambiguous is refused with what to say.

        Parameters
        ----------
        path : str or Path
        name : str, optional
            The entity; the file's stem unless given.
        **how
            Of :class:`tisat.io.files.Reading`: ``time``, ``label``, ``channels``, ``drop`` as in :meth:`from_table`;
            ``delimiter``, ``decimal``, ``encoding``, ``sheet``; ``time_format`` (``"day-first"``, ``"%d/%m/%Y"``, ...),
            ``timezone``; ``sort=True``, ``dedup="first"``, ``"last"`` or ``"mean"``.
        """
        series = cls.read_all(path, name=name, **how)
        if len(series) != 1:
            raise DataFileError(
                f"The file {str(path)!r} must hold one series here. Got {len(series)}; read_all reads them all."
            )
        return next(iter(series.values()))

    @classmethod
    def read_all(cls, path: str | Path, *, name: str | None = None, **how: object) -> dict[str, Series]:
        """Every series of a file, by name: one, or where ``entity`` names a column one for each of its values."""
        options = Reading.of(how)
        file = check_file(path)
        try:
            parts = parts_of(read_columns(file, options), stem_of(file) if name is None else name)
            return {entity: cls._of_columns(part, entity, options) for entity, part in parts.items()}
        except DataFileError:
            raise
        except MemoryError:
            raise DataFileError(
                f"The file {str(file)!r} must fit in memory when it is unpacked. It does not: give fewer rows or columns."
            ) from None
        except InputError as error:
            raise type(error)(f"{file}: {error}") from None

    @classmethod
    def _of_columns(cls, found: Columns, name: str, how: Reading, *, file: bool = True) -> Series:
        """A series from columns whose roles are known, but for a clock or a counter that nobody named."""
        notes, times, values, labels = list(found.notes), found.times, found.values, found.labels
        channels, keep = found.channels, list(range(len(found.channels)))
        for c in keep[:] if how.channels is None and len(channels) > 1 else []:
            kind = clock_like(values[:, c])
            if not kind:
                continue
            keep.remove(c)
            if kind == "a clock" and times is None:
                times = read_times(values[:, c], name=channels[c])
                notes.append(f"the column {channels[c]!r} is plainly a clock and was taken for the time")
            else:
                option = "--channels" if file else "channels"
                notes.append(
                    f"the column {channels[c]!r} is plainly {kind} and was left out; name it in {option} to keep it"
                )
        values = values[:, keep] if len(keep) < len(channels) else values
        if times is not None and (how.sort or how.dedup):
            times, values, labels, done = in_time_order(times, values, labels, sort=how.sort, dedup=how.dedup)
            notes += done
        if times is not None:
            check_times(times, len(values), file=file)
        return cls(
            values,
            timestamps=times,  # type: ignore[arg-type]  # read already, with its offsets
            channels=tuple(str(channels[c]) for c in keep),
            labels=labels, name=name, notes=tuple(notes), seen=found.seen,
        )  # fmt: skip


SeriesLike: TypeAlias = "Series | npt.ArrayLike | Path"  # dataframes are like arrays: they have __array__
ManySeries: TypeAlias = "SeriesLike | Sequence[SeriesLike]"  # or several of them


def as_series(data: SeriesLike, *, whose: str = "tisat") -> Series:
    """A series from whatever users hold: a Series, an array, a dataframe, or the path of a csv or parquet file.

    Examples
    --------
    >>> as_series([1.0, 2.0, 3.0])
    Series(3 rows x 1 channel)
    """
    if isinstance(data, Series):
        return data
    if isinstance(data, str | Path):
        return Series.read(data)
    if isinstance(data, np.ndarray | list | tuple):
        try:
            return Series(data if isinstance(data, np.ma.MaskedArray) else np.asarray(data))
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            must = f"The series given to {whose} must be a table of numbers. Got rows of different length."
            raise SeriesError(must) from None
    if hasattr(data, "toarray") and hasattr(data, "nnz"):
        must = f"The series given to {whose} must be dense: sparse data is not supported."
        raise SeriesError(f"{must} Give it as .toarray().")
    try:
        import narwhals as nw

        native = nw.from_native(named_columns(data), allow_series=True, eager_only=True)
        if isinstance(native, nw.Series):
            named = native if native.name else native.alias("value")
            return Series.from_table(named.to_frame().to_native())
        return Series.from_table(cast("IntoFrame", data))
    except TypeError:
        if hasattr(data, "__array__"):  # a tensor, an xarray, ...
            return Series(plain_array(data))
        raise SeriesError(
            f"The series given to {whose} must be a Series, an array, a dataframe or a file path. "
            f"Got {type(data).__qualname__} instead.{' Give it as .collect().' if hasattr(data, 'collect') else ''}"
        ) from None


def as_many(data: ManySeries, *, whose: str = "tisat") -> list[Series]:
    """One series or several: a list of anything :func:`as_series` takes, but a list of numbers or of rows is one series.

    Examples
    --------
    >>> len(as_many([np.zeros((5, 2)), np.zeros((7, 2))])), len(as_many([[1.0, 2.0], [3.0, 4.0]]))
    (2, 1)
    """
    if isinstance(data, list | tuple) and data:
        first = data[0]
        rows = isinstance(first, int | float | np.generic | list | tuple) or first is None
        rows = rows or (isinstance(first, np.ndarray) and first.ndim < 2)
        if not rows:
            return [as_series(one, whose=whose) for one in data]
    return [as_series(cast(SeriesLike, data), whose=whose)]
