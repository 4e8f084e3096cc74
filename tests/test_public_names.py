"""The interface is frozen: what is public, and how it is called, is a file that changes on purpose."""

import difflib
import importlib.util
from pathlib import Path

spec = importlib.util.spec_from_file_location("public_api", Path(__file__).with_name("public_api.py"))
public_api = importlib.util.module_from_spec(spec)
spec.loader.exec_module(public_api)


def test_public_names_and_signatures_are_those_of_the_file():
    kept, now = public_api.FILE.read_text(), public_api.public_names()
    changed = "\n".join(difflib.unified_diff(kept.splitlines(), now.splitlines(), "before", "now", lineterm="", n=0))
    assert kept == now, f"{changed}\nOn purpose? python tests/public_api.py, and a line in the changelog."


def test_no_address_or_annotation_gets_into_the_file():
    assert " at 0x" not in public_api.public_names()
    assert "tisat.Watch(detector='prism', *, budget=None" in public_api.public_names()
