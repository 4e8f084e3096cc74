"""What the site makes of links to pages that stay in the repository (their text, and where to find them) and of blocks that no test runs."""

import posixpath
import re
from typing import Any

NOT_RUN = re.compile(r"^<!-- not run: ([^>]+) -->$", re.M)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)#\s]+\.(?:md|csv))(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Turn links to files that are not on the site into text; say beside a block that it is not run, and why."""
    here = posixpath.dirname(page.file.src_uri)

    def said(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, link[2]))
        found = files.get_file_from_path(target)
        on_site = found is not None and found.inclusion.is_included()
        return link[0] if on_site else f"{link[1]} (`docs/{target}`)"

    return NOT_RUN.sub(r"*Not run by our tests: \1.*\n", LINK.sub(said, markdown))
