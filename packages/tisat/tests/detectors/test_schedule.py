"""Jumps that recur by the clock, as at a nightly job, are found and call nobody; everything else does as before."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tisat import Series, Watch, load
from tisat.detectors.prism.schedule import DAYS, SLOTS, in_words, scheduled
from tisat.errors import ArtefactError
from tisat.persistence.model_file import read_artefact, write_artefact

DAY = 288  # rows of five minutes
MONDAY = np.datetime64("2026-03-02")
FAULT = slice(3 * DAY + 150, 3 * DAY + 180)


def times_of(days):
    return MONDAY + np.arange(days * DAY) * np.timedelta64(300, "s")


def seconds_of(days):
    return times_of(days).astype("datetime64[s]").astype(float)


def noise(days, seed=0):
    return np.random.default_rng(seed).normal(size=(days * DAY, 2))


def with_job(values, at, long=6, days=None, jitter=0, seed=1):
    """A job that begins at a row of the day, up to so many rows earlier or later."""
    values, rng = values.copy(), np.random.default_rng(seed)
    for day in range(len(values) // DAY) if days is None else days:
        first = day * DAY + at + rng.integers(-jitter, jitter + 1)
        values[first : first + long] += 15.0
    return values


@pytest.fixture(scope="module")
def night():
    """A watch of a service with a job at two at night, and a week with a fault on the fourth day at half past noon."""
    rows = with_job(noise(28), 24, jitter=1)
    test = with_job(noise(7, seed=5), 24, jitter=1, seed=6)
    test[FAULT] += [0.0, 6.0]
    watch = Watch("prism", budget="1/week").fit(Series(rows, timestamps=times_of(28)))
    return watch, Series(test, timestamps=times_of(35)[28 * DAY :])


def test_times_of_daily_and_of_weekly_jumps_are_found():
    def found(values, days=28):
        return in_words(scheduled([values], [seconds_of(days)]))

    assert found(with_job(noise(28), 25, long=3)) == "daily 02:00 to 02:30"
    assert (
        found(with_job(noise(28), 25, long=3, days=[d for d in range(28) if d % 7 < 5]))
        == "Monday to Friday 02:00 to 02:30"
    )
    assert (
        found(with_job(noise(28), 61, long=40, days=range(6, 28, 7))) == "Sunday 05:00 to 05:15, Sunday 08:15 to 08:30"
    )
    assert found(with_job(noise(7), 25, long=3), days=7) == "daily 02:00 to 02:30"


def test_a_working_week_is_found_in_noisy_hourly_rows():
    """Two years of it gave a threshold of three times that of one year, and no alarm."""
    hours = np.arange(52 * 168)
    works = (hours // 24 % 7 < 5) * 15.0
    values = (works + 10 * np.sin(hours * 2 * np.pi / 24) + 2 * np.random.default_rng(0).normal(size=len(hours)))[
        :, None
    ]
    clock = MONDAY.astype("datetime64[s]").astype(float) + 3600.0 * hours
    assert in_words(scheduled([values], [clock])) == "Monday 00:00 to 00:15, Saturday 00:00 to 00:15"
    assert len(scheduled([values - works[:, None]], [clock])) == 0


def test_jumps_that_do_not_recur_and_rows_without_a_clock_have_no_times():
    rng, days = np.random.default_rng(3), 28
    assert len(scheduled([noise(days)], [seconds_of(days)])) == 0
    rare, often = noise(days), noise(days)
    rare[rng.integers(0, len(rare), 40)] += 20.0  # more than one a day, at any hour
    often[rng.random(len(often)) < 0.04] += 20.0  # at every hour of every day
    for values in (rare, often, with_job(noise(days), 24, days=range(0, days, 3))):
        assert len(scheduled([values], [seconds_of(days)])) == 0
    job = with_job(noise(days), 24)
    assert len(scheduled([job], [np.full(len(job), np.nan)])) == 0
    assert len(scheduled([job[: 5 * DAY]], [seconds_of(5)])) == 0, "five days are too few"
    halves = [job[: 10 * DAY], job[10 * DAY :]]
    clocks = [seconds_of(days)[: 10 * DAY], seconds_of(days)[10 * DAY :]]
    np.testing.assert_array_equal(scheduled(halves, clocks), scheduled([job], [seconds_of(days)]))


def test_a_job_at_its_time_hardly_ever_calls_and_a_fault_or_a_job_at_noon_does(night):
    watch, test = night
    assert watch.detector.scheduled_times.startswith("daily 01:")
    assert watch.detector.knows_calendar
    assert [one for one in watch.alarms(test) if FAULT.start <= one.raised < FAULT.stop]
    late = test.values.copy()
    late[5 * DAY + 144 : 5 * DAY + 150] += 15.0  # the job, at noon
    again = watch.alarms(Series(late, timestamps=test.timestamps))
    assert [one for one in again if abs(one.raised - (5 * DAY + 144)) < 6]


def test_nights_with_an_alarm_are_few_where_the_clock_is_known(night):
    nights, values = 14, with_job(noise(14, seed=7), 24, jitter=1, seed=8)
    knows = night[0].recalibrated(budget="1/day").alarms(Series(values, timestamps=times_of(14)))
    rows = with_job(noise(28), 24, jitter=1)
    plain = Watch("prism", budget="1/day", period="5 min").fit(rows)
    assert plain.detector.scheduled_times == ""
    called = [sum(20 <= one.raised % DAY <= 60 for one in found) for found in (knows, plain.alarms(values))]
    assert called[0] < 0.75 * called[1], called
    assert called[1] > 0.75 * nights


def test_a_job_that_does_not_run_is_an_alarm(night):
    """The night was quieter than any other, and the score fell to its lowest."""
    watch, _ = night
    rows = with_job(noise(7, seed=5), 24, jitter=1, seed=6, days=[0, 1, 2, 4, 5, 6])
    alarms = watch.alarms(Series(rows, timestamps=times_of(35)[28 * DAY :]))
    (alarm, *_) = [one for one in alarms if 3 * DAY + 20 <= one.raised <= 3 * DAY + 60]
    assert alarm.kind == "stuck"
    assert "less than usual" in alarm.why


def test_row_by_row_after_a_restart_and_from_a_file_it_is_the_same(night, tmp_path):
    watch, test = night
    watch.save(tmp_path / "model.tisat")
    monitor = Watch.load(tmp_path / "model.tisat").monitor()
    rows = 2 * DAY
    statistics = []
    for row, time in zip(test.values[:rows], test.timestamps[:rows], strict=True):
        if len(statistics) == 300:
            monitor = type(monitor).load(watch, monitor.to_bytes())
        statistics.append(monitor.update(row, time=time).statistic)
    batch = watch.alarms(test)
    np.testing.assert_allclose(np.nan_to_num(statistics), np.nan_to_num(batch.statistic[:rows]), rtol=1e-6, atol=1e-9)


def test_rows_without_a_date_are_said_and_the_job_is_an_alarm_there(night):
    watch, test = night
    with pytest.warns(UserWarning, match="no date"):
        alarms = watch.alarms(test.values)
    assert [one for one in alarms if 20 <= one.raised % DAY <= 60]


@pytest.mark.parametrize("key", ["transitions.times", "activity.slots"])
@pytest.mark.parametrize("change", [lambda a: a + SLOTS, lambda a: a - 0.5, lambda a: -a - 1.0])
def test_forged_times_are_refused(night, tmp_path, change, key):
    watch, _ = night
    watch.save(tmp_path / "model.tisat")
    document, tensors = read_artefact(tmp_path / "model.tisat")
    forged = {**tensors, key: change(tensors[key])}
    write_artefact(tmp_path / "forged.tisat", document, forged)
    with pytest.raises(ArtefactError, match=r"times of the week|fit together"):
        load(tmp_path / "forged.tisat")


def test_fit_says_at_what_times(tmp_path):
    from tisat.cli import app

    frame = pd.DataFrame(with_job(noise(14), 24), columns=["cpu", "queue"], index=times_of(14))
    frame.to_csv(tmp_path / "service.csv", index_label="time")
    told = CliRunner().invoke(app, ["fit", str(tmp_path / "service.csv"), "--out", str(tmp_path / "m.tisat")])
    assert told.exit_code == 0, told.output
    assert "Jumps recur by the clock (daily 0" in told.output


def test_all_days_have_a_name():
    every = in_words(np.arange(SLOTS, dtype=float)[::2])
    assert "Monday" not in every, "the same slots every day"
    assert [name for name in DAYS if name in in_words(np.array([96.0 * day for day in range(1, 6)]))] == list(DAYS[1:6])
