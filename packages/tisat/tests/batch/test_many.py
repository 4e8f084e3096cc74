"""Many machines: found without being read, and the same bits from every engine and every layout."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tisat.batch import AlarmEach, FitEach, find_machines
from tisat.batch.engines import Inline, make_engine
from tisat.batch.process_engine import Local
from tisat.cli import main
from tisat.errors import DataFileError, ParameterError
from tisat.persistence.estimator import document_of
from tisat.watch import Watch

NAMES = [f"pump-{k}" for k in range(4)]


def columns(name, start=0, rows=400):
    rng = np.random.default_rng(NAMES.index(name))
    t = np.arange(start, start + rows)
    values = np.sin(t[:, None] / 9.0 + [0.0, 1.0]) + 0.1 * rng.standard_normal((rows, 2))
    if start:
        values[100:110, 0] += 5.0
    times = np.datetime64("2026-01-01") + t * np.timedelta64(60, "s")
    return {"time": times.astype("datetime64[us]"), "flow": values[:, 0], "heat": values[:, 1]}


def table(names, **options):
    parts = [pa.table({**columns(name, **options), "id": [name] * options.get("rows", 400)}) for name in names]
    return pa.concat_tables(parts)


@pytest.fixture
def layouts(tmp_path):
    """The same four machines as files of their own, as one long table, in a partitioned data set, and as long csv."""
    import pyarrow.csv as pc

    own, parted = tmp_path / "own", tmp_path / "parted"
    own.mkdir()
    for name in NAMES:
        part = table([name]).drop_columns(["id"])
        pq.write_table(part, own / f"{name}.parquet")
        (parted / f"id={name}").mkdir(parents=True)
        pq.write_table(part.slice(0, 150), parted / f"id={name}" / "0.parquet")
        pq.write_table(part.slice(150), parted / f"id={name}" / "1.parquet")
    shuffled = table(NAMES).take(np.argsort(np.tile(np.arange(400), 4), kind="stable"))
    pq.write_table(shuffled, tmp_path / "long.parquet", row_group_size=100)
    pc.write_csv(shuffled, tmp_path / "long.csv")
    return {"own": own, "long": tmp_path / "long.parquet", "parted": parted, "csv": tmp_path / "long.csv"}


HOW = {"own": {}, "long": {"entity": "id"}, "parted": {}, "csv": {"entity": "id"}}


def test_every_layout_means_the_same_machines_and_rows(layouts):
    expected = {one.name: one.read() for one in find_machines([layouts["own"]])}
    assert sorted(expected) == NAMES
    for kind, path in layouts.items():
        found = find_machines([path], HOW[kind])
        assert sorted(one.name for one in found) == NAMES
        for one in found:
            series = one.read(HOW[kind])
            assert series.channels == ("flow", "heat")
            np.testing.assert_array_equal(series.values, expected[one.name].values)
            assert (series.timestamps == expected[one.name].timestamps).all()


def models(folder):
    """What each model has learned, to the bit."""
    watches = {file.name: Watch.load(file) for file in sorted(folder.glob("*.tisat"))}
    return {
        name: (one.fingerprint(), document_of(one.detector)[0]["params"], one.calibration)
        for name, one in watches.items()
    }


@pytest.mark.parametrize("engine", [Inline(), pytest.param(Local(jobs=2), marks=pytest.mark.slow)])
def test_every_engine_gives_the_same_bits(layouts, tmp_path, engine):
    found = {}
    for number, runner in enumerate((Inline(), engine)):
        out = tmp_path / f"models-{number}"
        out.mkdir()
        job = FitEach("linear-last", str(out), watch={"budget": "1/200 rows"}, how=HOW["long"])
        machines = find_machines([layouts["long"]], HOW["long"])
        rows = sorted(runner.each(job, machines), key=lambda row: row["machine"])
        assert [row["trouble"] for row in rows] == [""] * 4
        judged = sorted(runner.each(AlarmEach(str(out)), machines), key=lambda one: one.machine)
        found[number] = models(out), [(one.machine, one.judged, one.alarms) for one in judged]
    assert found[0] == found[1]


def test_a_machine_that_cannot_be_fitted_is_a_row_with_its_reason(layouts, tmp_path):
    (layouts["own"] / "broken.parquet").write_bytes(b"PAR1 not really")
    short = layouts["own"] / "short.parquet"
    pq.write_table(table(["pump-0"]).drop_columns(["id"]).slice(0, 1), short)
    with pytest.raises(DataFileError, match=r"broken\.parquet"):
        find_machines([layouts["own"]])
    (layouts["own"] / "broken.parquet").unlink()
    job = FitEach("linear-last", str(tmp_path))
    rows = {row["machine"]: row for row in Inline().each(job, find_machines([layouts["own"]]))}
    assert rows["short"]["trouble"]
    assert not rows["pump-0"]["trouble"]


def run(*arguments, code=0):
    with pytest.raises(SystemExit) as stopped:
        main([str(one) for one in arguments])
    assert (stopped.value.code or 0) == code


def test_from_the_command_line_and_again_it_repeats_nothing(layouts, tmp_path, capsys):
    out = tmp_path / "models"
    fit = ("fit", "--train", layouts["long"], "--entity", "id", "--each", "--out", out, "--detector", "linear-last")
    run(*fit, "--budget", "1/200 rows", "--engine", "inline")
    assert "4 models of 4 machines" in capsys.readouterr().out
    before = {file.name: file.stat().st_mtime_ns for file in out.glob("*.tisat")}
    (out / "pump-2.tisat").unlink()
    run(*fit, "--budget", "1/200 rows", "--engine", "inline")
    assert "3 of 4 were fitted before" in capsys.readouterr().err
    after = {file.name: file.stat().st_mtime_ns for file in out.glob("*.tisat")}
    assert {name for name in before if before[name] != after[name]} == {"pump-2.tisat"}
    run("alarm", layouts["long"], "--entity", "id", "--model", out, "--engine", "inline", "--json")
    found = json.loads(capsys.readouterr().out)
    assert sorted(one["machine"] for one in found) == NAMES
    assert all(one["judged"] >= 290 for one in found)


@pytest.mark.parametrize("engine", ["inline", "local"])
def test_a_folder_of_models_scores_and_is_fitted_again(layouts, tmp_path, capsys, engine):
    models, scores, again = tmp_path / "models", tmp_path / "scores", tmp_path / "again"
    fit = (
        "fit",
        "--train",
        layouts["own"],
        "--each",
        "--out",
        models,
        "--detector",
        "linear-last",
        "--engine",
        "inline",
    )
    run(*fit, "--budget", "1/200 rows")
    capsys.readouterr()
    run("score", layouts["own"], "--model", models, "--out", scores, "--engine", engine, "--json")
    rows = json.loads(capsys.readouterr().out)
    assert [row["machine"] for row in rows] == NAMES
    for row in rows:
        machine = next(one for one in find_machines([layouts["own"]]) if one.name == row["machine"])
        expected = Watch.load(models / f"{machine.name}.tisat").detector.decision_function(machine.read())
        assert row["scored"] == np.isfinite(expected).sum()
        assert len((scores / f"{machine.name}.csv").read_text().splitlines()) == len(expected) + 1
    run("update", "--model", models, "--train", layouts["own"], "--out", again, "--engine", engine)
    assert "4 models of 4 machines fitted again" in capsys.readouterr().out
    for name in NAMES:  # from the same rows the same model
        before, after = Watch.load(models / f"{name}.tisat"), Watch.load(again / f"{name}.tisat")
        assert before.calibration == after.calibration
    (models / "pump-1.tisat").unlink()
    run(
        "update",
        "--model",
        models,
        "--train",
        layouts["own"],
        "--out",
        again,
        "--engine",
        engine,
        "--overwrite",
        code=1,
    )
    assert "must hold a model of 'pump-1'" in " ".join(capsys.readouterr().out.split())


def test_engines_by_name():
    with pytest.raises(ParameterError, match="one of local, inline, ray"):
        make_engine("spark")
    with pytest.raises(ParameterError, match="--engine ray"):
        make_engine("local", address="auto")


@pytest.mark.cluster
def test_ray_gives_the_same_bits_too(layouts, tmp_path):
    pytest.importorskip("ray")
    from tisat.batch.ray_engine import Cluster

    found = {}
    for name, runner in (("inline", Inline()), ("ray", Cluster(jobs=2))):
        out = tmp_path / name
        out.mkdir()
        job = FitEach("linear-last", str(out), watch={"budget": "1/200 rows"}, how=HOW["parted"])
        rows = list(runner.each(job, find_machines([layouts["parted"]])))
        assert [row["trouble"] for row in rows] == [""] * 4
        found[name] = models(out)
    assert found["ray"] == found["inline"]
    assert Watch.load(tmp_path / "ray" / "pump-0.tisat").channels == ("flow", "heat")


@pytest.mark.cluster
def test_a_node_that_is_killed_half_way_changes_no_bit(layouts, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster as Nodes

    from tisat.batch.ray_engine import Cluster

    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    machines = find_machines([layouts["long"]], {"entity": "id"})
    found = {}
    inline = tmp_path / "inline"
    inline.mkdir()
    job = FitEach("linear-last", str(inline), watch={"budget": "1/200 rows"}, how=HOW["long"])
    list(Inline().each(job, machines))
    found["inline"] = models(inline)
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    doomed = nodes.add_node(num_cpus=1)
    try:
        ray.init(address=nodes.address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        out = tmp_path / "ray"
        out.mkdir()
        job = FitEach("linear-last", str(out), watch={"budget": "1/200 rows"}, how=HOW["long"])
        rows = []
        for row in Cluster(address=nodes.address).each(job, machines):
            rows.append(row)
            if len(rows) == 1:
                nodes.remove_node(doomed, allow_graceful=False)
        assert sorted(row["machine"] for row in rows) == NAMES
        assert [row["trouble"] for row in rows] == [""] * 4
        found["ray"] = models(out)
    finally:
        ray.shutdown()
        nodes.shutdown()
    assert found["ray"] == found["inline"]
