"""How long the first book is: ``python docs/words.py [REVISION]``, words outside what is generated from the code.

The pages are those of the first book in today's navigation, with the README; of an older revision, those of them that were there. What programs
write is counted apart: the reference, parameter tables, measured costs, and what blocks print.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GENERATED = re.compile(
    r"<!-- (parameters|cost): .*?<!-- end of \1 -->|<!-- demo, .*?<!-- end of demo -->|^```text\n.*?^```$", re.S | re.M
)


def first_book():
    """Pages of the first book, as paths from the root."""
    book = (ROOT / "mkdocs.yml").read_text().split("  - Using tisat:\n")[1].split("  - Validation:\n")[0]
    return ["README.md", *(f"docs/{page}" for page in re.findall(r": ([\w/-]+\.md)$", book, flags=re.M))]


def text_of(page, revision):
    """A page now, or as it was; nothing where it was not there."""
    if not revision:
        return (ROOT / page).read_text()
    found = subprocess.run(["git", "show", f"{revision}:{page}"], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout if found.returncode == 0 else ""


def main():
    """Print the words of each page, their sum, and the words of what is generated."""
    revision = sys.argv[1] if len(sys.argv) > 1 else ""
    total = generated = 0
    for page in first_book():
        text = text_of(page, revision)
        if "/reference/" in page:
            generated += len(text.split())
            continue
        words = len(GENERATED.sub("", text).split())
        generated += len(text.split()) - words
        total += words
        if words:
            sys.stdout.write(f"{words:6} {page}\n")
    sys.stdout.write(f"{total:6} words, and {generated} generated from the code\n")


if __name__ == "__main__":
    main()
