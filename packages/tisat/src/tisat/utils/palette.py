"""One set of colours and words for alarms, faults and baseline scores: pictures, pages, the console and the terminal take them from here.

A colour means one thing everywhere. Pages get them as CSS variables, one set for light and one for dark paper, and paper in a
printer is light. It draws nothing.
"""

from __future__ import annotations

from typing import Final

INK: Final = "#1d2330"  # values as they were seen
SOFT: Final = "#5d6675"  # axes, captions
LINE: Final = "#d9dde4"  # grids, borders
PAPER: Final = "#ffffff"
ALARM: Final = "#c0392b"  # an alarm was on; a false alarm; the threshold
FOUND: Final = "#23704a"  # a fault that was found
MISSED: Final = "#111111"  # a fault that was missed
FAULT: Final = "#7f8fa6"  # a labelled fault, where nothing is said of its finding
EXPECTED: Final = "#1f6fb2"  # what a detector expected; scores that are judged
BASELINE: Final = "#8a8f98"  # what a trivial baseline gets
ONSET: Final = "#8a5a12"  # since when, as far as the statistic can tell
FALSE: Final = ALARM
# Curves of several systems in one picture, in this order; told apart also by people who see no difference of red and green.
CURVES: Final = ("#1f6fb2", "#b7791f", "#6b5aa8", "#23704a", "#c0392b", "#5d6675", "#0f8b8d", "#8e5572")

LIGHT: Final = {
    "ink": INK, "soft": SOFT, "line": LINE, "paper": PAPER, "mark": "#f3f5f8", "alarm": ALARM, "found": FOUND, "missed": MISSED,
    "fault": FAULT, "curve": EXPECTED, "baseline": BASELINE, "onset": ONSET, "shade": "rgba(192, 57, 43, .14)", "truth": "rgba(127, 143, 166, .3)",
    "good": "rgba(35, 112, 74, .16)", "gone": "rgba(17, 17, 17, .14)", "band": "rgba(31, 111, 178, .16)",
    **{f"c{i}": colour for i, colour in enumerate(CURVES)},
}  # fmt: skip
DARK: Final = {
    "ink": "#e6e9ef", "soft": "#9aa4b5", "line": "#363d4a", "paper": "#14171d", "mark": "#1f242d", "alarm": "#ff7a6b", "found": "#62c38d",
    "missed": "#ffffff", "fault": "#a0afc8", "curve": "#6db5f2", "baseline": "#9aa0aa", "onset": "#e2b25b", "shade": "rgba(255, 122, 107, .18)",
    "truth": "rgba(160, 175, 200, .25)", "good": "rgba(98, 195, 141, .2)", "gone": "rgba(255, 255, 255, .2)", "band": "rgba(90, 170, 240, .2)",
    **dict(zip((f"c{i}" for i in range(len(CURVES))),
               ("#6db5f2", "#e2b25b", "#a99be6", "#62c38d", "#ff7a6b", "#9aa4b5", "#4fc4c6", "#d29ab8"), strict=True)),
}  # fmt: skip

# What a colour is called beside a picture.
WORDS: Final = {
    "found": "fault found",
    "missed": "fault missed",
    "false": "false alarm",
    "alarm": "alarm",
    "true": "alarm during a fault",
    "fault": "labelled fault",
    "baseline": "what a trivial baseline gets",
}


# The same in a terminal, whose paper may be light or dark: its own colours, by name.
TERMINAL: Final = {"found": "green", "missed": "bold", "false": "red", "alarm": "red", "baseline": "bright_black"}


def tone(cell: str) -> str:
    """The colour class of a table cell, by its first word; empty where none.

    Examples
    --------
    >>> tone("found at once"), tone("missed: no alarm"), tone("false alarm"), tone("trivial baseline: random"), tone("flow")
    ('found', 'missed', 'false', 'baseline', '')
    """
    first = cell.removeprefix("trivial ").partition(" ")[0].rstrip(":,;")
    return first if first in ("found", "missed", "false", "baseline") else ""


def css() -> str:
    """The colours as CSS variables: light, dark where the reader's screen is, light again on paper.

    Examples
    --------
    >>> "--alarm: #c0392b" in css(), "prefers-color-scheme: dark" in css()
    (True, True)
    """

    def block(colours: dict[str, str]) -> str:
        return " ".join(f"--{name}: {colour};" for name, colour in colours.items())

    return (
        f":root {{ color-scheme: light dark; {block(LIGHT)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {block(DARK)} }} }}\n"
        f":root[data-printed] {{ color-scheme: light; {block(LIGHT)} }}\n"
        f"@media print {{ :root {{ color-scheme: light; {block(LIGHT)} }} }}"
    )
