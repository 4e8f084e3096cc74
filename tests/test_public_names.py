"""The interface is frozen: what is public, and how it is called, is a file that changes on purpose."""

import difflib
import importlib.util
import re
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


SAID = {"series", "budget", "false_alarms", "y_true", "y_score", "timestamps", "labels"}  # every user passes these


def test_no_public_signature_says_any():
    vague = [
        f"{name}({argument}: {kind})"
        for name, function in public_api.public_functions()
        for argument, kind in function.__annotations__.items()
        if re.search(r"\bAny\b", str(kind)) or (argument in SAID and str(kind) == "object")
    ]
    assert not vague, "give it a type a reader can use"
