"""``--help``: an example for each verb, options in groups, no path into the source, nothing wider than a terminal."""

import re

import pytest

from tisat.cli import VERBS, build, load_verb
from tisat.cli.help_texts import EXAMPLES
from tisat.errors import MissingExtraError


def installed(name):
    try:
        return load_verb(name) is not None
    except MissingExtraError:
        return False


def help_of(capsys, monkeypatch, *words):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(SystemExit):
        build(words[0])(args=[*words, "--help"])
    return capsys.readouterr().out


def test_every_verb_has_an_example():
    assert list(EXAMPLES) == list(VERBS)


@pytest.mark.parametrize("name", [name for name in VERBS if installed(name)])
def test_the_help_of_a_verb_is_for_people(name, capsys, monkeypatch):
    text = help_of(capsys, monkeypatch, name)
    assert max(map(len, text.splitlines())) <= 80
    assert f"Example: {EXAMPLES[name][:40]}" in " ".join(text.split())
    assert name == "tables" or not re.search(r"docs/|\.md\b", text), "tables writes the pages of the source"
    assert not re.search(r"[\U0001F000-\U0001FAFF]", text), "rich made an emoji of :up:"


@pytest.mark.parametrize("name", [name for name in VERBS if installed(name)])
def test_the_example_of_a_verb_can_be_typed(name):
    import shlex

    from typer.main import get_command

    words = shlex.split(EXAMPLES[name].rpartition("| ")[2])
    assert words[:2] == ["tisat", name]
    command = get_command(build(name)).commands[name]
    command.make_context(name, words[2:])  # parsed, not run


def test_options_stand_in_groups(capsys, monkeypatch):
    text = help_of(capsys, monkeypatch, "alarm")
    assert [
        group
        for group in ("Options", "Budget and alarms", "Output", "Many machines", "Reading files")
        if f"─ {group} ─" not in text
    ] == []
    assert text.index("--budget") > text.index("─ Budget and alarms")
    assert text.index("--time-format") > text.index("─ Reading files")
