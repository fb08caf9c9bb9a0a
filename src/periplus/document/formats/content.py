"""What a format's reader gets, and what it gives back."""

from __future__ import annotations

from dataclasses import field

from periplus.document.decode import text_of
from periplus.document.metadata import Metadata
from periplus.model.page import NO_CHARSET, NO_PUBLICATION, BadLink, Blocks, Charset, Links, Publication
from periplus.model.visit import Headers
from periplus.model.web import Url
from periplus.values import frozen


@frozen
class Source:
    """A document as a parser takes it: its own markup, or the HTML that stands for it; and where it comes from."""

    url: Url
    headers: Headers
    page: bytes  # in UTF-8, lone surrogates among them
    charset: str = "utf-8"  # of the Encoding Living Standard: the queries of its links are sent in it
    media_type: str = ""  # of the document
    # of the text: a media type of `MARKUP`; empty: the document is of a type that is not read, or not of its type
    kind: str = ""
    encoding: Charset = NO_CHARSET  # that its bytes were decoded from
    fault: str = ""  # why it could not be read, or not whole

    @property
    def text(self) -> str:
        """The page as text, decoded anew each time."""
        return text_of(self.page)


@frozen
class Content:
    """What a document holds."""

    metadata: Metadata
    blocks: Blocks
    links: Links
    bad_links: tuple[BadLink, ...]
    translations: tuple[tuple[str, Url], ...] = ()  # (hreflang as written, where its page is)
    bounds: tuple[str, ...] = ()  # which were met: what lies behind them is left out
    needs_script: bool = False  # it is an empty shell that a script fills
    publication: Publication = NO_PUBLICATION
    written: bytes = field(default=b"", compare=False)  # the blocks' text in UTF-8, where the reader has it so
