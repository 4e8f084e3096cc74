"""Experiment files: what they become, and what is refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tisat.errors import InputError, ParameterError
from tisat_bench.experiment import read_experiment
from tisat_bench.frozen import FILES, Frozen
from tisat_bench.task import fingerprint, make_task

EXPERIMENTS = sorted((Path(__file__).parents[4] / "experiments").glob("*.toml"))
SMALL = """
seeds = [0, 1]
[[data]]
name = "plants"
entities = ["plant-0", "plant-4"]
[[system]]
name = "forest"
detector = "isolation-forest"
[[system]]
name = "narrow"
detector = "pca"
params = { window = 4 }
entities = { plants = ["plant-4"] }
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "small.toml"
    file.write_text(text)
    return file


def test_a_file_becomes_tasks_seed_by_seed_and_deterministic_systems_once(tmp_path):
    plan = read_experiment(written(tmp_path, SMALL))
    tasks = list(plan.tasks())
    for task, given in zip(tasks, [{}] * 4 + [{"window": 4}], strict=True):
        alone = make_task(
            dataset="plants", entity=task.entity, detector=task.detector, params=given, seed=task.seed,
            fingerprint=fingerprint(*plan.sources["plants"].pair(task.entity)),
        )  # fmt: skip
        assert (task, task.id) == (alone, alone.id)
    assert [(t.detector, t.entity, t.seed) for t in tasks] == [
        ("isolation-forest", "plant-0", 0),
        ("isolation-forest", "plant-4", 0),
        ("isolation-forest", "plant-0", 1),
        ("isolation-forest", "plant-4", 1),
        ("pca", "plant-4", None),
    ]
    assert dict(tasks[-1].params)["window"] == 4
    assert [t.id for t in plan.tasks()] == [t.id for t in tasks]


def test_only_some_systems_by_name_or_detector(tmp_path):
    plan = read_experiment(written(tmp_path, SMALL))
    assert [s.name for s in plan.restricted(["pca"]).systems] == ["narrow"]
    assert [s.name for s in plan.restricted(["forest"]).systems] == ["forest"]
    with pytest.raises(ParameterError, match=r"must have a system 'frest'.* Did you mean 'forest'"):
        plan.restricted(["frest"])


def test_systems_can_come_from_another_file_and_options_of_a_rule_are_part_of_the_task(tmp_path):
    base = read_experiment(written(tmp_path, SMALL))
    (tmp_path / "table.toml").write_text('systems = "small.toml"\ndelta_max = 7\n[rule.paper]\nmax_points = 50\n')
    plan = read_experiment(tmp_path / "table.toml")
    assert plan.delta_max == 7
    assert len(list(plan.tasks())) == 5
    assert {t.id for t in plan.tasks()}.isdisjoint(t.id for t in base.tasks())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = ", "must be a TOML file"),
        ("delta = 3" + SMALL, "Got 'delta' instead"),
        ("deltamax = 3" + SMALL, "Did you mean 'delta_max'"),
        (SMALL + 'colour = "red"', "Got 'colour' instead"),
        (SMALL.replace("plants", "plnts"), "data.name"),
        ('kind = "spdd"' + SMALL, "'kind' parameter"),
        ("delta_max = 0" + SMALL, "'delta_max' parameter"),
        ('rules = ["cusum"]' + SMALL, "'rules' parameter"),
        (SMALL.replace('"narrow"', '"forest"'), r"Got 'forest' twice; give one of them another name"),
        (SMALL.replace("[[data]]", "[data]"), r"Each 'data' in .* must begin with \[\[data\]\]"),
        (SMALL.replace('detector = "pca"', ""), "must name its detector"),
        (SMALL.replace("{ plants =", "{ smd ="), "must be run on data sets of the file"),
        ('reference = "narow"' + SMALL, "'reference' parameter .* Got 'narow' instead. Did you mean 'narrow'"),
        ("seeds = [-1]\n", "'seeds' parameter"),
        ("title = 'nothing'\n", "must have data sets"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence(tmp_path, text, sentence):
    with pytest.raises((InputError, ParameterError), match=sentence):
        read_experiment(written(tmp_path, text))


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="File not found"):
        read_experiment("no/such.toml")


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_our_own_files_are_read(file):
    plan = read_experiment(file, data="nowhere")
    assert plan.title
    assert plan.kind != "spd" or plan.reference in {system.name for system in plan.systems}


def test_titles_and_sentences_for_captions_are_those_of_the_file(tmp_path):
    text = '[said]\ncost = "Timed at night."\n\n[[data]]\npath = "mill"\ntitle = "The mill"\n\n[[data]]\nname = "fan"\npath = "fans"\n'
    (tmp_path / "e.toml").write_text(text)
    plan = read_experiment(tmp_path / "e.toml")
    assert plan.said == {"cost": "Timed at night."}
    frozen = Frozen({"titles": plan.titles}, **{name: [] for name in FILES})
    assert [frozen.titles[name] for name in ("mill", "fan", "smd")] == ["The mill", "fan", "SMD"]
