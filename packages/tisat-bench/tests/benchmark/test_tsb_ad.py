"""TSB-AD: its lists, its files, series rebuilt from raw data, and the table beside published results."""

import importlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tisat.cli import app
from tisat.errors import DataFileError, InputError
from tisat_bench.cli.tsb_ad import _several
from tisat_bench.tsb_ad import compare_with_published, find_series, read_benchmark, read_scores, vus_of
from tisat_bench.tsb_ad.scoring import window_of

OWN = "001_Made_id_1_Sensor_tr_300_1st_450.csv"
WHOLE = "002_UCR_id_1_Sensor_tr_300_1st_500.csv"
LATE = "003_NAB_id_1_Sensor_tr_300_1st_500.csv"
ABSENT = "004_Other_id_1_Sensor_tr_300_1st_450.csv"
HEAD = "file,Good,Bad,ts_len,anomaly_len,num_anomaly"


def wave(rows, start, stop):
    rng = np.random.default_rng(rows)
    values = np.sin(2 * np.pi * np.arange(rows) / 25) + 0.02 * rng.standard_normal(rows)
    labels = np.zeros(rows, dtype=int)
    values[start:stop], labels[start:stop] = 0.0, 1
    return values, labels


@pytest.fixture
def folder(tmp_path):
    """One file of TSB-AD, one series of UCR and one of NAB to rebuild, one that is nowhere."""
    lists = tmp_path / "tsb-ad"
    lists.mkdir()
    (lists / "TSB-AD-U-Eva.csv").write_text("\n".join(["file_name", OWN, WHOLE, LATE, ABSENT]) + "\n")
    rows = [f"{OWN},.5,.1,800,30,1", f"{WHOLE},.4,.1,900,20,1", f"{LATE},.3,.1,699,20,1", f"{ABSENT},.1,.1,800,30,1"]
    (lists / "univariate_VUS-PR.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    values, labels = wave(800, 450, 480)
    text = "\n".join(["Data,Label", *(f"{v},{y}" for v, y in zip(values, labels, strict=True))])
    (lists / OWN).write_text(text + "\n")
    for name, length in (("UCR", 900), ("NAB", 700)):
        (tmp_path / name).mkdir()
        values, labels = wave(length, 500, 521)  # a row longer than there
        np.savez(tmp_path / name / "a.npz", train=values[:300, None], test=values[300:, None], labels=labels[300:])
    return tmp_path


def test_series_are_read_or_rebuilt_and_the_rest_is_counted(folder):
    benchmark = read_benchmark("tsb-ad-u", folder)
    assert benchmark.detectors == ("Good", "Bad")
    found = find_series(benchmark, folder)
    assert [one.source for one in found] == ["TSB-AD's file", "rebuilt from UCR a", "rebuilt from NAB a"]
    for one in found:
        values, labels = one.read()
        assert values.shape == (one.listed.rows, 1)
        assert int(labels.sum()) == one.listed.anomalous_rows
        assert int(np.argmax(labels)) == one.listed.onset


def test_a_raw_file_that_does_not_agree_is_not_taken(folder):
    values, labels = wave(900, 501, 522)
    np.savez(folder / "UCR" / "a.npz", train=values[:300, None], test=values[300:, None], labels=labels[300:])
    found = find_series(read_benchmark("tsb-ad-u", folder), folder)
    assert [one.listed.file for one in found] == [OWN, LATE]


def test_two_raw_files_that_fit_are_not_guessed_between(folder):
    (folder / "UCR" / "b.npz").write_bytes((folder / "UCR" / "a.npz").read_bytes())
    found = find_series(read_benchmark("tsb-ad-u", folder), folder)
    assert [one.listed.file for one in found] == [OWN, LATE]


def test_a_file_with_other_counts_than_published_is_refused(folder):
    file = folder / "tsb-ad" / OWN
    file.write_text("\n".join(file.read_text().splitlines()[:-1]) + "\n")
    found = find_series(read_benchmark("tsb-ad-u", folder), folder)
    with pytest.raises(DataFileError, match=r"must have 800 rows, 30 of them anomalous, as published. Got 799 and 30"):
        found[0].read()


def test_lists_must_be_there_and_whole(folder):
    with pytest.raises(DataFileError, match=r"TSB-AD-M-Eva.csv. It is published in github.com/TheDatumOrg/TSB-AD"):
        read_benchmark("tsb-ad-m", folder)
    table = folder / "tsb-ad" / "univariate_VUS-PR.csv"
    table.write_text("\n".join(table.read_text().splitlines()[:-1]) + "\n")
    with pytest.raises(DataFileError, match="must have a row for each series"):
        read_benchmark("tsb-ad-u", folder)


def test_the_table_has_paired_intervals_and_says_what_it_covers(folder):
    benchmark = read_benchmark("tsb-ad-u", folder)
    series = [one.listed for one in find_series(benchmark, folder)]
    compared = compare_with_published(benchmark, series, {"mine": [0.7, 0.6, 0.5], "Bad": [0.0, 0.0, 0.0]})
    assert [one.detector for one in compared.standings] == ["mine", "Good", "Bad", "Bad"]
    mine, good, *_ = compared.standings
    assert mine.difference is not None
    assert mine.difference.value == pytest.approx(0.2)
    assert good.difference is None
    assert good.mean == pytest.approx(0.4)
    assert good.whole_mean == pytest.approx(0.325)
    assert compared.coverage == (
        "3 of 4 series: Made 1 of 1, UCR 1 of 1, NAB 1 of 1; none of the 1 series of 1 other data sets."
        " Of fewer than 6 series no difference is claimed and no interval is given."
    )
    assert "| 1 | mine * | 0.600 | +0.200 |" in compared.markdown()
    assert compared.to_dict()["detectors"][0]["difference"]["low"] is None
    for count, interval in ((5, ""), (6, " [+0.200, +0.200]")):
        many = [*series, *series][:count]
        values = [one.published["Good"] + 0.2 for one in many]
        other = compare_with_published(benchmark, many, {"mine": values})
        assert f"+0.200{interval} |" in other.markdown()
        assert ("no interval is given" in other.coverage) == (count < 6)
    with pytest.raises(InputError, match=r"must be one for each of the 3 series. Got 1"):
        compare_with_published(benchmark, series, {"mine": [0.7]})


def test_the_buffer_is_the_highest_peak_of_the_autocorrelation():
    rng = np.random.default_rng(0)
    values = np.sin(2 * np.pi * np.arange(2000) / 60) + 0.1 * rng.standard_normal(2000)
    other = np.column_stack([values, np.sin(np.arange(2000))])
    assert window_of(other) in (59, 60, 61)
    assert window_of(np.ones((500, 1))) == 125
    assert window_of(np.arange(500.0)[:, None]) == 125


def test_rows_without_a_score_have_the_lowest():
    values, labels = wave(400, 200, 230)
    scores = labels + 0.1 * np.random.default_rng(0).random(400)
    lowest = np.where(np.arange(400) < 50, scores.min(), scores)
    missing = np.where(np.arange(400) < 50, np.nan, scores)
    missing[399] = scores.min()
    lowest[399] = scores.min()
    assert vus_of(values[:, None], labels > 0, missing) == vus_of(values[:, None], labels > 0, lowest)
    assert np.isnan(vus_of(values[:, None], labels > 0, np.full(400, np.nan)))


def test_scores_of_others_are_read_in_three_forms(tmp_path):
    scores = np.arange(4.0)
    np.save(tmp_path / "a.npy", scores)
    np.savez(tmp_path / "b.npz", scores=scores)
    (tmp_path / "c.csv").write_text("score\n0\n1\n2\n3\n")
    (tmp_path / "d.csv").write_text("0\n1\n2\n3\n")
    for name in ("a.npy", "b.npz", "c.csv", "d.csv"):
        np.testing.assert_array_equal(read_scores(tmp_path / name, rows=4), scores)
    with pytest.raises(DataFileError, match="must hold 5 scores, one for each row"):
        read_scores(tmp_path / "a.npy", rows=5)


def test_one_command_prints_our_detectors_and_any_folder_of_scores(folder):
    theirs = folder / "theirs"
    theirs.mkdir()
    for one in find_series(read_benchmark("tsb-ad-u", folder), folder):
        np.save(theirs / f"{one.listed.stem}.npy", one.read()[1].astype(float))
    typed = ["bench", "tsb-ad-u", "--data", str(folder), "--store", str(folder / "store"), "--json"]
    typed += ["--only", "nearest-neighbors, period, centred", "--only", "last-value", "--scores", f"perfect={theirs}"]
    first = CliRunner().invoke(app, typed)
    assert first.exit_code == 0, first.output
    rows = {row["detector"]: row["mean"] for row in json.loads(first.stdout)["detectors"]}
    assert set(rows) == {"Good", "Bad", "nearest-neighbors, period, centred", "last-value", "perfect"}
    assert rows["perfect"] > 0.9
    assert rows["nearest-neighbors, period, centred"] > 0.5 > rows["last-value"]
    alone = CliRunner().invoke(app, [*typed[:6], "--json", "--only", "perfect", *typed[-2:]])
    assert {row["detector"] for row in json.loads(alone.stdout)["detectors"]} == {"Good", "Bad", "perfect"}
    again = CliRunner().invoke(app, [*typed, "--no-run"])  # from what is stored
    assert json.loads(again.stdout) == json.loads(first.stdout)


def run(folder, *options):
    """``tisat bench tsb-ad-u`` with one quick detector."""
    places = ["--data", str(folder), "--store", str(folder / "store")]
    return CliRunner().invoke(app, ["bench", "tsb-ad-u", *places, "--only", "last-value", *options])


def test_an_edited_detector_of_your_own_is_scored_again(folder, own_detector):
    def mean():
        outcome = run(folder, "--only", "mine", "--json")
        assert outcome.exit_code == 0, outcome.output
        return {row["detector"]: row["mean"] for row in json.loads(outcome.stdout)["detectors"]}["mine"]

    first = mean()
    own_detector.write_text(own_detector.read_text() + "# edited\n")
    importlib.import_module("mine_of_a_test").SIGN = -1.0
    assert mean() != first


def refused(folder, *options):
    outcome = run(folder, *options)
    assert outcome.exit_code != 0
    return str(outcome.exception)


def test_a_few_series_are_compared_by_name(folder):
    first, second = OWN.removesuffix(".csv"), WHOLE.removesuffix(".csv")
    one = json.loads(run(folder, "--series", first, "--json").stdout)
    assert (one["series"], one["listed"], one["chosen"]) == (1, 4, [first])
    assert {row["detector"]: row["mean"] for row in one["detectors"]}["Good"] == 0.5  # published, over the same series
    assert all(row["difference"] is None or row["difference"]["low"] is None for row in one["detectors"])
    assert "last-value" in refused(folder, "--no-run")  # the others were not run
    assert "2 of 3 are missing" in refused(folder, "--no-run")
    again = json.loads(run(folder, "--series", OWN, "--no-run", "--json").stdout)  # the name of the file will do
    assert again == one
    report = folder / "report"
    outcome = run(folder, "--series", second, "--series", first, "--series", first, "--report", str(report))
    assert outcome.exit_code == 0, outcome.output
    page = (report / "tsb-ad-u.md").read_text()
    assert page.startswith(f"2 of 4 series, chosen by name: {first}, {second}. Published results beside them are over")
    assert "cannot be compared with published means over others, such as all 4. Of fewer than 6 series" in page
    assert "[" not in page.split("| detector |")[1], "no interval"
    assert "| Good | 0.450 |" in page
    assert f"2 of 4 series, chosen by name: {first}" in " ".join(outcome.stdout.split())


def test_series_that_are_not_listed_or_not_there_are_refused(folder):
    near = refused(folder, "--series", OWN.replace("Made", "Maid"))
    assert near.startswith("The '--series' option of tisat bench must name a series of TSB-AD-U-Eva.csv. Got '001_Maid")
    assert near.endswith(f" Did you mean '{OWN.removesuffix('.csv')}'?")
    assert refused(folder, "--series", "002_ucr").endswith(f"So begin: {WHOLE.removesuffix('.csv')}.")
    assert refused(folder, "--scores", f"={folder}").startswith(
        "The '--scores' option of tisat bench must be NAME=FOLDER"
    )
    absent = refused(folder, "--series", OWN, "--series", ABSENT)
    assert absent.endswith(f"must hold each series of '--series'. 1 of 2 are missing: {ABSENT.removesuffix('.csv')}.")
    (folder / "e.toml").write_text('[[data]]\nname = "plants"\n[[system]]\ndetector = "last-value"\n')
    outcome = CliRunner().invoke(app, ["bench", str(folder / "e.toml"), "--series", OWN])
    assert str(outcome.exception) == "The '--series' option of tisat bench must come with tsb-ad-m or tsb-ad-u."


def test_a_list_that_is_not_there_is_missed_with_what_names_its_folder(tmp_path):
    with pytest.raises(
        DataFileError, match=r"File not found: .*TSB-AD-M-Eva.csv.* with --data \(data=...\) or TISAT_DATA"
    ):
        read_benchmark("tsb-ad-m", tmp_path)


def test_an_unknown_detector_is_refused_before_the_work(folder):
    outcome = run(folder, "--only", "PCA")
    assert "Did you mean 'pca'? Or one of: prism, centred" in str(outcome.exception)
    assert "series, store" not in outcome.output


def test_all_scores_that_are_missing_are_said_at_once(folder):
    theirs = folder / "theirs"
    theirs.mkdir()
    stems = [name.removesuffix(".csv") for name in (OWN, WHOLE, LATE)]
    (theirs / f"{stems[1]}.csv").write_text("\n".join(["1"] * 900) + "\n")
    given = ["--scores", f"mine={theirs}"]
    assert refused(folder, *given) == (
        f"The folder {str(theirs)!r} must hold the scores of 'mine' for each series as NAME.npy, NAME.npz or NAME.csv. "
        f"2 of 3 are missing: {stems[0]}, {stems[2]}; put them there, or name the series to compare on with '--series'."
    )
    outcome = run(folder, *given, "--series", stems[1], "--json")
    assert {row["detector"] for row in json.loads(outcome.stdout)["detectors"]} == {"Good", "Bad", "last-value", "mine"}
    assert _several(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


@pytest.mark.data
def test_rebuilt_series_are_those_of_the_list_that_was_checked_by_hand():
    root = os.environ.get("TISAT_DATA")
    if not root or not (Path(root) / "tsb-ad" / "rebuilt.csv").is_file():
        pytest.skip("no tsb-ad/rebuilt.csv in TISAT_DATA")
    lines = (Path(root) / "tsb-ad" / "rebuilt.csv").read_text().splitlines()[1:]
    known = {cells[1]: f"rebuilt from {cells[2].lower()} {cells[3]}" for cells in (line.split(",") for line in lines)}
    multivariate = find_series(read_benchmark("tsb-ad-m"))
    assert {one.listed.file: one.source for one in multivariate} == {
        file: source for line, (file, source) in zip(lines, known.items(), strict=True) if line.startswith("M,")
    }
    for one in find_series(read_benchmark("tsb-ad-u")):
        assert known.get(one.listed.file, one.source) == one.source
