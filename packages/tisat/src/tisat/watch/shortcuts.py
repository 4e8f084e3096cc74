"""Alarms in one step, for those who do not keep the watch: ``detector.alarms(series, false_alarms="1/day")``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tisat.series import SeriesLike

if TYPE_CHECKING:
    from tisat.alarms.alarms import Alarms
    from tisat.alarms.rules import AlarmRule
    from tisat.watch.monitor import Monitor


class AlarmsInOneStep:
    """Alarms of a series, by way of a :class:`tisat.watch.Watch`."""

    def _watched(self, series: SeriesLike) -> tuple[Any, Any]:
        """The detector that is watched, and the series as it sees it."""
        return self, series

    def alarms(
        self,
        series: Any,
        *,
        false_alarms: Any,
        rule: str | AlarmRule = "excess",
        method: str = "auto",
        control: bool = True,
        period: Any = None,
        random_state: int = 0,
    ) -> Alarms:
        """The alarms of a series within a false-alarm budget: short for ``Watch(self, budget=...).alarms(series)``.

        Parameters
        ----------
        series : Series, array, dataframe or file path
        false_alarms : str, float or timedelta
            The budget: ``"1/day"``, ``"3/week"``, ``"1/1000 rows"``, a rate per row, or the time between two.
        rule, method, control, period, random_state
            Of :class:`tisat.watch.Watch`.

        Examples
        --------
        >>> import tisat
        >>> detector = tisat.registry.resolve("random-guess")().fit([[0.0]] * 5000)
        >>> detector.alarms([[0.0]] * 2000, false_alarms="1/250 rows", rule="threshold").calibration.target
        250.0
        """
        from tisat.watch.watch import Watch

        detector, seen = self._watched(series)
        options = {"rule": rule, "method": method, "control": control, "period": period, "random_state": random_state}
        return Watch(detector, budget=false_alarms, **options).alarms(seen)


class InOneStep(AlarmsInOneStep):
    """What a detector can do by way of a :class:`tisat.watch.Watch` on itself."""

    def monitor(
        self: Any,
        *,
        false_alarms: Any,
        rule: str | AlarmRule = "excess",
        method: str = "auto",
        control: bool = True,
        period: Any = None,
        random_state: int = 0,
        name: str = "",
    ) -> Monitor:
        """An online monitor within a false-alarm budget: short for ``Watch(self, budget=...).monitor()``; as :meth:`alarms`.

        Examples
        --------
        >>> import tisat
        >>> detector = tisat.registry.resolve("random-guess")().fit([[0.0]] * 5000)
        >>> monitor = detector.monitor(false_alarms="1/250 rows", rule="threshold")
        >>> monitor.update([0.0]).active
        False
        """
        from tisat.watch.watch import Watch

        options = {"rule": rule, "method": method, "control": control, "period": period, "random_state": random_state}
        return Watch(self, budget=false_alarms, **options).monitor(name=name)
