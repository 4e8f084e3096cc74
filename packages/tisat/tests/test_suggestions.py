"""tisat.suggest looks at the data: what it says follows from what is there."""

import json

import numpy as np
import pytest

import tisat
from tisat import registry
from tisat.cli import main
from tisat.cli.options import read_settings
from tisat.datasets.synthetic import make_pump
from tisat.detectors.suggestions import suggest


def names(data):
    return [one.detector for one in suggest(data).detectors]


def test_the_pump_is_tied_smooth_and_has_a_day():
    found = tisat.suggest(make_pump().train)
    assert found.detectors[0].detector == registry.DEFAULT
    assert "rhythm of about 1 d" in str(found)
    assert "move together" in str(found)
    assert "mahalanobis" in names(make_pump().train)
    assert "prism" in found._repr_html_()


def test_it_follows_the_data():
    rng = np.random.default_rng(0)
    assert names(rng.normal(size=(100, 2)))[0] == "ewma"  # few rows
    assert names(rng.normal(size=(3000, 3))) == ["prism"]  # noise: neither tied nor smooth
    saw = (np.arange(4000) % 50) / 50 + 0.01 * rng.normal(size=4000)
    one = suggest(saw).detectors
    assert "matrix-profile" in [each.detector for each in one]
    assert next(each.settings for each in one if each.detector == "matrix-profile") == "window=50"
    assert "nearest-neighbors" in names((rng.random((2000, 3)) > 0.5).astype(float))
    gone = rng.normal(size=(3000, 2))
    gone[500:900, 1] = np.nan
    assert "silent" in suggest(gone).detectors[0].why
    grows = np.column_stack([rng.normal(size=3000), np.arange(3000.0) ** 1.1])
    assert "only grow" in str(suggest(grows)) or suggest(grows).facts


@pytest.mark.parametrize("data", [make_pump(n_train=3000).train, np.random.default_rng(0).normal(size=(100, 2))])
def test_what_it_says_can_be_typed(data):
    for one in suggest(data).detectors:
        settings = read_settings([one.settings] if one.settings else [])
        tisat.make(one.detector, **settings)._check_parameters()


def test_the_verb(tmp_path, capsys):
    file = tmp_path / "w.csv"
    rows = np.random.default_rng(0).normal(size=(600, 2))
    file.write_text("a,b\n" + "\n".join(",".join(map(str, row)) for row in rows.tolist()) + "\n")
    for options in ([], ["--json"]):
        with pytest.raises(SystemExit) as stopped:
            main(["suggest", str(file), *options])
        assert stopped.value.code == 0
        out = capsys.readouterr().out
        assert "prism" in out
    assert json.loads(out)["detectors"][0]["command"].startswith("tisat fit --detector prism")


def test_look_suggest_and_fit_agree_on_few_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    few = np.random.default_rng(0).normal(size=(300, 2))
    np.savetxt("few.csv", few, delimiter=",", header="a,b", comments="")
    sentence = "300 rows are few: fit says which budget they support"
    said = []
    for words in (
        ["look", "few.csv"],
        ["suggest", "few.csv"],
        ["fit", "few.csv", "--budget", "1/50 rows", "--out", "m.tisat"],
    ):
        with pytest.raises(SystemExit) as done:
            main(words)
        assert done.value.code == 0
        printed = capsys.readouterr()
        said.append(" ".join((printed.out + printed.err).split()))
    assert all(sentence in one for one in said)
    assert all("--detector ewma" in one for one in said)
    assert suggest(few).detectors[0].detector == "ewma"


@pytest.mark.parametrize(("detector", "least"), [("prism", 127), ("ewma", 41)])
def test_a_model_can_be_fitted_from_the_number_that_is_said(tmp_path, monkeypatch, capsys, detector, least):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(least, 2))
    for name, part in (("enough", rows), ("few", rows[1:])):
        np.savetxt(f"{name}.csv", part, delimiter=",", header="a,b", comments="")
    for file, code in (("enough.csv", 0), ("few.csv", 2)):
        with pytest.raises(SystemExit) as done:
            main(["fit", file, "--detector", detector, "--out", f"{file}.tisat"])
        assert bool(done.value.code) == bool(code)
    assert f"at least {least} rows" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["look", "few.csv"])
    assert f"{least} rows on" in " ".join(capsys.readouterr().out.split())


def test_memory_is_said_before_it_is_used(monkeypatch):
    from tisat.datasets import sizes

    assert sizes.size_notes(10_000, 5) == ()
    assert "2.9 GB" in sizes.size_notes(5_000_000, 5)[0]
    monkeypatch.setattr(sizes, "memory_free", lambda: 2e9)
    assert "2.0 GB are free" in sizes.size_notes(5_000_000, 5)[0]
