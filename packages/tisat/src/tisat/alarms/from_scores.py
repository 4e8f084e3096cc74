"""Alarms from scores of any origin, within a false-alarm budget.

This module knows no detector.
"""

from __future__ import annotations

import numpy.typing as npt

from tisat.alarms.alarms import Alarms, Traced, alarms_of
from tisat.alarms.budget import Budget, BudgetLike
from tisat.alarms.calibration import calibrate
from tisat.alarms.rules import DEFAULT_RULE, AlarmRule, Scored, make_rule
from tisat.io.durations import DurationLike


def raise_alarms(
    scores: npt.ArrayLike,
    *,
    normal: npt.ArrayLike,
    false_alarms: BudgetLike,
    period: DurationLike | None = None,
    rule: str | AlarmRule = DEFAULT_RULE,
    method: str = "auto",
    control: bool = True,
    random_state: int = 0,
    **options: object,
) -> Alarms:
    """Alarms from any score, within a false-alarm budget.

    Parameters
    ----------
    scores : array of shape (T,) or (T, m)
        Higher = more anomalous; or residual vectors. NaN where there is none.
    normal : array of shape (N,) or (N, m)
        The same for normal data the scoring model has not seen, in time order.
    false_alarms : str, float or timedelta
        The budget: ``"1/day"``, ``"1/1000 rows"``, a rate per row: see :class:`tisat.alarms.Budget`.
    period : float, str or timedelta, optional
        The sampling period, where the budget speaks of time.
    rule : str or AlarmRule
        ``excess``, ``threshold`` or ``paper``; ``options`` are the rule's own.
    method : str
        How the threshold is found: see :func:`tisat.alarms.calibrate`.
    control : bool
        The threshold follows the alarms, so that in the long run weak ones keep to the budget; False: it stays.
    random_state : int
        Seed of the calibration.
    options : object
        Parameters of the rule.

    Returns
    -------
    Alarms
        The alarms with scores, evidence, statistic and calibration.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.exponential(size=3000)
    >>> scores[2000:2040] += 30.0
    >>> len(raise_alarms(scores, normal=rng.exponential(size=50_000), false_alarms="1/10000 rows"))
    1
    """
    scored = Scored.of(scores, whose="raise_alarms")
    alarm_rule = make_rule({"name": rule, **options})
    calibration = calibrate(
        alarm_rule,
        normal,
        Budget.parse(false_alarms, period=period),
        method=method,
        control=control,
        random_state=random_state,
    )
    return alarms_of(Traced.of(scored, alarm_rule, calibration), rule=alarm_rule, calibration=calibration)
