"""``tisat bench`` and ``tisat tables``: what is typed is what the library says, run or only looked at."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmark.conftest import ROOT
from tisat.cli import app
from tisat.metrics.random_guess import random_guess
from tisat_bench.cli.bench import _duration, _progress_line
from tisat_bench.figures import adjusted_figures, differences, random_baseline_figures, rule_differences
from tisat_bench.frozen import FILES, read_frozen, write_frozen
from tisat_bench.plots import sweep_group
from tisat_bench.tables import markdown_page

SMOKE = ROOT / "experiments" / "smoke.toml"


def tisat(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    return SimpleNamespace(code=done.exit_code, out=done.stdout, err=done.stderr, error=str(done.exception or ""))


def test_what_is_stored_is_shown_frozen_and_made_into_pages(smoke, tmp_path):
    frozen, evaluation = smoke
    shown = tisat("bench", SMOKE, "--store", evaluation.store.folder, "--no-run", "--json", "--freeze", tmp_path / "f")  # fmt: skip
    assert (shown.code, shown.error) == (0, "")
    found = json.loads(shown.out)
    assert [one["pooled"] for one in found["figures"]] == [one.pooled for one in frozen.figures]
    assert set(found) == {"about", *FILES}
    kept = read_frozen(tmp_path / "f" / "smoke")
    assert [one.pooled for one in kept.figures] == pytest.approx([one.pooled for one in frozen.figures], rel=1e-3)
    made = tisat("tables", tmp_path / "f", "--out", tmp_path / "pages")
    assert (made.code, made.error) == (0, "")
    assert (tmp_path / "pages" / "smoke.md").read_text() == markdown_page(kept)
    assert "must hold frozen results" in tisat("tables", tmp_path / "pages").error


def test_a_run_does_what_is_missing_and_nothing_twice(tmp_path):
    few = tmp_path / "few.toml"
    few.write_text(SMOKE.read_text().replace('name = "plants"', 'name = "plants"\nentities = ["plant-0"]'))
    words = ("bench", few, "--store", tmp_path / "s", "--only", "Random Guess", "--engine", "inline")
    first = tisat(*words)
    assert (first.code, first.error) == (0, "")
    assert "2 tasks, 2 to run" in first.err
    assert "SPD" in first.out
    assert "2 tasks, 0 to run" in tisat(*words).err


def test_a_store_without_results_is_refused_and_tasks_without_one_are_counted(tmp_path):
    few = tmp_path / "few.toml"
    few.write_text(SMOKE.read_text().replace('name = "plants"', 'name = "plants"\nentities = ["plant-0"]'))
    words = ("bench", few, "--store", tmp_path / "s")
    refused = tisat(*words, "--no-run")
    assert refused.out == ""
    assert "must hold results of the experiment. Got none of its 4 tasks; run it without --no-run" in refused.error
    ran = tisat(*words, "--only", "Random Guess", "--engine", "inline")
    assert "Difference to" not in ran.out, "the reference is not among them: a head over nothing"
    some = tisat(*words, "--no-run")
    assert (some.code, some.error) == (0, "")
    assert "2 of 4 tasks have no result in" in some.err
    assert "have no result" not in tisat(*words, "--no-run", "--only", "Random Guess").err


@pytest.mark.parametrize(
    ("words", "must"),
    [
        ((), "must be an experiment file"),
        (("tsb-ad",), "must be tsb-ad-m or tsb-ad-u. Got 'tsb-ad' instead"),
        (("--task", "nonsense"), "must be the JSON of a task"),
        ((SMOKE, "--engine", "steam"), "must be one of local, inline, ray. Got 'steam'"),
        ((SMOKE, "--engine", "ray", "--jobs", "0"), "'jobs' parameter of Cluster must be an integer >= 1"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(tmp_path, words, must):
    assert must in tisat("bench", *words, "--store", tmp_path).error


def test_one_task_is_run_here_and_a_failure_shows_its_whole_error(task_of):
    good = tisat("bench", "--task", json.dumps(task_of().to_json()))
    assert (good.code, json.loads(good.out)["status"]) == (0, "done")
    bad = tisat("bench", "--task", json.dumps(task_of("ewma", smoothing=7.0).to_json()))
    assert bad.code == 1
    assert "Traceback" in bad.err
    assert json.loads(bad.out)["status"] == "failed"


def progress(done, failed=0):
    return SimpleNamespace(done=done, failed=["x"] * failed, running={1: "a", 2: "b", 3: "c"}, total=40, left=40 - done - failed, seconds_left=3725.0)  # fmt: skip


def test_a_terminal_has_a_live_line_and_a_log_a_line_now_and_then(terminal, capsys):
    with _progress_line(40) as log:
        for done in range(10):
            log(progress(done))
    assert len(capsys.readouterr().err.splitlines()) == 5, "every second of forty is another twentieth"

    screen = terminal()
    with _progress_line(40) as show:
        show(progress(4, failed=1))
    assert "1 failed" in screen.getvalue()
    assert "running 3: a; b" in screen.getvalue()


def test_time_left_in_words():
    assert [_duration(one) for one in (np.nan, 59.6, 3725.0)] == ["time left unknown", "1 min 00 s left", "1 h 02 min left"]  # fmt: skip


def test_one_rule_less_another_is_minus_the_other_less_the_one(smoke):
    _, evaluation = smoke
    rules = evaluation.experiment.rules[:2] if len(evaluation.experiment.rules) > 1 else ("plain", "excess")
    one = rule_differences(evaluation, against=rules[0], rules=rules, delta_max=evaluation.experiment.delta_max)
    other = rule_differences(evaluation, against=rules[1], rules=rules, delta_max=evaluation.experiment.delta_max)
    assert len(one) == len(other) == len(evaluation.experiment.systems)
    for a, b in zip(one, other, strict=True):
        assert (a.system, a.rule, a.reference) == (b.system, b.reference, b.rule)
        np.testing.assert_allclose(a.pooled, -b.pooled, atol=1e-12)
    reference = evaluation.experiment.reference
    names = {d.system for d in differences(evaluation, reference=reference, rules=rules[:1], delta_max=evaluation.experiment.delta_max)}  # fmt: skip
    assert names == {system.name for system in evaluation.experiment.systems} - {reference}


def test_a_random_baseline_is_beaten_where_the_f1_is_higher_and_its_figures_are_its_own(smoke):
    _, evaluation = smoke
    found = adjusted_figures(evaluation)
    assert {one.system for one in found} == {system.name for system in evaluation.experiment.systems}
    for one in found:
        assert one.beats_random_baseline == (one.oracle_f1 > one.random_baseline_f1)
        assert 0 <= one.precision <= 1
        assert np.isnan(one.spread) == (one.seeds < 2)
    labels = {"plants": [evaluation.labels("plants", entity) for entity in evaluation.entities["plants"]]}
    (random_baseline,) = random_baseline_figures(labels, p=0.2)
    expected = random_guess(labels["plants"], 0.2)
    assert (random_baseline.precision, random_baseline.recall, random_baseline.f1) == (
        expected.precision,
        expected.recall,
        expected.f1,
    )
    assert random_baseline.best_f1 >= random_baseline.f1


def test_the_sweep_draws_every_system_and_the_best_baseline(smoke):
    frozen, evaluation = smoke
    group = sweep_group(frozen, rule=frozen.figures[0].rule)
    assert len(group.panels) == len(evaluation.entities)
    text = json.dumps(group.panels[0], default=vars)
    assert all(system.name in text for system in evaluation.experiment.systems)
    assert "best trivial baseline, same rule" in text


def test_a_folder_is_frozen_again_as_it_was(smoke, tmp_path):
    frozen, _ = smoke
    first = write_frozen(tmp_path / "a", frozen)
    second = write_frozen(tmp_path / "b", read_frozen(first))
    assert {file.name: file.read_bytes() for file in first.iterdir()} == {file.name: file.read_bytes() for file in second.iterdir()}  # fmt: skip
