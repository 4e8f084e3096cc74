"""A watch at its edges: lines nobody should send, fleets that are asked for new users, states that are damaged."""

import io
import json
import warnings

import numpy as np
import pytest

import tisat
from tisat.errors import ArtefactError, InputError, ParameterError, SeriesError, SeriesWarning
from tisat.io.files import Reading
from tisat.testing import contracts as checks
from tisat.watch import Fleet, Watch
from tisat.watch.clock import MANY_LATE
from tisat.watch.fleet import judge_all
from tisat.watch.fleet_stream import FleetLines
from tisat.watch.model_files import check_calibration
from tisat.watch.state_files import check_alarm
from tisat.watch.text_stream import (
    LONGEST_LINE,
    HeaderError,
    Interrupted,
    LineReader,
    Note,
    Switch,
    judge_line,
    watch_lines,
)
from waves import quietly, wave

CHANNELS = ("cpu", "disk")
pytestmark = pytest.mark.filterwarnings("ignore::tisat.errors.CalibrationWarning")


@pytest.fixture(scope="module")
def watch():
    rows = np.random.default_rng(0).normal(size=(600, 2))
    return Watch("last-value", budget="1/50 rows").fit(tisat.Series(rows, timestamps=60.0 * np.arange(600), channels=CHANNELS))  # fmt: skip


def read(lines, **how):
    ignore = how.pop("ignore_extra", False)
    reader = LineReader(CHANNELS, how=Reading(**how), ignore_extra=ignore)
    return [found for found in map(reader, lines) if found is not None]


def test_comments_and_units_are_no_rows():
    found = read(["# made by a logger", "time;cpu;disk", ";°C;bar", "1;2,5;3"], seen={"delimiter": ";", "decimal": ",", "comment": "#"})  # fmt: skip
    assert found == [({"cpu": 2.5, "disk": 3.0}, "1")]
    assert read(["time,cpu,disk", ",mm_s,-", "1,2.5,3"]) == [({"cpu": 2.5, "disk": 3.0}, "1")]


def test_of_many_machines_each_row_must_name_its_own():
    assert read(["machine,cpu,disk", "a,1,2"], entity="machine") == [(("a", {"cpu": 1.0, "disk": 2.0}), None)]
    assert read(['{"machine": 7, "cpu": 1}'], entity="machine") == [(("7", {"cpu": 1}), None)]
    for lines, must in ((["machine,cpu,disk", " ,1,2"], "must name its machine"), (['{"cpu": 1}'], "must name its machine"), (["1,2"], "must have a header with a column 'machine'")):  # fmt: skip
        with pytest.raises(SeriesError, match=must):
            read(lines, entity="machine")
    with pytest.raises(HeaderError, match="must have a column 'machine'"):
        read(["cpu,disk"], entity="machine")


def test_the_first_object_is_a_header_too():
    with pytest.raises(HeaderError, match=r"channels among cpu, disk. Got dsk besides. Did you mean 'disk'"):
        read(['{"cpu": 1, "dsk": 2}'])
    assert read(['{"cpu": 1, "gpu": 2}'], ignore_extra=True) == [({"cpu": 1}, None)]
    assert read(['{"cpu": 1, "gpu": 2}'], drop=["gpu"]) == [({"cpu": 1}, None)]
    assert read(["cpu,gpu,disk", "1,2,3"], ignore_extra=True) == [({"cpu": 1.0, "disk": 3.0}, None)]


@pytest.mark.parametrize(("line", "must"), [(b"x" * (LONGEST_LINE + 1), "at most 1048576 bytes"), (b"\xff\xfe,1", "must be text in UTF-8")])  # fmt: skip
def test_bytes_that_are_no_line_are_refused(watch, line, must):
    answer = judge_line(watch.monitor(), LineReader(CHANNELS), line, 3)
    assert (answer["status"], answer["line"]) == ("refused", 3)
    assert must in answer["reason"]


