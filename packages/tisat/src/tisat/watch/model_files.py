"""Checks of what a model file says beside its detector: settings, rule options, calibration, reading."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tisat.alarms.budget import Budget
from tisat.alarms.calibration import METHODS, Calibration
from tisat.alarms.result import from_episodes
from tisat.errors import ArtefactError
from tisat.io.files import Reading
from tisat.utils.fitted_state import check_fields, check_options
from tisat.utils.types import JsonMap

LONGEST_PERIOD = 1e10  # seconds between two rows: 300 years
MOST_FOLDS = 1000
ROUNDING = 1e-6  # how far a figure may be from the one that follows from the file's own table: another processor, another library


def check_watch(kept: object) -> None:
    """Refuse settings, options, calibration or reading that are not as declared."""
    if not isinstance(kept, Mapping):
        raise ArtefactError("The 'watch' of a model must be names and values.")
    period, seed = kept["period"], kept["random_state"]
    if period is not None and not (type(period) in (int, float) and 0 < period <= LONGEST_PERIOD):
        raise ArtefactError(f"The 'period' of a watch must be a number of seconds. Got {str(period)[:40]!r} instead.")
    if not (type(seed) is int and 0 <= seed < 2**32):
        raise ArtefactError(f"The 'random_state' of a watch must be a whole number. Got {str(seed)[:40]!r} instead.")
    if kept["method"] not in METHODS:
        raise ArtefactError("The 'method' of a watch must be one of ours.")
    if not isinstance(kept.get("control", False), bool):
        raise ArtefactError("The 'control' of a watch must be yes or no.")
    if kept["budget"] is not None:
        Budget.parse(kept["budget"], period=period or 60.0)
    check_options(kept["options"], whose="the rule")
    reading = kept["reading"]
    if not isinstance(reading, Mapping):
        raise ArtefactError("The 'reading' of a watch must be names and values.")
    check_fields(Reading, reading, whose="how files are read")
    Reading.of(reading)


def check_calibration(document: JsonMap) -> Calibration:
    """The calibration of a file.

    Refused where a value is not as declared, or contradicts the others.
    """
    if not isinstance(document, Mapping):
        raise ArtefactError("The calibration of a watch must be names and values.")
    named = {name: value for name, value in document.items() if name != "strict"}  # in files of earlier versions
    check_fields(Calibration, named, whose="a calibration")
    calibration = Calibration.from_json(dict(document))
    for name in ("target", "supported", "time_steps"):
        if not getattr(calibration, name) > 0:
            raise ArtefactError(
                f"The {name!r} of a calibration must be above 0. Got {getattr(calibration, name)} instead."
            )
    if calibration.period is not None and not 0 < calibration.period <= LONGEST_PERIOD:
        raise ArtefactError(
            f"The 'period' of a calibration must be a number of seconds. Got {calibration.period} instead."
        )
    if (
        calibration.alarms < 0
        or calibration.low < 0
        or (calibration.high is not None and calibration.high < calibration.low)
    ):
        raise ArtefactError("The counts of a calibration must be at least 0, and its interval in order.")
    if not 0 <= calibration.folds <= MOST_FOLDS:
        raise ArtefactError(f"The 'folds' of a calibration must be 0 to {MOST_FOLDS}. Got {calibration.folds} instead.")
    if calibration.normal is not None:
        _check_recomputed(calibration)
    return calibration


def check_scale(found: Calibration, compression: tuple[float, float] | None) -> None:
    """Refuse a calibration by episodes whose logarithmic scale is not that of the rule fitted on the file's points."""
    theirs, ours = found.compression or (), compression or ()
    if found.normal is not None and not (
        len(theirs) == len(ours) and all(_near(one, other) for one, other in zip(theirs, ours, strict=True))
    ):
        raise ArtefactError(
            f"The scale of a calibration must be that of its rule, {compression}. Got {found.compression} instead."
        )


def _check_recomputed(found: Calibration) -> None:
    """Refuse a calibration whose figures are not those that its own budget and normal levels give.

    Whoever changes how a threshold follows from the levels must keep the old way for files of the old version.
    """
    assert found.normal is not None
    if found.compression is not None and not found.compression[1] > 0:
        raise ArtefactError("The unit of a calibration must be above 0.")
    target = Budget.parse(found.budget, period=found.period).time_steps
    if not _near(found.target, target):
        raise ArtefactError(
            f"The 'target' of a calibration must be that of {found.budget}, {target:.6g}. Got {found.target:.6g} instead."
        )
    wanted = from_episodes(found, found.normal)
    for name in ("threshold", "largest", "supported", "low", "high", "observed", "alarms", "time_steps"):
        value, other = getattr(found, name), getattr(wanted, name)
        if (value is None) != (other is None) or (value is not None and not _near(value, other)):
            raise ArtefactError(
                f"The {name!r} of a calibration must follow from the levels beside it: {other}. Got {value} instead."
            )


def _near(value: float, other: float) -> bool:
    """Equal up to rounding."""
    return math.isclose(value, other, rel_tol=ROUNDING, abs_tol=ROUNDING)
