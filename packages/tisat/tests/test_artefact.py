import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from tisat.detectors import RandomGuess
from tisat.detectors.loading import load
from tisat.errors import ArtefactError
from tisat.persistence import model_file as artefact

TRAIN = np.arange(30.0).reshape(10, 3)


@pytest.fixture
def model(tmp_path):
    file = tmp_path / "model.tisat"
    RandomGuess(random_state=1).fit(TRAIN).save(file)
    return file


def test_what_is_written_is_read(tmp_path):
    document, tensors = {"kind": "x", "n": [1, 2.5, None]}, {"a": np.arange(6.0).reshape(2, 3), "b": np.array(3)}
    artefact.write_artefact(tmp_path / "x", document, tensors)
    found, arrays = artefact.read_artefact(tmp_path / "x")
    assert found == document
    assert {name: (a.dtype, a.shape, a.tolist()) for name, a in arrays.items()} == {
        name: (a.dtype, a.shape, a.tolist()) for name, a in tensors.items()
    }
    assert [p.name for p in tmp_path.iterdir()] == ["x"], "no temporary file stays behind"


def test_every_truncation_is_an_error(model):
    whole = model.read_bytes()
    for length in range(0, len(whole), 7):
        model.write_bytes(whole[:length])
        with pytest.raises(ArtefactError):
            load(model)


@settings(max_examples=150)
@given(data=st.data())
def test_every_changed_byte_is_an_error(tmp_path_factory, data):
    file = tmp_path_factory.mktemp("m") / "model.tisat"
    RandomGuess().fit(TRAIN).save(file)
    content = bytearray(file.read_bytes())
    where = data.draw(st.integers(0, len(content) - 1))
    content[where] ^= data.draw(st.integers(1, 255))
    file.write_bytes(bytes(content))
    with pytest.raises(ArtefactError):
        load(file)


def test_foreign_files_are_refused(tmp_path):
    save_file({"a": np.zeros(2)}, tmp_path / "foreign")
    with pytest.raises(ArtefactError, match="must be written by tisat"):
        load(tmp_path / "foreign")
    with pytest.raises(ArtefactError, match="File not found"):
        load(tmp_path / "nothing")
    (tmp_path / "x.csv").write_text("time,a\n" + "2026-01-01,1\n" * 9)
    with pytest.raises(ArtefactError, match=r"written by tisat fit; this one is truncated or foreign\.$"):
        load(tmp_path / "x.csv")


def test_an_unknown_detector_is_refused(tmp_path):
    document = {"kind": "detector", "detector": "os.system", "params": {}, "state": {}}
    artefact.write_artefact(tmp_path / "x", document, {})
    with pytest.raises(ArtefactError, match=r"registered detector\. Got 'os.system'"):
        load(tmp_path / "x")


@pytest.mark.parametrize(
    "change",
    [{"params": {"nonsense": 1}}, {"state": {"__class__": 1}}, {"state": {"fit": 1}}],
)
def test_a_file_that_does_not_fit_the_class_is_refused(tmp_path, model, change):
    document, tensors = artefact.read_artefact(model)
    artefact.write_artefact(tmp_path / "x", {**document, **change}, tensors)
    with pytest.raises(ArtefactError, match=r"RandomGuess|attribute"):
        load(tmp_path / "x")


def test_a_newer_format_is_refused(model, monkeypatch, tmp_path):
    monkeypatch.setattr(artefact, "FORMAT_VERSION", 99)
    artefact.write_artefact(tmp_path / "x", {"kind": "detector"}, {})
    monkeypatch.undo()
    with pytest.raises(ArtefactError, match=r"version <= 2\. Got 99 instead: update tisat"):
        load(tmp_path / "x")


def test_load_makes_the_class_that_was_saved(model):
    assert isinstance(load(model), RandomGuess)


def test_a_failed_write_leaves_the_old_file(model):
    before = model.read_bytes()
    with pytest.raises(ArtefactError, match="plain values"):
        artefact.write_artefact(model, {"x": object()}, {})
    with pytest.raises(ArtefactError, match="plain values"):
        artefact.write_artefact(model, {"x": float("nan")}, {})
    assert model.read_bytes() == before
    assert len(list(model.parent.iterdir())) == 1


def test_the_document_can_be_read_without_tisat(model):
    from safetensors import safe_open

    with safe_open(model, framework="numpy") as opened:
        document = json.loads(opened.metadata()["document"])
    assert document["detector"] == "random-guess"
    assert document["params"] == {"random_state": 1}
