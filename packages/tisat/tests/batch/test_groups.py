"""One model for many machines: who shares it, and that each keeps a threshold of its own."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tisat.batch import Describe, FitEach, FitGroup, Machine, find_machines, group_machines
from tisat.batch.engines import Inline
from tisat.batch.groups import Described, by_likeness, by_name, by_table
from tisat.cli import main
from tisat.detectors import LinearLast, adapt
from tisat.errors import DataFileError, ParameterError
from tisat.series import Series
from tisat.watch import Watch

NAMES = [f"{kind}-{k}" for kind in ("pump", "fan") for k in range(4)]


def rows(name, count=600):
    """Pumps are slow and large, fans quick and small; each has a noise of its own."""
    rng = np.random.default_rng(NAMES.index(name))
    pump, noise = name.startswith("pump"), 0.05 * (1 + NAMES.index(name) % 4)
    t = np.arange(count)[:, None]
    wave = np.sin(t / (40.0 if pump else 5.0) + [0.0, 1.0]) + noise * rng.standard_normal((count, 2))
    return 100.0 + 20.0 * wave if pump else wave


@pytest.fixture
def folder(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for name in NAMES:
        values = rows(name)
        pq.write_table(pa.table({"flow": values[:, 0], "heat": values[:, 1]}), data / f"{name}.parquet")
    return data


def machines(*names):
    return [Machine(name, (f"{name}.csv",)) for name in names]


def test_groups_by_name_by_table_and_by_likeness(folder, tmp_path):
    found = find_machines([folder])
    kinds = {name: name.split("-")[0] for name in NAMES}
    assert by_name("^[a-z]+", found) == by_name(r"^(\w+)-", found) == kinds
    table = tmp_path / "groups.csv"
    table.write_text("machine,group\n" + "".join(f"{name},{kind}\n" for name, kind in kinds.items()), encoding="utf-8")
    assert by_table(table, found) == kinds
    looked_at = [Describe()(machine) for machine in found]
    alike = group_machines("auto", found, lambda: looked_at)
    assert 2 <= len(set(alike.values())) < len(NAMES)
    assert all(kinds[a] == kinds[b] for a in NAMES for b in NAMES if alike[a] == alike[b])


def test_machines_with_other_channels_are_never_one_group():
    same = [Described(f"m{k}", ("a", "b"), (1.0, 1.0, 0.1, 2.0, 1.0, 0.1)) for k in range(3)]
    turned = Described("turned", ("b", "a"), (2.0, 1.0, 0.1, 1.0, 1.0, 0.1))
    other = Described("other", ("a", "c"), (1.0, 1.0, 0.1, 2.0, 1.0, 0.1))
    found = by_likeness([*same, turned, other, Described("lost", trouble="no such file")])
    assert len({found[name] for name in ("m0", "m1", "m2", "turned")}) == 1
    assert found["other"] != found["m0"]
    assert "lost" not in found


def test_wrong_groups_are_refused_with_a_sentence(tmp_path):
    with pytest.raises(ParameterError, match="is not in 'fan-1'"):
        by_name("^pump", machines("pump-1", "fan-1"))
    with pytest.raises(ParameterError, match="regular expression"):
        by_name("(", machines("pump-1"))
    with pytest.raises(DataFileError, match="columns machine and group"):
        by_table(tmp_path / "none.csv", machines("pump-1"))
    table = tmp_path / "groups.csv"
    table.write_text("machine,group\npump-1,a\n", encoding="utf-8")
    with pytest.raises(DataFileError, match="There is no 'fan-1'"):
        by_table(table, machines("pump-1", "fan-1"))


def test_each_machine_has_the_shared_model_and_its_own_threshold(folder, tmp_path):
    found = [one for one in find_machines([folder]) if one.name.startswith("pump")]
    group = FitGroup("linear-last", str(tmp_path), {"pumps": tuple(found)}, {"window": 10})
    row = group(Machine("pumps", ()))
    assert row["trouble"] == ""
    assert group(Machine("pumps", ())) == row  # not fitted again
    shared = LinearLast(window=10).fit([one.read() for one in found], holdout=0.0)
    job = FitEach(
        "linear-last",
        str(tmp_path),
        {"window": 10},
        {"budget": "1/100 rows"},
        shared=dict.fromkeys(NAMES, row["model"]),
    )
    thresholds = []
    for machine in found:
        made = job(machine)
        assert made["trouble"] == ""
        watch = Watch.load(made["model"])
        np.testing.assert_array_equal(
            watch.detector.decision_function(machine.read()), shared.decision_function(machine.read())
        )
        own = Watch(adapt(shared, machine.read()), budget="1/100 rows").calibrate()
        assert watch.calibration.threshold == own.calibration.threshold
        thresholds.append(watch.rule.level_[0])
    assert len(set(thresholds)) == len(thresholds)  # a noise of its own, a level of its own


def test_a_network_is_shared_too():
    pytest.importorskip("torch")
    from tisat.detectors import LSTM

    many = [Series(rows(name, 120), channels=("flow", "heat"), name=name) for name in NAMES[:2]]
    shared = LSTM(window=8, hidden=4, layers=1, epochs=1).fit_together(many)
    adapted = adapt(shared, many[1])
    assert adapted.decision_function(many[1]).shape == (120,)


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code


def test_from_the_command_line(folder, tmp_path, capsys):
    out = tmp_path / "models"
    asked = [
        "fit",
        str(folder),
        "--each",
        "--group-by",
        "^[a-z]+",
        "--out",
        str(out),
        "--detector",
        "linear-last",
        "--set",
        "window=10",
    ]
    asked += ["--budget", "1/100 rows", "--engine", "inline"]
    assert run(*asked) == 0
    said = capsys.readouterr()
    assert "group pump: 4 machines" in said.err
    assert "8 models of 8 machines" in said.out
    assert len(list((out / "groups").glob("*.tisat"))) == 2
    assert run(*asked) == 0
    assert "8 of 8 were fitted before" in capsys.readouterr().err
    assert run(*asked[:2], "--group-by", "auto", "--out", str(tmp_path / "one.tisat")) == 1
    assert "must come with --each" in capsys.readouterr().err


def test_a_group_that_cannot_be_fitted_leaves_each_its_own_model(tmp_path):
    machine = Machine("gone", (str(tmp_path / "gone.parquet"),))
    with pytest.raises(FileNotFoundError):
        machine.stamp  # noqa: B018
    row = next(iter(Inline().each(Describe(), [machine], started=lambda _: None)))
    assert row.trouble


def test_a_group_of_unlike_machines_is_said(tmp_path, capsys):
    """Grouped by level and spread, machines whose channels hang together in other ways shared a model without a word."""
    load = np.sin(np.arange(400) / 9)
    for number, slope in enumerate((-3.0, -1.0, 1.0, 3.0)):
        noise = 0.05 * np.random.default_rng(number).normal(size=(400, 2))
        table = np.stack([load, slope * load], axis=1) + noise
        np.savetxt(tmp_path / f"m{number}.csv", table, delimiter=",", header="flow,heat", comments="")
    asked = ["fit", str(tmp_path), "--each", "--group-by", "m", "--out", str(tmp_path / "models")]
    assert run(*asked, "--detector", "linear-last", "--budget", "1/100 rows", "--engine", "inline") == 0
    said = capsys.readouterr().err
    assert "group m: 4 machines" in said
    assert "These machines are unlike" in said
    assert "Without --group-by each gets a model of its own" in said
