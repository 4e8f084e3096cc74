"""Write the tables of docs/claims.md and docs/lab/networks.md from the frozen figures, between their pairs of comments.

python docs/claims_table.py
python docs/claims_table.py --pairs    # prints the differences that sentences of section 3 name
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from tisat_bench.frozen import Frozen, read_frozen

ROOT = Path(__file__).resolve().parents[1]
PAGES = {  # by page, the tables it shows
    ROOT / "docs" / "claims.md": ("trained", "five excess", "five threshold", "five paper"),
    ROOT / "docs" / "lab" / "networks.md": ("anchoring", "network"),
}
START, STOP = "<!-- {}: python docs/claims_table.py -->\n\n", "\n<!-- end of {} -->"
RULE, RULES = "excess", ("excess", "threshold", "paper")
SHOWN_AS = {
    "TiSAT, line only": "ridge regression (ours)", "TiSAT, line only, 1 row ahead": "ridge regression, 1 row ahead",
    "TiSAT, line only, 20 rows ahead": "ridge regression, 20 rows ahead", "TiSAT (ours)": "ridge and transformer (ours)",
    "TiSAT (ours), one model per data set": "ridge and transformer, one model per data set",
    "TiSAT (ours), one model per data set, 2,000 steps": "ridge and transformer, one model per data set, 2,000 steps",
    "TiSAT (paper), width 32": "TiSAT's network, width 32", "TiSAT (paper), width 128": "TiSAT's network, width 128",
    "prism": "prism (ours)",
}  # fmt: skip
LEFT_OUT = ("Random Guess", "EWMA 0.01", "linear", "linear, mean anchored", "vector autoregression", "PCA", "ECOD", "spectral residual", "matrix profile", "TiSAT (paper)", "TiSAT (paper), one model per data set")  # fmt: skip
FLOOR = "best baseline"
ANCHORED = ", anchored"
FIRST = ("OCSVM", "IsolationForest", "LOF", "ARIMA", "LSTM", "TiSAT (paper), width 32", "TiSAT (paper), width 128", "TiSAT, line only")  # fmt: skip


def trained() -> Frozen:
    """The networks with all their epochs: those of TiSAT as in the paper, those of the others as in their own presets."""
    ours, others = (read_frozen(ROOT / "experiments" / "frozen" / name) for name in ("tisat_paper", "own_epochs"))
    line = {system["name"] for system in ours.about["systems"]} & {system["name"] for system in others.about["systems"]}
    systems = ours.about["systems"] + [s for s in others.about["systems"] if s["name"] not in line]
    about = {
        **ours.about,
        "systems": sorted(systems, key=lambda s: FIRST.index(s["name"]) if s["name"] in FIRST else len(FIRST)),
    }
    figures = ours.figures + [one for one in others.figures if one.system not in line]
    entities = ours.entities + others.entities
    return replace(
        ours, about=about, figures=figures, differences=ours.differences + others.differences, entities=entities
    )


def table(frozen: Frozen) -> str:
    """One frozen experiment under the excess rule: pooled / mean in percent, and which differ from the reference by an interval without 0."""
    figures = {(one.system, one.dataset): one for one in frozen.figures if one.rule == RULE}
    against = {(one.system, one.dataset): one for one in frozen.differences if one.rule == RULE}
    sets = list(frozen.about["data"])

    def beyond(low: float, high: float) -> str:
        return " (+)" if low > 0 else " (-)" if high < 0 else ""

    def cell(system: str, dataset: str) -> str:
        figure, difference = figures.get((system, dataset)), against.get((system, dataset))
        if figure is None or figure.entities < figure.of:
            return "–"
        one = two = ""
        if difference is not None:
            one, two = beyond(difference.pooled_low, difference.pooled_high), beyond(difference.mean_low, difference.mean_high)  # fmt: skip
        return f"{100 * figure.pooled:.1f}{one} / {100 * figure.mean:.1f}{two}"

    lines = [["system", *(frozen.titles[one] for one in sets)], ["---", *("---:" for _ in sets)]]
    names = [one["name"] for one in frozen.about["systems"] if one["name"] not in LEFT_OUT]
    shown = [name for name in names if any((name, one) in figures for one in sets)]
    lines += [[SHOWN_AS.get(name, name), *(cell(name, one) for one in sets)] for name in shown]
    baselines = {one.dataset: one for one in frozen.figures if one.rule == RULE and one.entities == one.of}
    lines.append(
        [
            FLOOR,
            *(f"{100 * baselines[one].baseline_score:.1f} / {100 * baselines[one].baseline_mean:.1f}" for one in sets),
        ]
    )
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def anchoring() -> str:
    """Every network with plain windows and with windows measured from their own mean, excess rule: pooled / mean in percent."""
    frozen = read_frozen(ROOT / "experiments" / "frozen" / "paper_systems")
    figures = {(one.system, one.dataset): one for one in frozen.figures if one.rule == RULE}
    sets = list(frozen.about["data"])
    names = [one["name"].removesuffix(ANCHORED) for one in frozen.about["systems"] if one["name"].endswith(ANCHORED)]

    def cell(system: str, dataset: str) -> str:
        one = figures.get((system, dataset))
        return "–" if one is None or one.entities < one.of else f"{100 * one.pooled:.1f} / {100 * one.mean:.1f}"

    lines = [["system", *(f"{frozen.titles[one]}, {how}" for one in sets for how in ("plain", "anchored"))]]
    lines.append(["---", *("---:" for _ in lines[0][1:])])
    lines += [[name, *(cell(name + how, one) for one in sets for how in ("", ANCHORED))] for name in names]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def difference(gains: Sequence[float]) -> str:
    """The mean of paired differences in points, with its interval over entities."""
    gain = 100 * np.array(gains)
    gain = gain[~np.isnan(gain)]
    draws = gain[np.random.default_rng(0).integers(len(gain), size=(10_000, len(gain)))].mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    return f"{gain.mean():+.1f} [{low:+.1f}, {high:+.1f}]"


def pairs() -> str:
    """The differences that sentences of section 3 name, one line each."""
    narrow, wide = (("tisat_paper", f"TiSAT (paper), width {width}") for width in (32, 128))
    each, released = (("table2", f"TiSAT ({name})") for name in ("paper", "released"))
    asked = [(wide, narrow, rule) for rule in ("excess", "threshold")] + [(each, narrow, "excess")]
    asked += [(released, other, "excess") for other in (("own_epochs", "TiSAT, line only"), ("table2", "TiSAT, line only"), ("table2", "OCSVM"))]  # fmt: skip
    lines = []
    for one, other, rule in asked:
        for dataset in ("msl", "smap", "smd"):
            first, second = (
                {
                    row.entity: row.spd
                    for row in read_frozen(ROOT / "experiments" / "frozen" / name).entities
                    if (row.system, row.dataset, row.rule) == (system, dataset, rule)
                }
                for name, system in (one, other)
            )
            gain = difference([first[entity] - second[entity] for entity in first])
            lines.append(f"{dataset}, {rule}: {one[1]} less {other[1]} ({other[0]}) {gain}")
    return "\n".join(lines)


def five(rule: str) -> str:
    """TiSAT's network less each system the paper compares it with: mean SPD in points, 95 % interval of a bootstrap over entities."""
    frozen, networks = trained(), {"": FIRST[5], ", width 128": FIRST[6]}
    if rule == "paper":  # with 1, 3 and 2 of the paper's 4 epochs on SMD, MSL and SMAP
        frozen, networks = read_frozen(ROOT / "experiments" / "frozen" / "table2"), {"": LEFT_OUT[-1]}
    spd = {(one.dataset, one.system, one.entity): one.spd for one in frozen.entities if one.rule == rule}
    sets = [one for one in ("msl", "smap", "smd") if one in frozen.about["data"]]
    columns = [(one, how) for one in sets for how in networks if any((one, networks[how]) == key[:2] for key in spd)]

    def cell(system: str, dataset: str, network: str) -> str:
        names = [entity for of, whose, entity in spd if of == dataset and whose == network]
        return difference([spd[dataset, network, name] - spd[dataset, system, name] for name in names])

    lines = [["TiSAT's network less", *(frozen.titles[one] + how for one, how in columns)], ["---", *("---:" for _ in columns)]]  # fmt: skip
    lines += [[name, *(cell(name, one, networks[how]) for one, how in columns)] for name in FIRST[:5]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def written(page: str, names: Sequence[str]) -> str:
    """The page with its tables made anew."""
    makers = {"trained": trained, "anchoring": anchoring, **{f"five {rule}": partial(five, rule) for rule in RULES}}
    for name in names:
        made = makers[name]() if name in makers else read_frozen(ROOT / "experiments" / "frozen" / name)
        content = made if isinstance(made, str) else table(made)
        start, stop = START.format(name), STOP.format(name)
        page = re.sub(
            re.escape(start) + ".*?" + re.escape(stop), lambda _, t=start + content + stop: t, page, flags=re.S
        )  # type: ignore[misc]
    return page


if __name__ == "__main__":
    if "--pairs" in sys.argv[1:]:
        print(pairs())
        sys.exit()
    for path, names in PAGES.items():
        path.write_text(written(path.read_text(), names))
