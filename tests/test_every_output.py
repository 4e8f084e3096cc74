"""Every option of every verb that names an output: no file of the user's is replaced unasked, and none that is read is ever.

The table below has a line for each option that takes a path. A new one must be put into it, or the first test fails.
"""

import io
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import typer

from tisat.cli import build, main

ROOT = Path(__file__).resolve().parents[1]
HEADER = "time,flow,pressure\n"
PRECIOUS = "expensive\n"
FIT, OLD = ("fit", "rows.csv", "--detector", "ewma"), ("--model", "m.tisat")
EACH = ("fit", "machines", "--detector", "ewma", "--each")
BENCH = ("bench", str(ROOT / "experiments" / "smoke.toml"), "--store", "store", "--no-run")
LABEL = ("label", "alarms.csv", "now.csv", *OLD)

# verb and option -> the words before it, what is given, and the file in danger (of a folder: one inside it)
OUTPUTS = {
    "look --picture": (("look", "now.csv"), "p.png", ""),
    "fit --out": (FIT, "new.tisat", ""),
    "fit --each --out": (EACH, "new", "a.tisat"),
    "fit --checkpoint": (("fit", "rows.csv", "--detector", "tisat", "--out", "n.tisat"), "c.part", ""),
    "score --out": (("score", "now.csv", *OLD), "s.csv", ""),
    "score (many) --out": (("score", "machines", *OLD), "scores", "a.csv"),
    "alarm --out": (("alarm", "now.csv", *OLD), "a.csv", ""),
    "alarm --picture": (("alarm", "now.csv", *OLD), "a.png", ""),
    "alarm --html": (("alarm", "now.csv", *OLD), "a.html", ""),
    "compare --picture": (("compare", "rows.csv", "--detector", "ewma", "--detector", "last-value"), "p.png", ""),
    "scan --out": (("scan", "now.csv", "--detector", "ewma", "--budget", "1/100 rows"), "a.csv", ""),
    "scan --picture": (("scan", "now.csv", "--detector", "ewma", "--budget", "1/100 rows"), "a.png", ""),
    "scan --html": (("scan", "now.csv", "--detector", "ewma", "--budget", "1/100 rows"), "a.html", ""),
    "watch --output": (("watch", *OLD), "o.jsonl", ""),
    "update --out": (("update", *OLD, "--train", "rows.csv"), "n.tisat", ""),
    "update (many) --out": (("update", "--model", "models", "--train", "machines"), "new", "a.tisat"),
    "recalibrate --out": (("recalibrate", *OLD, "--budget", "1/300 rows"), "n.tisat", ""),
    "label --out": (LABEL, "n.tisat", ""),
    "backtest --html": (("backtest", "rows.csv", "--train", "500 rows", "--refit", "500 rows", "--detector", "ewma"), "b.html", ""),
    "far --page": (("far", "rows.csv", "--detector", "ewma"), "p.html", ""),
    "far --picture": (("far", "rows.csv", "--detector", "ewma"), "p.png", ""),
    "far (two methods) --picture": (("far", "rows.csv", "--detector", "ewma", "--method", "auto,bootstrap"), "p.png", "../p-2.png"),
    "audit --html": (("audit", "labels.csv", "scores.csv"), "p.html", ""),
    "audit --latex": (("audit", "labels.csv", "scores.csv"), "p.tex", ""),
    "audit --csv": (("audit", "labels.csv", "scores.csv"), "p.csv", ""),
    "bench --report": (BENCH, "report", "index.html"),
    "bench --freeze": (BENCH, "frozen-new", "smoke/about.json"),
    "bench tsb-ad-m --report": (("bench", "tsb-ad-m", "--store", "store"), "report", "tsb-ad-m.md"),
    "tables --out": (("tables", "frozen"), "pages", "table1.md"),
    "demo --out": (("demo", "--detector", "linear-mean"), "demo", "alarms.csv"),
    "data far --picture": (("data", "far"), "p.png", ""),
    "serve backup --out": (("serve", "backup", "--data", "service"), "b.db", ""),
    "serve export --out": (("serve", "export", "--data", "service"), "history", "00001-a.parquet"),
}  # fmt: skip
# What is read, and what a run goes on with: its own state, store or folder, which it checks as such.
READ = {
    "show model", "score --model", "score --train", "alarm --model", "watch --model", "update --model", "recalibrate --model", "label alarms",
    "label --model", "evaluate alarms", "audit labels", "audit scores", "bench experiment", "tables frozen",
    "data random-guess --data", "data random-guess --printed", "data far --data", "data list --data", "data show --data",
    "data verify --data", "serve --model", "serve --config", "serve restore source", "serve replay --model",
    "serve replay --data", "serve move --from", "serve upgrade --model",
}  # fmt: skip
CONTINUED = {
    "watch --state", "bench --store", "data download --data", "serve --data", "serve --handover", "serve forget --data",
    "serve token --data", "serve backup --data", "serve restore --data", "serve export --data", "serve move --to", "serve upgrade data",
}  # fmt: skip


def options(command, path=()):
    """Verb and option of every parameter that is a path."""
    for one in command.params:
        if "Path" in str(one.type_descriptor.annotation):
            yield " ".join([*path, one.opts[0]])
    for name, sub in getattr(command, "commands", {}).items():
        yield from options(sub, (*path, name))


def test_every_option_that_takes_a_path_is_in_the_table():
    named = {f"{' '.join(w for w in key.split(' (')[0].split() if not w.startswith('-') and w != 'tsb-ad-m')} {key.split()[-1]}" for key in OUTPUTS}  # fmt: skip
    assert set(options(typer.main.get_command(build()))) == named | READ | CONTINUED


