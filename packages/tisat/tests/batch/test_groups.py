"""One model for many machines: who shares it, and that each keeps a threshold of its own."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tisat.batch import Describe, FitEach, FitGroup, Machine, find_machines, group_machines
from tisat.batch.engines import Inline
from tisat.batch.groups import Described, by_likeness, by_name, by_table
from tisat.batch.likeness import Moments, likeness
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


def described(name, channels, seed, levels=(0.0, 5.0), count=300):
    values = np.random.default_rng(seed).normal(levels, size=(count, 2))
    return Described(name, channels, Moments.of(Series(values, channels=channels)))


def test_machines_with_other_channels_are_never_one_group():
    same = [described(f"m{k}", ("a", "b"), k) for k in range(3)]
    turned = described("turned", ("b", "a"), 3, levels=(5.0, 0.0))
    other = described("other", ("a", "c"), 4)
    few = described("few", ("a", "b"), 5, count=10)
    found = by_likeness([*same, turned, other, few, Described("lost", trouble="no such file")])
    assert len({found[name] for name in ("m0", "m1", "m2", "turned")}) == 1
    assert len({found[name] for name in ("m0", "other", "few")}) == 3
    assert "lost" not in found


def servers(sizes):
    """The load follows requests over the size of a server: alike in the level of most channels, not in that relation."""
    rng = np.random.default_rng(8)
    many = []
    for number, size in enumerate(sizes):
        demand = 1.0 + 0.5 * np.sin(np.arange(900) / 40.0) + 0.1 * rng.standard_normal(900)
        load = 8.0 + 35.0 * demand + 0.8 * rng.standard_normal(900)
        calm = rng.normal(size=(900, 4))
        many.append(Series(np.column_stack([size * demand, load, calm]), name=f"s-{number}"))
    return many


def test_machines_that_the_note_calls_unlike_are_never_one_group():
    many = servers([100, 200, 330, 100, 200, 330, 100, 520])
    assert likeness(many).unlike
    groups = by_likeness([Described(one.name, one.channels, Moments.of(one)) for one in many])
    assert len(set(groups.values())) == 4
    assert groups["s-0"] == groups["s-3"] == groups["s-6"]
    for group in set(groups.values()):
        members = [one for one in many if groups[one.name] == group]
        assert len(members) == 1 or not likeness(members).unlike
    assert "--each --group-by auto" in str(likeness(many))


def test_where_no_machine_is_alike_another_each_is_advised():
    found = likeness(servers([50, 100, 200, 330, 520, 900]))
    assert found.unlike
    assert "Use --each, one model for each: 6 of 6 are alike no other" in str(found)
    assert "--group-by" not in str(found)


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


def test_a_machine_alone_in_its_group_gets_a_model_of_its_own(folder, tmp_path, capsys):
    asked = ["fit", str(folder), "--each", "--detector", "linear-last", "--set", "window=10", "--budget", "1/100 rows"]
    asked += ["--engine", "inline", "--out"]
    assert run(*asked, str(tmp_path / "each")) == 0
    capsys.readouterr()
    assert run(*asked, str(tmp_path / "grouped"), "--group-by", r"^\w+-\d") == 0
    assert "no machine is in a group with another; each gets a model of its own" in capsys.readouterr().err
    for name in NAMES:
        own, grouped = (Watch.load(tmp_path / way / f"{name}.tisat").calibration for way in ("each", "grouped"))
        assert own.threshold == grouped.threshold
