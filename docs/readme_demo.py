"""Write what the demo prints into the README, between the two comments.

python docs/readme_demo.py
"""

from __future__ import annotations

import re
from pathlib import Path

from tisat.plotting.demo_page import key_figures, run_demo

README = Path(__file__).resolve().parents[1] / "README.md"
MARKS = ("<!-- demo, {}: python docs/readme_demo.py -->\n\n", "\n<!-- end of demo -->")


def replaced(text: str, part: str, content: str) -> str:
    """The page with another content of one part."""
    start, stop = MARKS[0].format(part), MARKS[1]
    return re.sub(re.escape(start) + ".*?" + re.escape(stop), lambda _: start + content + stop, text, flags=re.S)


def main() -> None:
    """Run the demo and write its words."""
    done = run_demo(say=print)
    words = "".join(f"> {sentence}\n" for sentence in key_figures(done))
    README.write_text(replaced(README.read_text(), "words", words))


if __name__ == "__main__":
    main()
