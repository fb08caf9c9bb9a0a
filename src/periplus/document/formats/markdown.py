"""What does a Markdown text hold, told as HTML? CommonMark with tables; the HTML within it counts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from periplus.document.formats.converted import Converted, block, page

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

TEXT_CHARS = 1_000_000  # 0.15 s; brackets that none closes take a hundred times as long. The rest stays plain
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)?---[ \t]*(?:\n|\Z)", re.S)
_TITLE = re.compile(r"^title:[ \t]*[\"']?(.*?)[\"']?[ \t]*$", re.M)


def html_of(text: str) -> Converted:
    """The title is the front matter's; without one, that of the first heading stands for it when the page is shown."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    title = ""
    if found := _FRONT_MATTER.match(text):
        said = _TITLE.search(found[1] or "")
        title, text = said[1] if said else "", text[found.end() :]
    whole, rest = text[:TEXT_CHARS], text[TEXT_CHARS:]
    fault = f"long: what stands behind {TEXT_CHARS:,} characters was read as plain text" if rest else ""
    return Converted(page((_renderer().render(whole), block("pre", rest)), title), fault)


@lru_cache(maxsize=1)
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable(["table", "strikethrough"])
