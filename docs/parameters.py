"""Write the parameter table of every detector's page, and of every alarm rule, from the declarations: ``python docs/parameters.py``.

``packages/tisat/tests/test_parameters.py`` fails where a page and a declaration differ.
"""

from __future__ import annotations

import re
from pathlib import Path

from tisat import registry
from tisat.alarms.rules import RULES
from tisat.utils.parameters import parameter_table

HERE = Path(__file__).parent
BEGIN, END = "<!-- parameters: python docs/parameters.py -->", "<!-- end of parameters -->"


def tables() -> dict[Path, str]:
    """Page -> what stands between its marks."""
    pages = {HERE / "detectors" / f"{name}.md": parameter_table(registry.resolve(name)) for name in registry.names()}
    rules = (f"`{name}`:\n\n{parameter_table(cls)}" for name, cls in RULES.items())
    return {**pages, HERE / "4-alarms.md": "\n\n".join(rules)}


def with_table(text: str, table: str) -> str:
    """A page with its table, in a section at its end where it has no marks yet."""
    block = f"{BEGIN}\n\n{table}\n\n{END}"
    if BEGIN in text:
        return re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda match: block, text, flags=re.DOTALL)
    return f"{text.rstrip()}\n\n## Parameters\n\n{block}\n"


if __name__ == "__main__":
    for page, table in tables().items():
        if page.is_file():
            page.write_text(with_table(page.read_text(encoding="utf-8"), table), encoding="utf-8")
