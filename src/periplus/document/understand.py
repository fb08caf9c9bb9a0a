"""What is this document? Bytes and header in, everything that we know of a page out."""

from __future__ import annotations

import re
from collections.abc import Callable

from periplus.document import headers
from periplus.document.blocks import first_blocks, text_of, words_of
from periplus.document.decode import decode
from periplus.document.digest import digests
from periplus.document.formats import html, text, xml
from periplus.document.formats.content import Content, Source
from periplus.document.links import Setting, links_of_headers
from periplus.document.metadata import metadata_of_headers
from periplus.model.page import Charset, Document, LinkKind
from periplus.model.visit import Fetched
from periplus.model.web import Url
from periplus.urls import hosts

TEXT_CHARS = 5_000_000  # of one page that are kept; the King James Bible has 4.3 million

# A new format is a module and a line here.
_READERS: dict[str, Callable[[Source], Content]] = {
    "text/html": html.read,
    "application/xhtml+xml": html.read_xhtml,
    "application/xml": xml.read,
    "text/xml": xml.read,
    "application/rss+xml": xml.read,
    "application/atom+xml": xml.read,
    "application/rdf+xml": xml.read,
    "image/svg+xml": xml.read,
    "text/plain": text.read,
}
READ_MEDIA_TYPES = frozenset(_READERS)

_HTML_START = re.compile(rb"\s*(?:(?><!--.*?-->)\s*)*+<(?:!doctype\s+html|html|head|body|title|script|style|table|div|p|a|h1|br|meta|iframe)[\s>]", re.I | re.S)
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_SNIFFED_BYTES = 1445  # MIME Sniffing Standard, 5.2


def understand(url: Url, fetched: Fetched) -> Document:
    """Everything that a page says and links to. Pure, and total: no bytes and no header make it raise.

    A media type that we do not read gives its digests and what the header says, no more.
    """
    media_type, header_charset = headers.media_type(fetched.headers)
    media_type = media_type or sniffed_media_type(fetched.body)
    reader = _READERS.get(media_type)
    if reader is None:
        charset, content = Charset("", "default"), _unread(url, fetched)
    else:
        decoded, charset = decode(fetched.body, header_charset, media_type, hosts.host_name(url).rpartition(".")[2])
        content = reader(Source(url, fetched.headers, decoded))
    said = content.metadata
    blocks = first_blocks(content.blocks, TEXT_CHARS)
    text = text_of(blocks)
    return Document(
        media_type=media_type,
        charset=charset,
        language=said.language,
        title=said.title,
        description=said.description,
        text=text,
        blocks=blocks,
        links=content.links,
        bad_links=content.bad_links,
        digests=digests(fetched.body, words_of(blocks, text)),
        noindex=said.noindex,
        nofollow=said.nofollow,
        canonical=next((link.target for link in content.links if link.kind is LinkKind.CANONICAL), ""),
        last_modified=said.last_modified,
        expires=said.expires,
        h1=said.h1,
        h1s=said.h1s,
        images_without_alt=said.images_without_alt,
        translations=content.translations,
    )


def _unread(url: Url, fetched: Fetched) -> Content:
    said = metadata_of_headers(fetched.headers)
    links, bad_links = links_of_headers(Setting(url, fetched.headers, nofollow=said.nofollow))
    return Content(said, (), links, bad_links)


def sniffed_media_type(body: bytes) -> str:
    """The type of a body whose server names none. Source: MIME Sniffing Standard, 7.1, as far as we read its types."""
    head = body[:_SNIFFED_BYTES]
    if head.startswith((b"\xfe\xff", b"\xff\xfe")):
        return "text/plain"
    head = head.removeprefix(b"\xef\xbb\xbf")
    if _HTML_START.match(head):
        return "text/html"
    if head.lstrip().startswith(b"<?xml"):
        return "text/xml"
    return "application/octet-stream" if _BINARY.search(head) else "text/plain"
