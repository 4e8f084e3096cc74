"""The detector of CONTRIBUTING.md, from its own text."""

import re
from pathlib import Path
from typing import Any

_TEXT = (Path(__file__).resolve().parents[4] / "CONTRIBUTING.md").read_text()
_SPACE = {"__name__": __name__}
_FOUND = re.search(r"`packages/tisat/src/tisat/detectors/distance\.py`:\n\n```py\n(.*?)```", _TEXT, flags=re.S)
assert _FOUND is not None, "CONTRIBUTING.md shows a detector"
exec(_FOUND[1], _SPACE)
Distance: Any = _SPACE["Distance"]
