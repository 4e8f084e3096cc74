"""The pictures of docs/gallery.md, made by the blocks on the page: ``python docs/pictures/gallery.py``.

The picture of the report is a photograph: ``python docs/pictures/gallery.py --report demo/report.html`` takes it with Chromium.
"""

import argparse
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parents[1]
TARGET = DOCS / "pictures" / "gallery"


def run(folder):
    """Run every block of the page in a folder; returns the pictures it has made."""
    spec = importlib.util.spec_from_file_location("blocks", DOCS / "blocks.py")
    blocks = importlib.util.module_from_spec(spec)
    sys.modules["blocks"] = blocks
    spec.loader.exec_module(blocks)
    list(blocks.run_page((DOCS / "gallery.md").read_text(), folder, page="docs/gallery.md"))
    return sorted(folder.glob("*.png"))


def keep(picture, name):
    """Write a picture with few colours: pages should load quickly."""
    TARGET.mkdir(exist_ok=True)
    Image.open(picture).convert("RGB").quantize(64).save(TARGET / name, optimize=True)


def main():
    """Draw the pictures, or photograph a report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path)
    report = parser.parse_args().report
    with tempfile.TemporaryDirectory() as folder:
        if report is None:
            for picture in run(Path(folder)):
                keep(picture, picture.name)
            return
        browser = shutil.which("chromium") or shutil.which("google-chrome")
        target = Path(folder) / "report.png"
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=2", f"--user-data-dir={folder}/profile", "--window-size=1100,1150"]  # fmt: skip
        subprocess.run([browser, *options, "--virtual-time-budget=3000", f"--screenshot={target}", report.resolve().as_uri()], check=True, capture_output=True)  # fmt: skip
        keep(target, "report.png")


if __name__ == "__main__":
    main()