def test_a_header_that_does_not_fit_ends_the_watch(watch):
    with pytest.raises(HeaderError, match="Missing: disk"):
        judge_line(watch.monitor(), LineReader(CHANNELS), b"time,cpu,dosk", 1)


def lines(count, *, step=60.0, start=0):
    return [b"time,cpu,disk\n", *(f"{start + step * t},0.1,{0.1 * (t % 3)}\n".encode() for t in range(count))]


def judged(monitor, these, **options):
    output, said = io.BytesIO(), []
    note = watch_lines(monitor, these, output, report=said.append, **options)
    return [json.loads(line) for line in output.getvalue().splitlines()], said, note


def test_rows_at_another_pace_end_the_watch_unless_told(watch):
    with pytest.raises(SeriesError, match=r"must come every 60 seconds, as in training. Got one every 10 seconds"):
        judged(watch.monitor(), lines(60, step=10.0))
    found, said, _ = judged(watch.monitor(), lines(60, step=10.0), any_period=True)
    assert len(found) == 60
    assert len(said) == 1, "said once"
    late = [*lines(50), *lines(MANY_LATE + 5)[1:]]
    _, said, _ = judged(watch.monitor(), late)
    assert [one for one in said if "came late" in one] == [f"{MANY_LATE} rows in a row came late: the clock stands at 2940.0. Is the time of the rows right?"]  # fmt: skip


def test_a_line_without_its_end_waits_and_refusals_are_told(watch):
    found, said, note = judged(watch.monitor(), [*lines(2), b"x,y\n", b"180,0.1"])
    assert [one["status"] for one in found] == ["warming up", "ok", "refused"]
    assert said[0].startswith("line 4 refused: ")
    assert said[1] == "line 5 has no end yet and waits; add a newline to have it judged"
    assert note.lines == 4


def test_a_switch_waits_for_the_verdict_that_is_being_made():
    switch = Switch()
    assert switch.next(iter([b"a"])) == b"a"

    def signalled():
        switch()
        yield b"b"

    assert switch.next(signalled()) is None, "it was turned while a line was waited for"
    assert switch.off
    assert switch.next(iter([b"c"])) is None
    other = Switch()
    other()  # while a line is judged: no interruption
    other.waiting = True
    other()  # a second time: none either
    fresh = Switch()
    fresh.waiting = True
    with pytest.raises(Interrupted):
        fresh()


def test_notes_are_read_back_as_they_were():
    note = Note(3, 40, ["a", "b"], "ff")
    assert Note.of(vars(note)) == note
    assert Note.of({}) == Note()


def test_a_fleet_is_a_collection_of_those_it_knows(watch):
    fleet = watch.fleet(["a", "b"])
    assert (list(fleet), len(fleet), "a" in fleet, "c" in fleet) == (["a", "b"], 2, True, False)
    assert repr(fleet).endswith("2 entities)")
    assert repr(watch.monitor(name="a")).endswith("name='a')")
    with pytest.raises(InputError, match=r"must know the entity. Got 'c'"):
        fleet["c"]
    for bad in ("a", 3):
        with pytest.raises(InputError, match="must be distinct names"):
            fleet.enrol(bad)
    state = fleet.retire("a")
    with pytest.raises(ArtefactError, match=r"state of entity 'x' must be its own. Got that of 'a'"):
        fleet.enrol("x", state)
    quiet = Fleet(watch, entities=["a"], roll=False)
    assert quiet.silent == ()
    quiet.retire("a")
    assert len(quiet) == 0


def test_a_fleet_without_a_roll_call_goes_on_without_one(watch, tmp_path):
    quiet = Fleet(watch, entities=["a"], roll=False)
    quiet.update({"a": [0.1, 0.2]}, times={"a": 60.0})
    quiet.snapshot(tmp_path / "s")
    again = Fleet.load(watch, tmp_path / "s")
    assert again._roll is None
    assert again["a"].rows == 1