def lines(stop, seed=3, fault=0.0):
    rng = np.random.default_rng(seed)
    values = np.sin(np.arange(stop)[:, None] / 9.0 + [0.0, 1.0]) + 0.1 * rng.standard_normal((stop, 2))
    values[100:110] += fault
    return HEADER + "".join(f"{60 * t},{a!r},{b!r}\n" for t, (a, b) in enumerate(values.tolist()))


def run(*words):
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return stopped.value.code or 0


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with everything that verbs read."""
    folder, before = tmp_path_factory.mktemp("made"), Path.cwd()
    os.chdir(folder)
    try:
        Path("rows.csv").write_text(lines(2000))
        Path("now.csv").write_text(lines(300, seed=4, fault=9.0))
        Path("machines").mkdir()
        for name in "ab":
            Path(f"machines/{name}.csv").write_text(lines(600))
        assert run(*FIT, "--out", "m.tisat", "--budget", "1/200 rows") == 0
        assert run(*EACH, "--out", "models") == 0
        assert run("alarm", "now.csv", *OLD, "--out", "alarms.csv") == 0
        first, *rest = Path("alarms.csv").read_text().splitlines()
        Path("alarms.csv").write_text("\n".join([f"{first},label", *(f"{row},false" for row in rest)]) + "\n")
        Path("labels.csv").write_text("is_anomaly\n" + "0\n" * 250 + "1\n" * 50)
        assert run("score", "now.csv", *OLD, "--out", "scores.csv") == 0
        shutil.copytree(ROOT / "experiments" / "frozen" / "table1", "frozen/table1")
        shutil.copytree(ROOT / "experiments" / "frozen" / "table2", "frozen/table2")
        from tisat_serve.store import Store

        Store(Path("service")).close()
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def here(made, monkeypatch):
    """Inside a copy of that folder."""
    copy = made.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(made, copy)
    monkeypatch.chdir(copy)
    monkeypatch.setattr("sys.stdin", type("In", (), {"buffer": io.BytesIO()}))


def contents():
    return {file: file.read_bytes() for file in sorted(Path().rglob("*")) if file.is_file() and not file.is_symlink()}


@pytest.mark.parametrize("case", OUTPUTS)
def test_a_file_that_is_there_stays_unless_overwrite_is_said(here, capsys, case):
    words, target, inside = OUTPUTS[case]
    precious = Path(os.path.normpath(Path(target, inside)))
    precious.parent.mkdir(parents=True, exist_ok=True)
    precious.write_text(PRECIOUS)
    before = contents()
    assert run(*words, case.split()[-1], target) == 1
    said = capsys.readouterr().err
    assert "must not be there yet" in said if case.startswith("serve backup") else "--overwrite" in said
    assert contents() == before


@pytest.mark.parametrize("case", OUTPUTS)
def test_what_is_read_is_never_written(here, capsys, case):
    """By its own name and through a link, also where overwriting is asked for."""
    words, target, inside = OUTPUTS[case]
    over = () if case.startswith("serve backup") else ("--overwrite",)
    read = [Path(word) for word in words if Path(word).exists() and ROOT not in Path(word).parents]
    if inside:
        dangers = [path for path in read if path.is_dir() and case.startswith(("bench", "serve"))]
    else:
        dangers = [path for path in read if path.is_file()]
    for path in dangers:
        link = Path(f"link{Path(target).suffix}")
        link.symlink_to(path, target_is_directory=path.is_dir())
        for name in (path, link):
            before = contents()
            assert run(*words, case.split()[-1], name, *over) == 1
            said = capsys.readouterr().err
            assert "that is read here" in said or "must not be there yet" in said
            assert contents() == before
        link.unlink()


SLOW = (
    "fit --checkpoint",
    "bench",
    "demo",
    "data",
)  # a network, a benchmark, a plant, Figure 3: the same writers as the others


# Pages of an audit, studies and comparisons share their writers with the quick ones.
COSTLY = ("audit", "far", "compare", "backtest", "scan")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.slow if case.startswith(COSTLY) else ())
        for case in OUTPUTS
        if not case.startswith((*SLOW, "watch"))
    ],
)
def test_a_full_disk_leaves_nothing_under_the_final_name(here, monkeypatch, capsys, case):
    def full(*_):
        raise OSError(28, "No space left on device")

    words, target, inside = OUTPUTS[case]
    monkeypatch.setattr("os.fsync", full)
    run(*words, case.split()[-1], target)
    assert not Path(os.path.normpath(Path(target, inside))).is_file()
    assert not any(file.is_file() for file in Path(target).rglob("*") if file.name != "fitted.jsonl")


def test_fit_each_knows_its_own_models_and_goes_on_after_a_kill(here, capsys, monkeypatch):
    """The same command again is no overwriting; other settings are. A killed run knows what it has begun."""
    assert run(*EACH, "--out", "models") == 0
    assert "2 of 2 were fitted before" in capsys.readouterr().err
    before = contents()
    assert run(*EACH, "--out", "models", "--budget", "1/50 rows") == 1
    assert "--overwrite" in capsys.readouterr().err
    assert contents() == before
    assert run(*EACH, "--out", "models", "--budget", "1/50 rows", "--overwrite") == 0
    capsys.readouterr()
    assert run(*EACH, "--out", "models") == 1  # the models are of the other settings now: not "fitted before"
    assert "--overwrite" in capsys.readouterr().err
    with monkeypatch.context() as patched:
        patched.setattr("tisat.batch.fitting.FitEach.keep", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run(*EACH, "--out", "killed") == 130  # a model is written, its line is not
    assert list(Path("killed").glob("*.tisat"))
    assert run(*EACH, "--out", "killed") == 0
