"""The chart of the budgets page, from the table on that page: false alarms as a share of what was asked for.

python docs/pictures/budgets.py
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tisat.utils.palette import ALARM, FAULT, FOUND, INK

HERE = Path(__file__).parent
ROW = re.compile(r"^\| ([\w ]+) \| 1/(1000|10000) \| ([\d.]+)\*? \(([\d.]+)\) \|", re.M)


def main() -> None:
    """Draw two panels, one a budget: the default, and a threshold that stays."""
    rows = ROW.findall((HERE.parent / "budgets.md").read_text(encoding="utf-8"))
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    for axis, budget in zip(figure.subplots(1, 2, sharey=True), ("1000", "10000"), strict=True):
        some = [(name, float(follows), float(stays)) for name, rate, follows, stays in rows if rate == budget]
        places = np.arange(len(some))
        axis.bar(places - 0.2, [one[1] for one in some], 0.4, color=FOUND, label="follows the alarms (default)")
        axis.bar(places + 0.2, [one[2] for one in some], 0.4, color=FAULT, label="stays")
        axis.axhline(1.0, color=ALARM, linewidth=1.0)
        axis.set_xticks(places, [one[0] for one in some], rotation=30, ha="right", fontsize=9)
        axis.set_title(f"1 in {int(budget):,} rows asked for", fontsize=10, color=INK)
        axis.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("false alarms / allowed", fontsize=9)
    figure.axes[0].legend(frameon=False, fontsize=9, loc="upper left")
    figure.savefig(HERE / "budgets.png", dpi=200, metadata={"Software": None})


if __name__ == "__main__":
    main()