def test_lines_of_a_fleet_are_refused_and_counted(watch, tmp_path):
    fleet = FleetLines(watch)
    fleet.update(("a", [0.1, 0.2]), 60.0)
    assert fleet.refuse("because").reason == "because"
    answer = judge_line(fleet, LineReader(CHANNELS, how=Reading(entity="machine")), b"1,2", 7)
    assert (answer["line"], answer["entity"], answer["status"]) == (7, "", "refused")
    assert (fleet.rows, fleet.tally.refused, fleet.alarm, fleet.silent) == (3, 2, [], ())
    assert fleet.calibration == watch.calibration
    fleet.snapshot(tmp_path / "s", note={"lines": 3})
    again, note = FleetLines.load_with_note(watch, tmp_path / "s")
    assert (again.rows, again.tally.refused, note) == (3, 2, {"lines": 3})


@pytest.mark.parametrize(("change", "must"), [
    (lambda state: state.update(onset_time=[1]), "'onset_time' of a monitor must be a time"),
    (lambda state: state["clock"].update(last="soon"), "the clock's 'last' must be a number"),
    (lambda state: state.pop("rows"), "must hold a whole monitor. It does not: 'rows'"),
    (lambda state: state.update(threshold=0.5), "must have been kept at this watch's threshold"),
])  # fmt: skip
def test_a_damaged_state_is_one_sentence(watch, tmp_path, change, must):
    from tisat.persistence.model_file import read_artefact, write_artefact
    from tisat.watch import Monitor

    monitor = watch.monitor(name="a")
    monitor.update([0.1, 0.2], 60.0)
    monitor.snapshot(tmp_path / "s")
    header, tensors = read_artefact(tmp_path / "s")
    change(header["state"])
    write_artefact(tmp_path / "s", header, tensors)
    with pytest.raises(ArtefactError, match=must):
        Monitor.load(watch, tmp_path / "s")


def test_nothing_that_could_be_judged_is_said_with_its_reason(watch):
    with pytest.raises(SeriesError, match="None of its 1 could be: 1 were needed to warm up"):
        watch.alarms(tisat.Series([[0.0, 0.0]], channels=CHANNELS))
    dead = np.column_stack([np.zeros(40), np.full(40, np.nan)])
    whole = Watch("nearest-neighbors", budget="1/50 rows").fit(np.random.default_rng(0).normal(size=(300, 2)))
    with pytest.raises(
        SeriesError, match=r"NearestNeighbors needs every channel, and there is nothing from 1 \(since row 0\)"
    ):
        whole.alarms(dead)
    with pytest.raises(SeriesError, match="must come every 60 seconds"):
        watch.alarms(tisat.Series(np.zeros((40, 2)), timestamps=10.0 * np.arange(40), channels=CHANNELS))


def test_a_file_is_loaded_for_another_budget(watch, tmp_path):
    watch.save(tmp_path / "w")
    other = Watch.load(tmp_path / "w", budget="1/10 rows")
    assert other.calibration.threshold < watch.calibration.threshold
    assert repr(other).startswith("Watch(LastValue(), budget='1/10 rows'")
    with pytest.raises(ParameterError, match=r"^The budget of false alarms must be"):  # not the file's fault
        Watch.load(tmp_path / "w", budget="often")
    fitted = Watch(other.detector, budget="1/20 rows")
    assert fitted.calibration.budget == "1/20 rows", "the detector came fitted"
    with pytest.raises(InputError, match="must be about the calibration in force"):
        other.adopt(watch.monitor().propose())
    assert watch.at(other.calibration).calibration == other.calibration


@pytest.mark.parametrize("name", ["prism", "linear-last", "mahalanobis", "pca"])
def test_an_absurd_value_is_told_as_it_came_not_as_what_it_was_cut_to(name):
    train, test = checks.example(900, channels=3, seed=1), checks.example(160, channels=3, seed=2)
    test[150, 1] = 1e30
    found = Watch(name, budget="1/200 rows").fit(train)
    online = [verdict.alarm for verdict in found.monitor().extend(test) if verdict.raised]
    for alarms in (list(found.alarms(test)), online):
        (reason,) = (one for alarm in alarms if alarm.raised == 150 for one in alarm.reasons if one.channel == "1")
        assert reason.seen == 1e30


