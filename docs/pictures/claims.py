"""The chart of the claims page, from the frozen figures of the trained systems: how far each is from a ridge regression, with its interval.

python docs/pictures/claims.py
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from tisat.utils.palette import ALARM, FOUND, INK, SOFT
from tisat_bench.frozen import read_frozen

HERE = Path(__file__).parent
FROZEN = HERE.parents[1] / "experiments" / "frozen"
RULE = "excess"
SYSTEMS = (
    "IsolationForest", "DAGMM", "Deep-SVDD", "THOC", "BeatGAN", "OmniAnomaly", "LSTM-VAE", "Anomaly Transformer", "InterFusion",
    "TiSAT (paper), width 32", "TiSAT (paper), width 128", "DeepAnT", "LSTM", "LOF", "ARIMA", "OCSVM", "prism",
)  # fmt: skip


def main() -> None:
    """Draw one panel for each data set; a line is the 95 % interval of the difference of the mean SPD."""
    paper, others = read_frozen(FROZEN / "tisat_paper"), read_frozen(FROZEN / "own_epochs")
    found = [*paper.differences, *others.differences]
    known = {(one.system, one.dataset): one for one in found if one.rule == RULE}
    sets = list(paper.about["data"])
    figure = Figure(figsize=(9.0, 4.6), layout="constrained")
    for axis, dataset in zip(figure.subplots(1, len(sets), sharey=True), sets, strict=True):
        for place, system in enumerate(SYSTEMS):
            one = known.get((system, dataset))
            if one is None:
                continue
            colour = ALARM if one.mean_high < 0 else FOUND if one.mean_low > 0 else SOFT
            axis.plot([100 * one.mean_low, 100 * one.mean_high], [place, place], color=colour, linewidth=1.4)
            axis.plot(100 * one.mean, place, "o", color=colour, markersize=4)
        axis.axvline(0.0, color=INK, linewidth=0.8)
        axis.set_title(dataset.upper(), fontsize=10, color=INK)
        axis.set_xlabel("points of mean SPD", fontsize=9)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_yticks(
        range(len(SYSTEMS)), [name.replace("TiSAT (paper)", "TiSAT's network") for name in SYSTEMS], fontsize=8
    )
    figure.savefig(HERE / "claims.png", dpi=200, metadata={"Software": None})


if __name__ == "__main__":
    main()
