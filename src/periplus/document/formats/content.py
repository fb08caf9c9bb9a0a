"""Input and output of format readers."""

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
    """A document as parser input: its own markup, or the HTML it was converted to; and its origin."""

    url: Url
    headers: Headers
    page: bytes  # in UTF-8, possibly with lone surrogates
    charset: str = "utf-8"  # name in the Encoding Living Standard: used for queries of its links
    media_type: str = ""  # of the document
    # Of the text: a media type of `MARKUP`; empty: the type is unsupported, or the content is not of this type
    kind: str = ""
    encoding: Charset = NO_CHARSET  # encoding of the original bytes
    fault: str = ""  # why it could not be read, or only in part

    @property
    def text(self) -> str:
        """The page as text, decoded on each access."""
        return text_of(self.page)


@frozen
class Content:
    """The contents of a document."""

    metadata: Metadata
    blocks: Blocks
    links: Links
    bad_links: tuple[BadLink, ...]
    translations: tuple[tuple[str, Url], ...] = ()  # (hreflang as written, URL)
    bounds: tuple[str, ...] = ()  # limits that were exceeded: content beyond them is missing
    needs_script: bool = False  # an empty shell to be filled by a script
    publication: Publication = NO_PUBLICATION
    written: bytes = field(default=b"", compare=False)  # the blocks' text in UTF-8, if the reader has it
