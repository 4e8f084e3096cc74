"""A service that is quiet at night is measured by its nights, where the series has a clock."""

import numpy as np
import pytest

from tisat import Series, Watch, load
from tisat.detectors.prism.hours import hours_of
from tisat.errors import ArtefactError
from tisat.persistence.model_file import read_artefact, write_artefact

DAY = 288  # rows of five minutes
MONDAY = np.datetime64("2026-03-02")
NIGHT, NOON = 3, 13
OUTAGE = slice(2 * DAY + 36, 2 * DAY + 60)  # two hours from three at night


def times_of(days, first=0):
    return MONDAY + np.arange(first * DAY, (first + days) * DAY) * np.timedelta64(300, "s")


def traffic(days, seed=0):
    """Requests and processor time that move as much as there is of them, a twentieth at night."""
    rng = np.random.default_rng(seed)
    course = 1.0 - 0.95 * (0.5 + 0.5 * np.cos(2 * np.pi * (np.arange(days * DAY) / DAY - NIGHT / 24)))
    load = 1000.0 * course * (1 + 0.1 * rng.normal(size=len(course)))
    return np.column_stack([load, 0.02 * load * (1 + 0.1 * rng.normal(size=len(course)))])


@pytest.fixture(scope="module")
def service():
    """A watch of traffic that knows the time, and three days in which nothing comes for two hours of a night."""
    test = traffic(4, seed=5)
    test[OUTAGE] = 0.0
    watch = Watch("prism", budget="1/week").fit(Series(traffic(28), timestamps=times_of(28)))
    return watch, Series(test, timestamps=times_of(4, first=28))


def raised_in(alarms, rows):
    return [one for one in alarms if rows.start <= one.raised < rows.stop]


def test_an_outage_at_night_is_an_alarm_while_it_lasts(service):
    watch, test = service
    assert watch.detector.knows_calendar
    units = watch.detector._units.hours.units
    assert (units[NIGHT, 0] < 0.3).all()
    assert (units[NOON, 0] > 1.0).all()
    (alarm, *_) = raised_in(watch.alarms(test), OUTAGE)
    assert alarm.raised - OUTAGE.start < 15
    bare = Watch("prism", budget="1/week", period="5 min").fit(traffic(28))
    assert bare.detector._units.hours is None
    assert not raised_in(bare.alarms(test.values), slice(OUTAGE.start, OUTAGE.start + 15))


def test_hours_that_are_alike_or_too_few_days_have_no_units():
    even = np.random.default_rng(1).normal(size=(14 * DAY, 2))
    for values, days in ((even, 14), (traffic(5), 5)):
        assert Watch("prism").fit(Series(values, timestamps=times_of(days))).detector._units.hours is None


def test_hours_of_local_times():
    assert hours_of(np.array([0.0, 3599.0, 3600.0, 86_399.0, 86_400.0, np.nan])).tolist() == [0, 0, 1, 23, 0, 24]


def test_row_by_row_and_from_a_file_it_is_the_same_also_for_rows_without_a_time(service, tmp_path):
    watch, test = service
    watch.save(tmp_path / "model.tisat")
    again = Watch.load(tmp_path / "model.tisat")
    monitor, rows = again.monitor(), 2 * DAY + 80
    found = [
        monitor.update(row, time=time).statistic
        for row, time in zip(test.values[:rows], test.timestamps[:rows], strict=True)
    ]
    batch = watch.alarms(test).statistic[:rows]
    np.testing.assert_allclose(np.nan_to_num(found), np.nan_to_num(batch), rtol=1e-6, atol=1e-9)
    bare = again.monitor()
    with pytest.warns(UserWarning, match="no date"):
        expected = watch.alarms(test.values[:400]).statistic
    np.testing.assert_allclose(
        np.nan_to_num([bare.update(row).statistic for row in test.values[:400]]),
        np.nan_to_num(expected),
        rtol=1e-6,
        atol=1e-9,
    )


@pytest.mark.parametrize("change", [lambda a: a * 1e3, lambda a: -a, lambda a: a[:24], lambda a: a * np.nan])
def test_forged_units_are_refused(service, tmp_path, change):
    service[0].save(tmp_path / "model.tisat")
    document, tensors = read_artefact(tmp_path / "model.tisat")
    forged = {**tensors, "hours.units": np.ascontiguousarray(change(tensors["hours.units"]))}
    write_artefact(tmp_path / "forged.tisat", document, forged)
    with pytest.raises(ArtefactError, match="units of the hours"):
        load(tmp_path / "forged.tisat")
