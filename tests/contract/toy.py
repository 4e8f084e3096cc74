"""The detector of CONTRIBUTING.md, from its own text."""

import re
from pathlib import Path

_TEXT = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text()
_SPACE = {"__name__": __name__}
exec(re.search(r"`src/tisat/detectors/distance\.py`:\n\n```py\n(.*?)```", _TEXT, flags=re.S)[1], _SPACE)
Distance = _SPACE["Distance"]
