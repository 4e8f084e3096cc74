"""Alarms in one step, for those who do not keep the watch: ``detector.alarms(series, false_alarms="1/day")``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from tisat.alarms.budget import BudgetLike
from tisat.series import SeriesLike

if TYPE_CHECKING:
    from tisat.alarms.alarms import Alarms
    from tisat.watch.protocols import Scorer, WatchSettings


class AlarmsInOneStep:
    """Alarms of a series, by way of a :class:`tisat.watch.Watch`."""

    def _watched(self, series: SeriesLike) -> tuple[Scorer, SeriesLike]:
        """The detector that is watched, and the series as it sees it."""
        raise NotImplementedError

    def alarms(
        self,
        series: SeriesLike,
        *,
        false_alarms: BudgetLike,
        **settings: Unpack[WatchSettings],
    ) -> Alarms:
        """The alarms of a series within a false-alarm budget: short for ``Watch(self, budget=...).alarms(series)``.

        Parameters
        ----------
        series : Series, array, dataframe or file path
        false_alarms : str, float or timedelta
            The budget: ``"1/day"``, ``"3/week"``, ``"1/1000 rows"``, a rate per row, or the time between two.
        **settings
            Of :class:`tisat.watch.Watch`: ``rule``, ``method``, ``control``, ``period``, ``random_state`` and so on.

        Examples
        --------
        >>> import tisat
        >>> detector = tisat.registry.resolve("random-guess")().fit([[0.0]] * 5000)
        >>> detector.alarms([[0.0]] * 2000, false_alarms="1/250 rows", rule="threshold").calibration.target
        250.0
        """
        from tisat.watch.watch import Watch

        detector, seen = self._watched(series)
        return Watch(detector, budget=false_alarms, **settings).alarms(seen)
