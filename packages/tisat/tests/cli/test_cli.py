"""The command line as a user meets it: exit codes, one sentence for bad input, JSON for machines."""

import json
import os
import subprocess
import sys

import pytest

from tisat import __version__
from tisat.cli import main


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "tisat", *arguments], capture_output=True, text=True, check=False)


def code_of(arguments):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    return stopped.value.code


def test_version():
    found = run("--version")
    assert (found.returncode, found.stdout.strip()) == (0, f"tisat {__version__}")


def test_no_arguments_show_the_verbs_in_flow_order():
    found = run()
    verbs = ["data", "fit", "score", "alarm", "evaluate", "audit", "bench", "demo"]
    where = [found.stdout.find(f"  {verb} ") for verb in verbs]
    assert -1 not in where
    assert where == sorted(where)


@pytest.mark.parametrize("arguments", [["nonsense"], ["detectors", "--nonsense"]])
def test_wrong_usage_is_2(arguments, capsys):
    assert code_of(arguments) == 2


def test_bad_input_is_1_and_one_sentence(tmp_path):
    found = run("show", str(tmp_path / "none.tisat"))
    assert found.returncode == 1
    assert found.stdout == ""
    assert found.stderr.startswith("tisat: File not found: ")
    assert found.stderr.count("\n") == 1, "one sentence, no traceback"


def test_json_is_json(capsys):
    assert code_of(["detectors", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"name": "random-guess", "what": "Independent uniform scores: what a random baseline gets."} in rows


def test_a_reader_that_leaves_is_no_error():
    read, write = os.pipe()
    os.close(read)
    found = subprocess.run(
        [sys.executable, "-m", "tisat", "detectors", "--json"], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert b"Traceback" not in found.stderr


def test_completion_is_offered():
    assert "--install-completion" in run("--help").stdout


def test_a_narrow_table_loses_no_text(capsys, monkeypatch):
    from tisat.cli.output import print_table

    monkeypatch.setenv("COLUMNS", "40")
    print_table("t", ("first", "second"), [("a", "2026-01-13 08:00:00"), ("b", "x" * 60)])
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert shown.count("x") == 60
