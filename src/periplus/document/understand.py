"""Parses a document: from bytes and headers to all extracted data."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from unicodedata import normalize

from periplus.document import headers
from periplus.document.blocks import first_blocks, lines_of, with_languages, words_of
from periplus.document.conversion import END, HTML_CHARS, Content, Conversion, Source
from periplus.document.decode import decode, text_of, utf_8_of
from periplus.document.digest import digests
from periplus.document.headers import binary_type, media_type_of
from periplus.document.language import page_language
from periplus.document.link_rows import GatheredLinks
from periplus.document.links import add_headers, add_sheet, anchors_of
from periplus.document.media_types import MARKUP, file_readers, text_readers
from periplus.document.metadata import metadata_of_headers
from periplus.model.page import LINK_KIND_CODES, NO_BLOCKS, Document, LinkKind, Links
from periplus.model.visit import Fetched
from periplus.model.web import Url
from periplus.urls import hosts
from periplus.urls.url_patterns import session_values

_CANONICAL = LINK_KIND_CODES[LinkKind.CANONICAL]
MOST_SESSION_VALUES = 32  # per page: a site with session ids sends a new one with each response
TEXT_CHARS = 5_000_000  # kept per page; the King James Bible has 4.3 million


def source_of(url: Url, fetched: Fetched, wiki_links: bool = False) -> Source:
    """The parser's input for a document. Pure and total."""
    declared, header_charset = headers.media_type(fetched.headers)
    media_type = media_type_of(declared, fetched.body, url.partition("?")[0])
    if (from_bytes := file_readers().get(media_type)) is not None:
        source = Source(url, fetched.headers, b"", media_type=media_type)
        return _to_html(source, from_bytes(fetched.body) if fetched.body else Conversion(""))
    from_text = text_readers().get(media_type)
    if from_text is None and media_type not in MARKUP:
        return Source(url, fetched.headers, b"", media_type=media_type)
    if binary := binary_type(fetched.body):
        return Source(url, fetched.headers, b"", media_type=media_type, fault=f"{binary}, sent as {media_type}")
    page, encoding = utf_8_of(fetched.body, header_charset, media_type, hosts.host_name(url).rpartition(".")[2])
    if from_text is None:
        return Source(url, fetched.headers, page, encoding.name, media_type, media_type, encoding)
    source = Source(url, fetched.headers, b"", media_type=media_type, encoding=encoding)
    return _to_html(source, from_text(text_of(page), wiki_links))


def _to_html(source: Source, converted: Conversion) -> Source:
    """The document as the HTML it was converted to."""
    fault = converted.fault
    if converted.html and not converted.html.endswith(END):
        fault = "; ".join(filter(None, (fault, f"long: more than {HTML_CHARS:,} characters as HTML")))
    return replace(source, page=converted.html.encode("utf-8", "surrogatepass"), kind="text/html", fault=fault)


def anchors_of_body(body: bytes, media_type: str, charset: str) -> frozenset[str]:
    """The anchors of HTML, or of text converted to HTML: see `links.anchors`. Total."""
    text, _ = decode(body, charset, media_type)
    convert = text_readers().get(media_type)
    return anchors_of(convert(text, False).html if convert is not None else text)


def canonical_xml(url: Url, fetched: Fetched) -> tuple[bytes, str] | None:
    """(the document as canonical XML, its media type); None for unsupported types. Total."""
    return _xml_of(source_of(url, fetched))


def _xml_of(source: Source) -> tuple[bytes, str] | None:
    from periplus.document.canonical_xml import xml_of_html, xml_of_xml  # 5 ms, only if XML is needed

    if not source.kind:
        return None
    if source.kind != "text/html" and (xml := xml_of_xml(source.text)) is not None:
        return xml, "application/xhtml+xml" if source.kind == "application/xhtml+xml" else "application/xml"
    return xml_of_html(source.text), "application/xhtml+xml"


def understand(url: Url, fetched: Fetched, *, with_xml: bool = False, wiki_links: bool = False) -> Document:
    """Parses a page: text, links and metadata. Pure and total: never raises.

    For unsupported media types only the digests and header data are set. with_xml: add the canonical XML. wiki_links:
    `[[page]]` in Markdown is a link.
    """
    source = source_of(url, fetched, wiki_links)
    reader = MARKUP.get(source.kind)
    content = reader(source) if reader else _unread(source, fetched.body)
    metadata, links = content.metadata, content.links
    blocks, bounds = first_blocks(content.blocks, TEXT_CHARS)
    language = page_language(metadata.language, blocks.text)
    is_whole = blocks is content.blocks and content.written
    written = content.written if is_whole else blocks.text.encode("utf-8", "surrogatepass")
    lines = lines_of(blocks)
    words = without_session_values(words_of(blocks, written, lines), url, links)
    # windows-1258 has combining marks: normalised, so that digests are independent of the encoding
    if source.encoding.name == "windows-1258":
        words = normalize("NFC", words.decode("utf-8", "surrogatepass")).encode("utf-8", "surrogatepass")
    return Document(
        media_type=source.media_type,
        charset=source.encoding,
        language=metadata.language,
        title=metadata.title,
        description=metadata.description,
        blocks=with_languages(blocks, written, lines, language),
        links=links,
        bad_links=content.bad_links,
        digests=digests(fetched.body, words),
        noindex=metadata.noindex,
        nofollow=metadata.nofollow,
        canonical=links.targets[links.kinds.index(_CANONICAL)] if _CANONICAL in links.kinds else "",
        last_modified=metadata.last_modified,
        expires=metadata.expires,
        h1=metadata.h1,
        h1s=metadata.h1s,
        images_without_alt=metadata.images_without_alt,
        translations=content.translations,
        language_found=language,
        fault=source.fault,
        bounds=(*content.bounds, *bounds),
        needs_script=content.needs_script,
        xml=_xml_of(source) if with_xml else None,
        publication=content.publication,
        written=b"" if b"\xed" in written else written,  # only bytes after 0xED can be of surrogates
    )


def without_session_values(words: bytes, url: Url, links: Links) -> bytes:
    """The text without session ids from the page's own URL and links, which some pages display: they differ on each
    visit.
    """
    # most links have none of the signs, and need no look-up
    marked = [target for target in links.targets if "?" in target or ";" in target or "/(" in target]
    values = {*session_values(url), *chain.from_iterable(map(session_values, marked))}
    for value in sorted(values, key=len, reverse=True)[:MOST_SESSION_VALUES]:
        words = words.replace(value.encode("utf-8", "surrogatepass"), b"")
    return words


def _unread(source: Source, body: bytes) -> Content:
    metadata = metadata_of_headers(source.headers)
    rows = GatheredLinks(source.url, metadata.nofollow)
    add_headers(rows, source)
    if source.media_type == "text/css" and body:
        add_sheet(rows, decode(body, headers.media_type(source.headers)[1], source.media_type)[0])
    return Content(metadata, NO_BLOCKS, rows.links(), rows.bad_links(), bounds=rows.bounds())
