"""``tisat audit`` as a user meets it: every kind of file, the result, JSON, the page, and one sentence for bad input."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tisat.cli import main


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(3)
    found = {}
    for name in ("a", "b"):
        y = np.zeros(600, dtype=int)
        for start in (100, 300, 450):
            y[start : start + int(rng.integers(5, 60))] = 1
        found[name] = (y, np.round(rng.random(600) + 0.8 * y * rng.random(600), 6))
    return found


def audit(capsys, *arguments):
    few = () if "--resamples" in arguments or "--help" in arguments else ("--resamples", 100)
    with pytest.raises(SystemExit) as stopped:
        main(["audit", *map(str, (*arguments, *few))])
    printed = capsys.readouterr()
    return stopped.value.code, printed.out, printed.err


def write(folder, kind, series, column):
    folder.mkdir()
    for name, pair in series.items():
        values = pair[0] if column == "label" else pair[1]
        stamps = np.datetime64("2024-01-01T00:00:00") + np.arange(len(values)) * np.timedelta64(60, "s")
        table = pa.table({"timestamp": stamps, column: values})
        if kind == "npy":
            np.save(folder / f"{name}.npy", values)
        elif kind == "parquet":
            parquet.write_table(table, folder / f"{name}.parquet")
        elif kind == "csv":
            csv.write_csv(table, folder / f"{name}.csv")
        else:  # bare numbers, as SMD publishes its labels
            (folder / f"{name}.txt").write_text("\n".join(str(v) for v in values) + "\n")
    return folder


def test_all_kinds_of_files_give_the_same_figures(series, tmp_path, capsys):
    results = []
    for kind in ("npy", "csv", "parquet", "txt"):
        labels = write(tmp_path / f"{kind}-labels", kind, series, "label")
        scores = write(tmp_path / f"{kind}-scores", kind, series, "score")
        code, out, _ = audit(capsys, labels, scores, "--delta-max", 20, "--resamples", 100, "--json")
        assert code == 0
        results.append(json.loads(out))
    long = pa.table(
        {
            "unique_id": np.repeat(list(series), 600),
            "label": np.concatenate([y for y, _ in series.values()]),
            "score": np.concatenate([s for _, s in series.values()]),
        }
    )
    parquet.write_table(long, tmp_path / "long.parquet")
    code, out, _ = audit(
        capsys, tmp_path / "long.parquet", tmp_path / "long.parquet", "--delta-max", 20, "--resamples", 100, "--json"
    )
    assert code == 0
    results.append(json.loads(out))
    for other in results[1:]:
        assert other["scores"] == results[0]["scores"]
        assert other["baselines"] == results[0]["baselines"]
    assert results[0]["n_series"] == 2
    assert {"verdict", "sweep", "missed_events", "false_alarms", "best_random_baseline"} <= set(results[0])


def test_the_verdict_names_the_random_baseline_and_the_page_is_self_contained(series, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    labels = write(tmp_path / "labels", "csv", series, "label")
    scores = write(tmp_path / "scores", "csv", series, "score")
    page = tmp_path / "audit.html"
    code, out, _ = audit(capsys, labels, scores, "--delta-max", "20min", "--html", page, "--threshold", 1.2)
    assert code == 0
    assert "PA-F1" in out
    for baseline in ("random", "random, rolling maximum", "always on", "on/off"):
        assert baseline in out
    assert "per-series mean" in out
    assert "2024-01-01T" in out
    html = page.read_text()
    assert html.count("class='dots'") == 3
    assert html.count("class='charts'") == 4, "a timeline of each series, the curve, the sweep"
    assert not re.search(r"<img\b", html)
    assert not re.search(r"(src|href)=['\"]https?:", html)
    assert re.search(r"class='answer'>\d+ of \d+ events found, \d+ false alarm", html)
    assert "threshold 1.2 (given)" in html
    assert "do not say oracle are at 1.2 (given)." in " ".join(out.split())
    assert "do not say oracle are at 1.2 (given)." in html


def test_without_a_threshold_it_says_oracle(series, tmp_path, capsys):
    y, s = series["a"]
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "s.npy", s)
    code, out, _ = audit(capsys, tmp_path / "y.npy", tmp_path / "s.npy", "--delta-max", 20)
    assert code == 0
    assert "(oracle)" in out
    found = re.search(r"do not say oracle are at the oracle threshold \((\d\.\d+)\)", " ".join(out.split()))
    assert found
    assert f"At threshold {found[1]}" in out


@pytest.mark.parametrize(
    ("labels", "scores", "options", "sentence"),
    [
        ("absent.csv", "s.npy", [], "File not found"),
        ("y.npy", "short.npy", [], "must have the same length. Got 600 and 10 instead."),
        ("two.npy", "s.npy", [], "must hold only 0 and 1. Got 2 at row 0 instead."),
        ("y.npy", "nan.npy", [], "must hold at least one number. Got only NaN instead."),
        ("y.npy", "s.npy", ["--delta-max", "0"], "must be an integer >= 1 (rows) or a duration"),
        ("y.npy", "s.npy", ["--delta-max", "10min"], "where there are no timestamps"),
        ("y.npy", "wide.csv", [], "must have one column of scores"),
        ("y.npy", "text.csv", ["--score-column", "who"], "must hold numbers in column 'who'. Got 'x' at row 0"),
        ("y.npy", "text.csv", ["--score-column", "one"], "in column 'one'. Got 'Bad Input' at row 7 instead."),
        ("quiet.npy", "s.npy", [], "must hold at least one event. Got none."),
        ("y.npy", "broken.parquet", [], "must be a readable table"),
        ("y.npy", "s.npy", ["--csv", "t.parquet"], "--csv must end in .csv or .txt. Got 't.parquet' instead."),
        ("y.npy", "s.json", [], "must end in .csv, .txt, .parquet, .npy or .npz"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_1(series, tmp_path, capsys, labels, scores, options, sentence):
    y, s = series["a"]
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "s.npy", s)
    np.save(tmp_path / "short.npy", s[:10])
    np.save(tmp_path / "two.npy", y + 2)
    np.save(tmp_path / "nan.npy", np.full(600, np.nan))
    np.save(tmp_path / "quiet.npy", np.zeros(600))
    csv.write_csv(pa.table({"u": s, "v": s}), tmp_path / "wide.csv")
    one = [*map(str, s[:7]), "Bad Input", *map(str, s[8:])]
    csv.write_csv(pa.table({"who": ["x"] * 600, "v": s, "one": one}), tmp_path / "text.csv")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    (tmp_path / "s.json").write_text("[]")
    code, out, err = audit(capsys, tmp_path / labels, tmp_path / scores, *options)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert err.startswith("tisat: ")
    assert sentence in err


def test_series_pair_by_name(series, tmp_path, capsys):
    labels = write(tmp_path / "labels", "npy", series, "label")
    scores = write(tmp_path / "scores", "npy", series, "score")
    (scores / "b.npy").rename(scores / "c.npy")
    code, _, err = audit(capsys, labels, scores)
    assert code == 1
    assert "Got 'c' without labels; 'b' without scores." in err


def test_every_missing_and_every_short_series_is_named_up_to_five(series, tmp_path, capsys):
    y, s = series["a"]
    for folder, values, rows in (("labels", y, 600), ("short", s, 10), ("few", s, 600)):
        (tmp_path / folder).mkdir()
        for k in range(1 if folder == "few" else 7):
            np.save(tmp_path / folder / f"m{k}.npy", values[: rows + k * (folder == "short")])
    code, _, err = audit(capsys, tmp_path / "labels", tmp_path / "few")
    assert code == 1
    assert "Got 'm1', 'm2', 'm3', 'm4', 'm5' and 1 more without scores." in err
    code, _, err = audit(capsys, tmp_path / "labels", tmp_path / "short")
    assert code == 1
    assert "of 7 series must have the same length. Got 'm0' 600 and 10, 'm1' 600 and 11, " in err
    assert err.endswith("'m4' 600 and 14 and 2 more instead.\n")


def test_where_the_work_stands_is_said_and_the_least_number_of_draws(series, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tisat.utils.progress.SECONDS", 0.0)
    labels = write(tmp_path / "labels", "npy", series, "label")
    scores = write(tmp_path / "scores", "npy", series, "score")
    code, _, err = audit(capsys, labels, scores, "--delta-max", 20)
    assert code == 0
    assert re.search(r"^intervals scores: \d+ %, about \d+ s left$", err, re.MULTILINE)
    code, out, _ = audit(capsys, "--help")
    assert "at least 100" in " ".join(out.replace("│", " ").split())


def test_npz_files_are_read(series, tmp_path, capsys):
    np.savez(tmp_path / "labels.npz", **{name: pair[0] for name, pair in series.items()})
    np.savez(tmp_path / "scores.npz", **{name: pair[1] for name, pair in series.items()})
    code, out, _ = audit(capsys, tmp_path / "labels.npz", tmp_path / "scores.npz", "--delta-max", 20, "--json")
    assert code == 0
    several = json.loads(out)
    assert several["n_series"] == 2
    y, s = series["a"]
    np.savez(tmp_path / "both.npz", labels=y, score=s, other=np.zeros((3, 3)))
    code, out, _ = audit(capsys, tmp_path / "both.npz", tmp_path / "both.npz", "--delta-max", 20, "--json")
    assert code == 0
    assert json.loads(out)["n_events"] == 3
    code, _, err = audit(capsys, tmp_path / "both.npz", tmp_path / "both.npz", "--score-column", "other")
    assert code == 1
    assert "must hold one-dimensional scores in 'other'" in err
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04nonsense")
    code, _, err = audit(capsys, tmp_path / "bad.npz", tmp_path / "both.npz")
    assert code == 1
    assert err.count("\n") == 1


def test_two_sets_of_scores_side_by_side(series, tmp_path, capsys):
    labels = write(tmp_path / "labels", "csv", series, "label")
    ours = write(tmp_path / "ours", "csv", series, "score")
    theirs = write(tmp_path / "theirs", "csv", {name: (y, 0.5 * s) for name, (y, s) in series.items()}, "score")
    files = ("--latex", tmp_path / "t.tex", "--csv", tmp_path / "t.csv", "--html", tmp_path / "t.html")
    code, out, _ = audit(capsys, labels, ours, theirs, "--delta-max", 20, "--resamples", 100, *files)
    assert code == 0
    assert "cannot tell ours from theirs" in out  # the same order of rows
    for name in ("ours", "theirs"):
        assert re.search(rf"^\* {name}: SPD \d\.\d+ \[.*\] is .* trivial baseline", out, re.MULTILINE)
    tex = (tmp_path / "t.tex").read_text()
    own = r"do not say oracle are at each set's own oracle threshold \((\d\.\d+), (\d\.\d+)\)\."
    values = re.search(own, tex)
    assert values
    assert float(values[2]) == pytest.approx(float(values[1]) / 2, rel=0.001)
    assert re.search(own, " ".join(out.split()))
    assert re.search(own, (tmp_path / "t.html").read_text().replace("&#x27;", "'"))
    assert r"\toprule" in tex
    assert "ours & theirs & baseline score" in tex
    assert "Student's t with the standard error of a bootstrap" in tex
    assert r"first & second & first less second & p" in tex
    rows = csv.read_csv(tmp_path / "t.csv").to_pylist()
    table = [row for row in rows if row["kind"] == "score"]
    pairs = {row["score"]: row for row in rows if row["kind"] == "difference"}
    assert len(table) + len(pairs) == len(rows)
    assert (pairs["SPD"]["scores of"], pairs["SPD"]["second"], pairs["SPD"]["pooled"]) == ("ours", "theirs", 0.0)
    assert pairs["SPD"]["low"] <= 0.0 <= pairs["SPD"]["high"]
    assert pairs["SPD"]["p"] == 1.0
    assert {row["scores of"] for row in table} == {"ours", "theirs"}
    wanted = {"SPD", "AUC-ROC", "AUC-PR", "VUS-PR", "VUS-ROC", "PATE", "NAB (oracle)"}
    assert wanted <= {row["score"] for row in table}
    assert all(row["best_baseline"] for row in table)
    at = {row["score"] for row in table if "at the oracle threshold" in row["beware"]}
    assert at == {"event F1", "instance F1", "range-based F1", "affiliation F1", "adjusted F1"}
    assert all(row["beware"] for row in table if row["score"] in wanted - {"SPD"})
    page = (tmp_path / "t.html").read_text()
    assert "Scores side by side" in page
    assert "class='terms'" not in page, "the glossary is below the table, whose last columns it would hide"
    assert page.index("best trivial baseline</th>") < page.index("what it means</th>")
    code, out, _ = audit(capsys, labels, ours, theirs, "--delta-max", 20, "--resamples", 100, "--json")
    document = json.loads(out)
    assert sorted(document["audits"]) == ["ours", "theirs"]
    assert document["differences"][0]["p"] == 1
    code, _, err = audit(capsys, labels, ours, ours)
    assert code == 1
    assert "given once" in err


def test_several_columns_of_one_file_are_sets_of_scores(series, tmp_path, capsys):
    y, s = series["a"]
    table = {"label": y, "ours": s, "theirs": 0.5 * s}
    parquet.write_table(pa.table(table), tmp_path / "all.parquet")
    both, page = tmp_path / "all.parquet", tmp_path / "t.html"
    code, out, err = audit(capsys, both, both, "--score-column", "ours,theirs", "--resamples", 100, "--html", page)
    assert code == 0, err
    assert "cannot tell ours from theirs" in out
    assert "tisat audit all.parquet all.parquet --delta-max 100 --score-column ours,theirs" in page.read_text()
    code, _, err = audit(capsys, both, both, "--score-column", "ours,other")
    assert code == 1
    assert "must have a column 'other'" in err


def test_many_sets_of_scores_have_a_row_each(series, tmp_path, capsys):
    labels = write(tmp_path / "labels", "csv", series, "label")
    sets = [
        write(tmp_path / f"set{k}", "csv", {name: (y, (k + 1) * s) for name, (y, s) in series.items()}, "score")
        for k in range(8)
    ]
    page, tex = tmp_path / "t.html", tmp_path / "t.tex"
    code, out, _ = audit(capsys, labels, *sets, "--delta-max", 20, "--resamples", 100, "--html", page, "--latex", tex)
    assert code == 0
    assert len(re.findall(r"^. set\d +. 0\.\d{3} ", out, re.MULTILINE)) == 8, "whole figures at 80 columns"
    assert "cannot tell it from set1" in out
    assert tex.read_text().count("[") == 8
    assert page.read_text().count(">set6<") > 8, "each pair is on the page"


def test_one_audit_says_that_few_events_support_nothing(tmp_path, capsys):
    y = np.zeros(600, dtype=int)
    y[100:120] = y[300:320] = 1
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "s.npy", y + np.random.default_rng(0).random(600))
    page = tmp_path / "t.html"
    code, out, _ = audit(capsys, tmp_path / "y.npy", tmp_path / "s.npy", "--resamples", 100, "--html", page)
    assert code == 0
    assert out.startswith("* There are only 2 events: it takes 6")
    assert "not told apart from it, as always with fewer than 6 events" in page.read_text()
    assert "Fewer than 6 events have no interval." in " ".join(out.split())
    assert not re.search(r"\d\.\d{3} \[", out), "no interval beside a value"
    for both in (out, audit(capsys, tmp_path / "y.npy", tmp_path / "s.npy", tmp_path / "y.npy", "--resamples", 100)[1]):
        assert not re.search(r"\[[+-]?\d|interval [+-]", both)


def test_help_shows_the_options(capsys):
    code, out, _ = audit(capsys, "--help")
    assert code == 0
    for option in ("--html", "--delta-max", "--latex", "--csv", "--resamples"):
        assert option in out


def test_every_metric_has_an_interval_and_the_table_no_empty_row(series, tmp_path, capsys):
    labels, scores = (write(tmp_path / name, "npy", series, name) for name in ("label", "score"))
    files = ("--latex", tmp_path / "t.tex", "--csv", tmp_path / "t.csv")
    code, out, _ = audit(capsys, labels, scores, "--delta-max", 20)
    assert re.search(r"SPD \d\.\d+ \[\d\.\d+, \d\.\d+\] is ", out), "the sentence has the interval it rests on"
    assert "low" in next(line for line in out.splitlines() if line.startswith("┃ score"))
    assert "95 % interval over 6 events (100 draws; 10 for" in " ".join(out.split())
    code, out, _ = audit(capsys, labels, scores, "--delta-max", 20, "--json", *files)
    assert code == 0
    found = json.loads(out)
    have = {one["score"]: one for one in found["intervals"]}
    assert set(have) == {row["name"] for row in found["scores"]}
    for row in found["scores"]:
        assert have[row["name"]]["value"] == pytest.approx(row["pooled"])
        assert have[row["name"]]["low"] <= have[row["name"]]["high"]
    latex = (tmp_path / "t.tex").read_text()
    body = latex[latex.index("toprule") : latex.index("bottomrule")].splitlines()
    assert not any(line.replace("&", "").replace("\\\\", "").strip() == "" for line in body)
    assert all("[" in line for line in body if line.startswith(("VUS-PR", "PATE", "affiliation")))
    assert all(line.split(",")[7] for line in (tmp_path / "t.csv").read_text().splitlines()[1:])
