"""What the site makes of links to pages that stay in the repository: their text, and where to find them."""

import posixpath
import re
from typing import Any

LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)#\s]+\.(?:md|csv))(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Turn links to files that are not on the site into text."""
    here = posixpath.dirname(page.file.src_uri)

    def said(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, link[2]))
        found = files.get_file_from_path(target)
        on_site = found is not None and found.inclusion.is_included()
        return link[0] if on_site else f"{link[1]} (`docs/{target}`)"

    return LINK.sub(said, markdown)
