"""``verify`` and the ``tisat data`` verbs: what is missing, what differs, and what that means."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from tisat_bench.cli import data as cli
from tisat_bench.datasets import card, verification, verify


@pytest.fixture
def run(monkeypatch):
    monkeypatch.delenv("TISAT_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def problems(result) -> dict[str, str]:
    return {finding.path: finding.problem for finding in result.findings}


def test_what_is_missing_is_named_file_by_file(smd):
    found = problems(verify("smd", smd))
    assert found["train/machine-1-2.txt"] == "missing"
    assert found["train/machine-1-1.txt"] == "different"  # our own numbers, not the publisher's


def test_changed_bytes_are_seen_by_checksum_and_by_size(psm, monkeypatch):
    file = psm / "PSM" / "test_label.csv"
    published = replace(card("psm").files[2], size=None)
    known = replace(card("psm"), files=(replace(published, checksum=published.digest(file)),))
    monkeypatch.setattr(verification, "read_card", lambda _: known)
    assert "test_label.csv" not in problems(verify("psm", psm))
    changed = file.read_text().replace("101.0,0", "101.0,1")
    file.write_text(changed)
    result = verify("psm", psm)
    assert problems(result)["test_label.csv"] == "different"
    assert any("git checksum must be" in finding.what for finding in result.findings)
    monkeypatch.setattr(verification, "read_card", lambda _: replace(known, files=(replace(published, size=3),)))
    assert any("must have 3 bytes" in finding.what for finding in verify("psm", psm).findings)


def test_row_counts_that_differ_from_the_published_are_said(psm):
    result = verify("psm", psm)
    assert (result.entities, result.train_rows, result.test_rows) == (1, 12, 10)
    what = " ".join(finding.what for finding in result.findings)
    assert "train split must have 132,481 rows as published. Got 12" in what
    assert "test split must have 87,841 rows as published. Got 10" in what
    assert "not comparable" in result.summary(card("psm"))


def test_unreadable_values_are_findings_not_failures(swat):
    file = swat / "SWaT" / "SWaT_Dataset_Normal_v1.csv"
    file.write_bytes(b"\x00\x01")
    result = verify("swat", swat)
    assert problems(result)["swat"] == "unreadable"
    assert result.entities == 0


def test_swat_is_compared_with_the_version_that_is_there(swat):
    (swat / "SWaT" / "SWaT_Dataset_Normal_v1.csv").unlink()
    assert any("must have 496,800 rows" in finding.what for finding in verify("swat", swat).findings)


def test_values_can_be_left_unread(smd):
    (smd / "ServerMachineDataset" / "train" / "machine-1-1.txt").write_bytes(b"\x00")
    assert "unreadable" not in [f.problem for f in verify("smd", smd, values=False).findings if f.path == "machine-1-1"]


def test_an_absent_folder_is_one_finding(tmp_path):
    result = verify("psm", tmp_path)
    assert [finding.problem for finding in result.findings] == ["missing"]
    assert not result.complete


def test_list_says_what_is_here(run, smd):
    shown = json.loads(run("list", "--data", smd, "--json").stdout)["sets"]
    here = {row["name"]: row["here"] for row in shown}
    assert here == {"smd": "2 of 28", "msl": "none", "smap": "none", "swat": "none", "psm": "none"}
    assert "smd" in run("list", "--data", smd).stdout


@pytest.mark.parametrize("name", ["smd", "msl", "smap", "swat", "psm"])
def test_show_prints_the_card(run, name):
    text = " ".join(run("show", name).stdout.split())
    known = card(name)
    assert known.source in text
    assert " ".join(known.problems[0].split()) in text
    assert json.loads(run("show", name, "--json").stdout)["events"] == known.events


def test_show_takes_the_path_of_your_own_files(run, tmp_path):
    (tmp_path / "pump.csv").write_text("timestamp,a,label\n" + "".join(f"{t},{t},{int(t == 7)}\n" for t in range(10)))
    shown = json.loads(run("show", tmp_path / "pump.csv", "--train", "0.5", "--json").stdout)
    assert shown["entities"] == [
        {"entity": "pump", "channels": 1, "train_rows": 5, "test_rows": 5, "missing_values": 0, "gaps": 0, "events": 1}
    ]
    assert "pump" in run("show", tmp_path / "pump.csv", "--train", "5").stdout


def test_verify_exits_with_1_and_names_the_files(run, smd):
    result = run("verify", "smd", "--data", smd, "--no-values")
    assert result.exit_code == 1
    assert "missing    train/machine-1-2.txt" in result.stdout
    document = json.loads(run("verify", "smd", "--data", smd, "--json").stdout)
    assert document["complete"] is False
    assert {"path", "problem", "what"} <= set(document["findings"][0])


def test_download_of_swat_prints_how_to_ask(run, tmp_path):
    result = run("download", "swat", "--data", tmp_path)
    assert result.exit_code == 0
    assert "Ask iTrust" in result.stdout
    assert list(tmp_path.iterdir()) == []
