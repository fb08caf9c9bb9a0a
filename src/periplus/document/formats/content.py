"""What does a format's reader get, and what does it give back?"""

from __future__ import annotations

from dataclasses import dataclass

from periplus.document.metadata import Metadata
from periplus.model.page import BadLink, Blocks, Link
from periplus.model.visit import Headers
from periplus.model.web import Url


@dataclass(frozen=True, slots=True)
class Source:
    """A document's markup, and where it comes from."""

    url: Url
    headers: Headers
    text: str
    charset: str = "utf-8"  # of the Encoding Living Standard: the queries of its links are sent in it


@dataclass(frozen=True, slots=True)
class Content:
    """What a document holds."""

    metadata: Metadata
    blocks: Blocks
    links: tuple[Link, ...]
    bad_links: tuple[BadLink, ...]
    translations: tuple[tuple[str, Url], ...] = ()  # (hreflang as written, where its page is)
    bounds: tuple[str, ...] = ()  # which were met: what lies behind them is left out
    needs_script: bool = False  # it is an empty shell that a script fills
