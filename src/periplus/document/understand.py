"""What is this document? Bytes and header in, everything that we know of a page out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from unicodedata import normalize

from periplus.document import headers
from periplus.document.blocks import first_blocks, with_languages, words_of
from periplus.document.canonical_xml import xml_of_html, xml_of_xml
from periplus.document.decode import decode
from periplus.document.digest import digests
from periplus.document.formats.content import Content, Source
from periplus.document.formats.converted import END, HTML_CHARS, Converted
from periplus.document.formats.table import MARKUP, TEXTS, file_readers
from periplus.document.guess import UTF_8
from periplus.document.headers import binary_type, media_type_of
from periplus.document.language import page_language
from periplus.document.links import Setting, rows_of_headers
from periplus.document.metadata import metadata_of_headers
from periplus.model.page import NO_BLOCKS, Charset, Document, Link, LinkKind
from periplus.model.visit import Fetched
from periplus.model.web import Url
from periplus.urls import hosts
from periplus.urls.families import session_values

_CANONICAL = LinkKind.CANONICAL  # an enum's own look-up takes 0.2 us
MOST_SESSION_VALUES = 32  # of one page: a site that gives out session ids gives one with each answer
TEXT_CHARS = 5_000_000  # of one page that are kept; the King James Bible has 4.3 million


@dataclass(frozen=True, slots=True)
class Markup:
    """A document as a parser takes it: its own markup, or the HTML that it was told as."""

    media_type: str  # of the document
    # of the markup: a media type of `MARKUP`; empty: the document is of a type that is not read, or not of its type
    kind: str
    text: str
    charset: Charset
    fault: str = ""  # why it could not be read, or not whole


def markup_of(url: Url, fetched: Fetched) -> Markup:
    """What a parser is given of a document. Pure, and total."""
    declared, header_charset = headers.media_type(fetched.headers)
    media_type = media_type_of(declared, fetched.body, url.partition("?")[0])
    if (from_bytes := file_readers().get(media_type)) is not None:
        told = from_bytes(fetched.body) if fetched.body else Converted("")
        return Markup(media_type, "text/html", told.html, Charset("", "default"), _fault_of(told))
    from_text = TEXTS.get(media_type)
    if from_text is None and media_type not in MARKUP:
        return Markup(media_type, "", "", Charset("", "default"))
    if binary := binary_type(fetched.body):
        return Markup(media_type, "", "", Charset("", "default"), f"{binary}, sent as {media_type}")
    text, charset = decode(fetched.body, header_charset, media_type, hosts.host_name(url).rpartition(".")[2])
    if from_text is None:
        return Markup(media_type, media_type, text, charset)
    told = from_text(text)
    return Markup(media_type, "text/html", told.html, charset, _fault_of(told))


def _fault_of(told: Converted) -> str:
    return (
        told.fault
        if not told.html or told.html.endswith(END)
        else "; ".join(filter(None, (told.fault, f"long: more than {HTML_CHARS:,} characters as HTML")))
    )


def canonical_xml(url: Url, fetched: Fetched) -> tuple[bytes, str] | None:
    """The document as canonical XML, and the media type of that; None for one of a type that is not read. Total."""
    markup = markup_of(url, fetched)
    if not markup.kind:
        return None
    if markup.kind != "text/html" and (written := xml_of_xml(markup.text)) is not None:
        return written, "application/xhtml+xml" if markup.kind == "application/xhtml+xml" else "application/xml"
    return xml_of_html(markup.text), "application/xhtml+xml"


def understand(url: Url, fetched: Fetched) -> Document:
    """Everything that a page says and links to. Pure, and total: no bytes and no header make it raise.

    A media type that we do not read gives its digests and what the header says, no more.
    """
    markup = markup_of(url, fetched)
    reader = MARKUP.get(markup.kind)
    charset = markup.charset.name if markup.kind == markup.media_type else ""
    content = (
        reader(Source(url, fetched.headers, markup.text, charset or UTF_8.name)) if reader else _unread(url, fetched)
    )
    said = content.metadata
    blocks, bounds = first_blocks(content.blocks, TEXT_CHARS)
    language = page_language(said.language, blocks.text)
    words = without_session_values(words_of(blocks), url, content.links)
    # the one that writes letter and mark apart: its pages have the digests of others' nevertheless
    if markup.charset.name == "windows-1258":
        words = normalize("NFC", words)
    return Document(
        media_type=markup.media_type,
        charset=markup.charset,
        language=said.language,
        title=said.title,
        description=said.description,
        blocks=with_languages(blocks, language),
        links=content.links,
        bad_links=content.bad_links,
        digests=digests(fetched.body, words),
        noindex=said.noindex,
        nofollow=said.nofollow,
        canonical=next((link.target for link in content.links if link[1] is _CANONICAL), ""),
        last_modified=said.last_modified,
        expires=said.expires,
        h1=said.h1,
        h1s=said.h1s,
        images_without_alt=said.images_without_alt,
        translations=content.translations,
        language_found=language,
        fault=markup.fault,
        bounds=(*content.bounds, *bounds),
        needs_script=content.needs_script,
    )


def without_session_values(text: str, url: Url, links: Iterable[Link]) -> str:
    """The text without the session ids of its page's own address and links, which some pages show:
    they are other ones on each visit.
    """
    addresses = [url, *(link[0] for link in links)]
    values = {
        value
        for address in addresses
        if "?" in address or ";" in address or "/(" in address
        for value in session_values(address)
    }
    for value in sorted(values, key=len, reverse=True)[:MOST_SESSION_VALUES]:
        text = text.replace(value, "")
    return text


def _unread(url: Url, fetched: Fetched) -> Content:
    said = metadata_of_headers(fetched.headers)
    rows = rows_of_headers(Setting(url, fetched.headers, nofollow=said.nofollow))
    return Content(said, NO_BLOCKS, rows.links(), rows.bad_links(), bounds=rows.bounds())
