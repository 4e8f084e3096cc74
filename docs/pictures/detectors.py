"""The picture and the cost of every detector's page, made by the example on the page itself.

    python docs/pictures/detectors.py             every detector: docs/detectors/pictures/NAME.png and the line below the cost's mark
    python docs/pictures/detectors.py pca lof     some of them

The example is run as it stands; it leaves ``plant``, ``detector`` and ``scores``. Scores are drawn in units of their 99 % quantile on normal
rows, so that pictures of different detectors can be laid side by side.
"""

import argparse
import importlib.util
import io
import re
import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from tisat import registry
from tisat.utils.palette import ALARM, EXPECTED, FAULT, INK, SOFT

PAGES = Path(__file__).resolve().parents[1] / "detectors"
BEGIN, END = "<!-- cost: python docs/pictures/detectors.py -->", "<!-- end of cost -->"
LOW, HIGH = 0.03, 300.0  # of the scores that are drawn


def _blocks():
    spec = importlib.util.spec_from_file_location("blocks", PAGES.parent / "blocks.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["blocks"] = module
    spec.loader.exec_module(module)
    return module


def example(name):
    """Run the first python block of a page; returns what it leaves, and the processor seconds of fitting and of scoring again."""
    block = next(b for b in _blocks().blocks_of((PAGES / f"{name}.md").read_text()) if b.language == "python")
    session = {}
    exec(block.code, session)  # noqa: S102  the documentation's own code
    plant, detector = session["plant"], session["detector"]
    from sklearn.base import clone

    begun = time.process_time()
    clone(detector).fit(plant.train)
    fitted = time.process_time()
    detector.decision_function(plant.test)
    return session, fitted - begun, time.process_time() - fitted


def draw(name, session, folder):
    """Channels with their faults above, the score below."""
    plant, detector, scores = (session[key] for key in ("plant", "detector", "scores"))
    test = plant.test
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(1.25, 1.0))
    spread = plant.train.values.max(axis=0) - plant.train.values.min(axis=0)
    for c in range(test.n_channels):
        top.plot((test.values[:, c] - plant.train.values[:, c].min()) / spread[c] + 1.15 * c, color=INK, linewidth=0.5)
    level = detector.normal_level()
    known = np.clip(scores / (level if level > 0 else 1.0), LOW, HIGH)
    bottom.plot(known, color=EXPECTED, linewidth=0.8)
    bottom.axhline(1.0, color=ALARM, linestyle="--", linewidth=1.0)
    bottom.set_yscale("log")
    bottom.set_ylim(LOW, HIGH)
    bottom.set_yticks([0.1, 1.0, 10.0, 100.0], ["0.1", "1", "10", "100"])
    bottom.minorticks_off()
    for fault in plant.faults:
        for axis in (top, bottom):
            axis.axvspan(fault.start, fault.stop, color=FAULT, alpha=0.35, linewidth=0.5)
        top.annotate(
            fault.kind, (fault.start, 1.15 * test.n_channels + 0.1), fontsize=9, color=SOFT, annotation_clip=False
        )
    top.set_ylabel("channels", fontsize=9)
    top.set_yticks([])
    top.set_ylim(-0.2, 1.15 * test.n_channels + 1.2)
    bottom.set_ylabel("score", fontsize=9)
    bottom.set_xlabel("minute of the test data", fontsize=9)
    for axis in (top, bottom):
        axis.margins(x=0)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    folder.mkdir(exist_ok=True)
    whole = io.BytesIO()
    figure.savefig(whole, dpi=160, metadata={"Software": None})
    Image.open(whole).convert("RGB").quantize(32).save(folder / f"{name}.png", optimize=True)


def main():
    """Draw, and write the measured cost into the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(registry.DETECTORS))
    parser.add_argument("--only-pictures", action="store_true", help="leave the measured cost as it is")
    options = parser.parse_args()
    for name in options.names:
        session, fit, score = example(name)
        draw(name, session, PAGES / "pictures")
        if options.only_pictures:
            continue
        rows, channels = session["plant"].train.values.shape
        rate = len(session["plant"].test) / max(score, 1e-4)
        rounded = f"{float(f'{rate:.1g}'):,.0f}"
        said = f"In the example ({rows:,} rows, {channels} channels, one core): {fit:.2g} s of processor time to fit, about {rounded} rows scored per second."
        page = PAGES / f"{name}.md"
        text = page.read_text()
        block = f"{BEGIN}\n{said}\n{END}"
        page.write_text(
            re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda match, new=block: new, text, flags=re.S)
        )
        sys.stdout.write(f"{name}: {said}\n")


if __name__ == "__main__":
    main()
