"""Write what the demo says into the README: its words and its table, between the two pairs of comments.

python docs/readme_demo.py
"""

from __future__ import annotations

import re
from pathlib import Path

from tisat.plotting.demo_page import SCORE_COLUMNS, key_figures, run_demo, score_rows
from tisat.plotting.page import format_cell

README = Path(__file__).resolve().parents[1] / "README.md"
MARKS = ("<!-- demo, {}: python docs/readme_demo.py -->\n\n", "\n<!-- end of demo -->")


def replaced(text: str, part: str, content: str) -> str:
    """The page with another content of one part."""
    start, stop = MARKS[0].format(part), MARKS[1]
    return re.sub(re.escape(start) + ".*?" + re.escape(stop), lambda _: start + content + stop, text, flags=re.S)


def main() -> None:
    """Run the demo and write both parts."""
    done = run_demo(say=print)
    words = "".join(f"> {sentence}\n" for sentence in key_figures(done))
    rows = [[format_cell(value) for value in row] for row in score_rows(done)]
    best = max(range(len(rows)), key=lambda row: score_rows(done)[row][3] if rows[row][3] != "–" else -1.0)
    rows[best][3] = f"**{rows[best][3]}**"
    lines = [SCORE_COLUMNS, ("---", "---:", "---:", "---:"), *rows]
    table = "".join(f"| {' | '.join(row)} |\n" for row in lines)
    README.write_text(replaced(replaced(README.read_text(), "words", words), "table", table))


if __name__ == "__main__":
    main()