def test_rows_judged_together_learn_as_rows_judged_one_by_one():
    """``learn=False`` of a row of many is that of :meth:`Monitor.update`."""
    watch = quietly(Watch("ewma", budget="1/200 rows").fit, wave(1500, seed=0))
    rows = wave(900, seed=5)
    rows[100:600] += 3.0 * np.random.default_rng(0).standard_normal((500, 3))
    one, many = watch.monitor(), watch.monitor()
    learns = [not 100 <= number < 600 for number in range(len(rows))]
    expected = [one.update(row, learn=learn).statistic for row, learn in zip(rows, learns, strict=True)]
    found = judge_all([(many, row, None, learn) for row, learn in zip(rows, learns, strict=True)])
    np.testing.assert_array_equal([result.statistic for result in found], expected)
    always = watch.monitor().extend(rows)
    assert not np.array_equal([result.statistic for result in always], expected, equal_nan=True)


@pytest.mark.parametrize("forged", [{"alarms": -1}, {"low": -1.0}, {"low": 10.0, "high": 5.0}])
def test_counts_of_a_calibration_without_levels_are_checked_each_by_itself(forged):
    watch = quietly(Watch("ewma", budget="1/200 rows", method="bootstrap").fit, wave(1500, seed=0))
    document = watch.calibration.to_json()
    assert check_calibration(document).threshold == watch.calibration.threshold
    with pytest.raises(ArtefactError, match="at least 0, and its interval in order"):
        check_calibration({**document, **forged})


def alarmed(watch):
    """A monitor whose alarm is on."""
    monitor = watch.monitor()
    for row in np.concatenate([wave(100, seed=3), wave(20, seed=3) + 50.0 * np.arange(20)[:, None]]):
        monitor.update(row)
    assert monitor.alarm is not None
    return monitor


def test_a_refused_row_says_whether_an_alarm_is_on():
    watch = quietly(Watch("ewma", budget="1/200 rows").fit, wave(1500, seed=0))
    assert alarmed(watch).refuse("because").active
    assert not watch.monitor().refuse("because").active


@pytest.mark.parametrize(
    "shares", [{"other": 0.5}, {"0": "x"}, {"0": True}, {"0": -0.5}, {"0": 2.0}, {"0": 0.5, "1": None}]
)
def test_shares_of_a_kept_alarm_are_checked_each_by_itself(shares):
    watch = quietly(Watch("ewma", budget="1/200 rows").fit, wave(1500, seed=0))
    document = alarmed(watch).alarm.to_json()
    assert check_alarm(document, watch.channels)["channels"] == document["channels"]
    with pytest.raises(ArtefactError, match="must be the model's, each with a share up to 1"):
        check_alarm({**document, "channels": shares}, watch.channels)


def test_rows_without_the_time_zone_of_training_are_said(tmp_path):
    rows = np.random.default_rng(0).normal(size=(600, 2))
    minutes = np.datetime64("2026-06-01T00:00") + np.arange(600) * np.timedelta64(1, "m")
    zoned, naive = ([f"{minute}{zone}" for minute in minutes] for zone in ("+02:00", ""))
    watch = Watch("last-value", budget="1/50 rows").fit(tisat.Series(rows, timestamps=zoned))
    watch.save(tmp_path / "model.tisat")
    for one in (watch, Watch.load(tmp_path / "model.tisat")):
        with pytest.warns(SeriesWarning, match=r"no time zone, those of training had \+02:00: .* as they are written"):
            found = one.alarms(tisat.Series(rows[:300], timestamps=naive[:300]))
        assert found[0].raised_time in {stamp + ":00" for stamp in naive}
    quiet = Watch("last-value", budget="1/50 rows").fit(tisat.Series(rows, timestamps=naive))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeriesWarning)
        watch.alarms(tisat.Series(rows[:300], timestamps=zoned[:300]))
        quiet.alarms(tisat.Series(rows[:300], timestamps=naive[:300]))
