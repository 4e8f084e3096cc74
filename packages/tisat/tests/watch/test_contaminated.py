"""No normal stretch at hand: training rows that stand out are left out and counted; one file is learned from and scored in blocks."""

import json
import warnings

import numpy as np
import pytest

import tisat
from tisat.cli import main
from tisat.errors import ParameterError, SeriesError
from tisat.series import Series
from tisat.watch.contaminated import AROUND, LeftOut, folds_of, kept_rows, limit_of

PLACES = (700, 1500, 2600)


def rows(length=3000, faults=PLACES, seed=0):
    rng = np.random.default_rng(seed)
    walk = np.sin(np.arange(length)[:, None] / [17.0, 29.0]) + 0.1 * rng.normal(size=(length, 2))
    for start in faults:
        walk[start : start + 20, 0] += 6.0
    return walk


def fresh(length=2000):
    values = rows(length, faults=(), seed=1)
    values[1000:1020, 0] += 1.5
    return values


@pytest.mark.parametrize("detector", ["mahalanobis", "nearest-neighbors"])
def test_rows_that_stand_out_are_left_out(detector):
    values = rows()
    keep = kept_rows(tisat.make(detector), [Series(values)])[0]
    for start in PLACES:
        assert not keep[start + 1]
        assert keep[start - 40 - AROUND]
    assert (~keep).mean() < 0.1


def test_clean_rows_stay():
    watch = tisat.Watch("mahalanobis", budget="1/500 rows", contaminated=True).fit(rows(faults=()))
    plain = tisat.Watch("mahalanobis", budget="1/500 rows").fit(rows(faults=()))
    left = watch.calibration.notes[-1]
    assert "All 3,000 rows were trained on" in left or int(left.split()[0]) < 30
    assert watch.calibration.threshold == pytest.approx(plain.calibration.threshold, rel=0.25)


@pytest.mark.filterwarnings("ignore:.*were left out as anomalous:tisat.errors.CalibrationWarning")
def test_a_fault_in_training_no_longer_hides_the_next():
    plain = tisat.Watch("mahalanobis", budget="1/900 rows").fit(rows())
    robust = tisat.Watch("mahalanobis", budget="1/900 rows", contaminated=True).fit(rows())
    assert robust.calibration.threshold < plain.calibration.threshold
    assert any(1000 <= one.raised < 1020 for one in robust.alarms(fresh()))
    assert not any(1000 <= one.raised < 1020 for one in plain.alarms(fresh()))


@pytest.mark.filterwarnings("ignore:.*were left out as anomalous:tisat.errors.CalibrationWarning")
def test_it_is_said_kept_and_repeated(tmp_path):
    watch = tisat.Watch("mahalanobis", budget="1/500 rows", contaminated=True).fit(rows())
    assert "of 3,000 training rows" in watch.calibration.notes[-1]
    watch.save(tmp_path / "m.tisat")
    again = tisat.Watch.load(tmp_path / "m.tisat")
    assert again.contaminated
    assert again.calibration == watch.calibration
    assert again.recalibrated("1/100 rows").calibration.notes[-1] == watch.calibration.notes[-1]
    assert "training rows" in again.refitted(rows(seed=2)).calibration.notes[-1]


def test_labels_are_never_looked_at():
    labels = np.zeros(3000, dtype=int)
    labels[:1500] = 1
    with_labels, without = (kept_rows(tisat.make("mahalanobis"), [Series(rows(), labels=y)])[0] for y in (labels, None))
    assert (with_labels == without).all()


def test_too_short_a_file_is_refused_plainly():
    with pytest.raises(SeriesError, match="given to fit must be longer: each of 5 blocks"):
        tisat.Watch("prism", contaminated=True).fit(rows(110))
    with pytest.raises(SeriesError, match=r"Got 300 rows; prism takes about 330, ewma .* the fewest, about 70\."):
        tisat.scan(rows(300))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few rows support no budget
        for detector, count in (("prism", 330), ("ewma", 70)):  # the numbers that are named are enough
            tisat.scan(rows(count), detector, budget="1/20 rows")


def test_scores_without_a_body_leave_nothing_out():
    assert limit_of(np.zeros(100)) == np.inf
    assert limit_of(np.full(5, np.nan)) == np.inf


def test_blocks_meet_every_row_once_and_never_their_own():
    many = [Series(rows(100)), Series(rows(57))]
    met = [np.zeros(len(one)) for one in many]
    for fold in folds_of(many, [np.ones(len(one), dtype=bool) for one in many], 4):
        for number, first, last in fold.here:
            met[number][first:last] += 1
        assert sum(map(len, fold.rest)) == 157 - sum(last - first for _, first, last in fold.here)
    assert all((one == 1).all() for one in met)


def test_a_scan_finds_what_is_in_its_own_training():
    found = tisat.scan(rows(), "mahalanobis", budget="1/1000 rows")
    assert all(any(start <= one.raised < start + 20 for one in found) for start in PLACES)
    assert len(found.statistic) == len(found.active) == 3000
    assert "training rows" in found.calibration.notes[-1]
    assert found.tally.rows == 3000
    for one in found:
        assert one.cleared is not None or one is found[-1]
        assert found.active[one.raised]
    assert found.plot(rows()) is not None


def test_the_verbs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savetxt("week.csv", rows(), delimiter=",", header="a,b", comments="")

    def typed(*words):
        with pytest.raises(SystemExit) as done:
            main(list(words))
        return done.value.code, capsys.readouterr()

    asked = [
        "scan",
        "week.csv",
        "--detector",
        "mahalanobis",
        "--budget",
        "1/1000 rows",
        "--out",
        "a.csv",
        "--html",
        "a.html",
    ]
    code, said = typed(*asked, "--json")
    assert code == 0
    assert len(json.loads(said.out)["alarms"]) == (tmp_path / "a.csv").read_text().count("\n") - 1 >= 3
    assert "<html" in (tmp_path / "a.html").read_text()
    code, said = typed(*asked)
    assert (code, "--overwrite" in said.err) == (1, True)
    code, said = typed("scan", "week.csv", "--out", "week.csv", "--overwrite")
    assert (code, "must not be a file that is read" in said.err) == (1, True)
    code, said = typed("fit", "week.csv", "--detector", "mahalanobis", "--contaminated", "--out", "m.tisat")
    assert (code, "training rows" in said.err) == (0, True)


def test_leaving_nothing_out_does_not_say_that_nothing_stands_out():
    """Alarms add up over rows: a file of which every row was trained on may have some."""
    said = str(LeftOut(rows=0, of=10_071, stretches=0))
    assert said.startswith("All 10,071 rows were trained on")
    assert "Alarms may still be raised on them." in said


def test_a_scan_refuses_what_is_no_detector_with_what_makes_one():
    noise = np.random.default_rng(0).normal(size=(600, 1))
    with pytest.raises(ParameterError, match=r"The detector of scan must be .* Got a Watch instead; give its detector"):
        tisat.scan(noise, detector=tisat.Watch("ewma"))


def test_a_scan_of_too_few_rows_says_what_needs_fewer():
    """It spoke of rows without a gap, of which the file had three times as many."""
    few = np.random.default_rng(0).normal(size=(300, 4))
    few[::75] += 40.0
    with pytest.raises(
        SeriesError, match=r"given to scan must be longer: .* Got 300 rows; prism takes about 330, ewma"
    ):
        tisat.scan(few)
    assert tisat.scan(few, "ewma")
