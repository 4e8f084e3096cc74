"""Life after day one: fitted again, another budget, labels and what would follow."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from tisat.cli import main
from tisat.datasets.synthetic import make_pump
from tisat.series import Series

pytestmark = pytest.mark.filterwarnings("ignore::tisat.errors.CalibrationWarning")


def run(capsys, *arguments, code=0):
    with pytest.raises(SystemExit) as end:
        main([str(one) for one in arguments])
    said = capsys.readouterr()
    assert end.value.code == code, said.err
    return said


def write(file, series):
    with file.open("w", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(["time", *series.channels])
        for date, values in zip(series.timestamps.astype("datetime64[s]"), series.values, strict=True):
            writer.writerow([date, *(f"{value:.4f}" for value in values)])
    return file


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pump")
    pump = make_pump(n_train=4000, n_test=1700, faults=("vibration doubled", "temperature ramp"))
    later = replace(
        make_pump(n_train=4000, random_state=1).train, timestamps=pump.train.timestamps + np.timedelta64(9, "D")
    )
    return (
        write(folder / "week.csv", pump.train),
        write(folder / "new.csv", pump.test),
        write(folder / "later.csv", later),
    )


def test_update_and_recalibrate_keep_the_settings(capsys, files, tmp_path):
    week, _, later = files
    model, second, third = (tmp_path / f"{i}.tisat" for i in range(3))
    run(
        capsys,
        "fit",
        "--train",
        week,
        "--out",
        model,
        "--detector",
        "ewma",
        "--set",
        "smoothing=0.2",
        "--budget",
        "daily",
    )
    found = json.loads(
        run(capsys, "update", "--model", model, "--train", week, "--train", later, "--out", second, "--json").out
    )
    assert found["after"]["budget"] == "daily"
    found = json.loads(run(capsys, "recalibrate", "--model", second, "--budget", "1/12h", "--out", third, "--json").out)
    assert found["after"]["threshold"] < found["before"]["threshold"]
    assert "daily" not in run(capsys, "show", third).out.split("budget")[-1]


def label_all(table, word):
    rows = list(csv.DictReader(table.read_text().splitlines()))
    with table.open("w", newline="") as text:
        writer = csv.DictWriter(text, [*rows[0], "label"])
        writer.writeheader()
        writer.writerows({**row, "label": word} for row in rows)
    return rows


def test_labels_lead_to_a_proposal_and_nothing_changes_unless_taken(capsys, files, tmp_path):
    week, new, _ = files
    model, table, taken = tmp_path / "m.tisat", tmp_path / "alarms.csv", tmp_path / "taken.tisat"
    run(capsys, "fit", "--train", week, "--out", model, "--detector", "mahalanobis")
    run(capsys, "alarm", new, "--model", model, "--out", table)
    said = run(capsys, "label", table, new, "--model", model, code=1)
    assert "must have labels in a column 'label'" in said.err
    rows = label_all(table, "false")
    before = model.read_bytes()
    alone = run(capsys, "label", table, new, "--model", model, "--take", "threshold")
    assert f"{len(rows)} false alarms" in alone.out
    said = run(capsys, "label", table, new, "--model", model)
    assert "The threshold would stay" in said.out  # a pattern that knows an alarm asks for no other threshold
    left = re.match(
        rf"(\d+) of {len(rows)} labelled alarms are left to the patterns, (\d+) to the threshold\.\n", said.out
    )
    assert left is not None
    assert int(left[1]) + int(left[2]) == len(rows)
    assert re.search(rf"{len(rows)} false alarms in \d+ rows count for the threshold; the budget allows", alone.out)
    fewer = int(re.search(r"called (\d+) time", said.out)[1]) < len(rows)
    assert ("The labels are from this file: in new weeks the gain will be smaller." in said.out) == fewer
    assert fewer
    assert "nothing has changed" in said.out
    run(capsys, "label", table, new, "--model", model, "--out", taken)
    assert model.read_bytes() == before
    assert len(json.loads(run(capsys, "alarm", new, "--model", taken, "--json").out)["alarms"]) <= len(rows)
    assert "pattern 1: " in said.out
    assert "It would have hidden 0 true alarms" in said.out
    known = tmp_path / "known.tisat"
    run(capsys, "label", table, new, "--model", model, "--out", known, "--take", "patterns")
    again = json.loads(run(capsys, "alarm", new, "--model", known, "--json").out)["alarms"]
    assert len(again) == len(rows)  # counted and visible, never dropped
    assert all(one["known"] for one in again if not one["further"] and one["ongoing_since"] is None)
    page = tmp_path / "page.html"
    count = sum(bool(one["known"]) for one in again)
    said = run(capsys, "alarm", new, "--model", known, "--html", page).out
    assert f"{count} of them known" in said  # and the table and the page say which
    assert said.count("known: ") == page.read_text().count("(known: ") == count
    assert (
        "must be one of 'threshold', 'patterns', 'both'"
        in run(capsys, "label", table, new, "--model", model, "--take", "everything", code=1).err
    )
    said = run(capsys, "label", table, week, "--model", model, code=1).err
    assert f"must have alarms of {week.stem!r}" in said  # it has labels, of another file
    assert f"Got those of {new.stem!r}" in said
    at = rows[1]["raised_time"]
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines[:2], lines[2].replace(",false", ",falsy"), *lines[3:]]))
    said = run(capsys, "label", table, new, "--model", model, code=1).err
    assert f"Got 'falsy' in line 3 (raised {at}) instead. Did you mean 'false'?" in said
    table.write_text(table.read_text().replace(",false", ",maybe"))
    assert "must be false, true, expected, new normal" in run(capsys, "label", table, new, "--model", model, code=1).err


def test_the_patterns_that_are_written_are_named_and_those_that_hide_a_true_alarm_are_not_taken(capsys, tmp_path):
    values = np.random.default_rng(0).normal(size=(6000, 2))
    stamps = np.datetime64("2026-01-08T00:00:00") + np.arange(6000) * np.timedelta64(60, "s")
    week = write(tmp_path / "week.csv", Series(values, timestamps=stamps, channels=("a", "b")))
    for row, channel in ((1000, 0), (2000, 0), (4500, 1)):
        values[row : row + 3, channel] += 12.0 - 24.0 * channel
    new = write(tmp_path / "new.csv", Series(values, timestamps=stamps, channels=("a", "b")))
    model, table, taken = tmp_path / "m.tisat", tmp_path / "alarms.csv", tmp_path / "taken.tisat"
    run(capsys, "fit", week, "--out", model, "--detector", "mahalanobis", "--budget", "1/3days")
    run(capsys, "alarm", new, "--model", model, "--out", table)
    assert len(rows := label_all(table, "false")) == 3
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines[:2], lines[2].removesuffix("false") + "true", lines[3]]))
    said = run(capsys, "label", table, new, "--model", model).out.splitlines()
    assert sum("(of one alarm: --take all takes it)" in line for line in said) == 1, "one label makes no habit"
    assert said[-1] == "nothing has changed; --out writes a model with the threshold (--take chooses)"
    said = run(capsys, "label", table, new, "--model", model, "--take", "all").out.splitlines()
    numbered = {line.partition(":")[0] for line in said if line.startswith("pattern")}
    (safe,) = [line for line in numbered if "not taken" not in line]
    assert any(line.endswith("(not taken, it hides what was true)") for line in numbered)
    assert said[-1] == f"nothing has changed; --out writes a model with the threshold and {safe} of 2 (--take chooses)"
    said = run(capsys, "label", table, new, "--model", model, "--take", "all", "--out", taken).out.splitlines()
    assert said[-1] == f"written to {taken}: the threshold and {safe} of 2"
    found = json.loads(run(capsys, "label", table, new, "--model", model, "--take", "all", "--json").out)["patterns"]
    assert sorted(one["taken"] for one in found) == [False, True]
    known = json.loads(run(capsys, "alarm", new, "--model", taken, "--json").out)["alarms"]
    assert sum(bool(one["known"]) for one in known) == 1 < len(rows)


def test_labels_that_a_spreadsheet_has_saved_are_read(capsys, files, tmp_path):
    week, new, _ = files
    model, table = tmp_path / "m.tisat", tmp_path / "alarms.csv"
    run(capsys, "fit", "--train", week, "--out", model, "--detector", "mahalanobis")
    run(capsys, "alarm", new, "--model", model, "--out", table)
    label_all(table, "false")
    expected = run(capsys, "label", table, new, "--model", model).out
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    with table.open("w", newline="", encoding="cp1252") as text:  # the ± of the reasons is no UTF-8 there
        writer = csv.DictWriter(text, rows[0].keys(), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    assert run(capsys, "label", table, new, "--model", model).out == expected
    openpyxl = pytest.importorskip("openpyxl")
    book, sheet = openpyxl.Workbook(), tmp_path / "alarms.xlsx"
    book.active.append([*rows[0]])
    for row in rows:
        book.active.append([int(cell) if cell.isdigit() else cell for cell in row.values()])
    book.save(sheet)
    assert run(capsys, "label", sheet, new, "--model", model).out == expected


@pytest.mark.parametrize(("word", "take"), [("false", "both"), ("false", "threshold"), ("expected", "patterns")])
def test_the_preview_of_labels_is_what_the_written_model_does(capsys, files, tmp_path, word, take):
    week, new, _ = files
    model, table, taken = tmp_path / "m.tisat", tmp_path / "alarms.csv", tmp_path / "taken.tisat"
    run(capsys, "fit", "--train", week, "--out", model, "--detector", "mahalanobis")
    run(capsys, "alarm", new, "--model", model, "--out", table)
    rows = label_all(table, word)
    said = run(capsys, "label", table, new, "--model", model, "--take", take)
    promised = json.loads(
        run(capsys, "label", table, new, "--model", model, "--take", take, "--out", taken, "--json").out
    )
    later = json.loads(run(capsys, "alarm", new, "--model", taken, "--json").out)["alarms"]
    known = sum(bool(one["known"]) for one in later)
    assert promised["calls"] == {"now": len(rows), "then": len(later) - known, "known": known}
    assert f"people would be called {len(later) - known} time" in said.out
    assert f"instead of {len(rows)}" in said.out


def test_a_threshold_that_leads_to_more_calls_says_so(capsys, tmp_path):
    rng = np.random.default_rng(0)

    def rises(name, count, first, every, size):
        values = rng.normal(size=(count, 2))
        for row in range(first, count, every):
            values[row : row + 12, 0] += size
        values[500:520, 0] += 15.0 * (name == "new.csv")
        stamps = np.datetime64("2026-01-05T00:00:00") + np.arange(count) * np.timedelta64(60, "s")
        return write(tmp_path / name, Series(values, timestamps=stamps, channels=("a", "b")))

    week, new = rises("week.csv", 3000, 300, 300, 4.0), rises("new.csv", 6000, 1000, 1500, 3.6)
    model, table = tmp_path / "m.tisat", tmp_path / "alarms.csv"
    run(capsys, "fit", week, "--out", model, "--detector", "mahalanobis", "--budget", "1/day")
    run(capsys, "alarm", new, "--model", model, "--out", table)
    now = len(label_all(table, "true"))
    then = json.loads(run(capsys, "label", table, new, "--model", model, "--json").out)["calls"]["then"]
    assert then > now
    assert (
        f"That is {then - now} more than now; --take patterns" in run(capsys, "label", table, new, "--model", model).out
    )
