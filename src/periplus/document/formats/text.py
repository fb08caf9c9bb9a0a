"""What does a plain text hold?"""

from __future__ import annotations

import re

from periplus.document import whitespace
from periplus.document.blocks import plain_blocks
from periplus.document.formats.content import Content, Source
from periplus.document.links import Setting, links_of_headers
from periplus.document.metadata import metadata_of_headers

_EMPTY_LINES = re.compile(r"\n[^\S\n]*\n\s*")


def read(source: Source) -> Content:
    """Paragraphs are what empty lines part; lines within one belong together. URLs in it are words, not links."""
    text = source.text.replace("\r\n", "\n").replace("\r", "\n")
    paragraphs = (whitespace.folded(part) for part in _EMPTY_LINES.split(text))
    said = metadata_of_headers(source.headers)
    links, bad_links = links_of_headers(Setting(source.url, source.headers, nofollow=said.nofollow))
    return Content(said, plain_blocks([part for part in paragraphs if part]), links, bad_links)
