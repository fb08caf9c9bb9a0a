"""Reads HTML, XHTML, and other XML: feeds, SVG, documents in other vocabularies."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from periplus.document import headers, html
from periplus.document.blocks import blocks_of, plain_blocks
from periplus.document.conversion import Content, Source
from periplus.document.dates import TOMORROW_S
from periplus.document.digest import fold_whitespace
from periplus.document.link_rows import GatheredLinks, place_of
from periplus.document.links import add_document, add_headers, rows_of, translations_of
from periplus.document.metadata import Metadata, metadata, metadata_of_headers
from periplus.document.publication import publication_of
from periplus.document.reader import Reader, read_page
from periplus.document.tree import parse
from periplus.model.page import BLOCK_KIND_CODES, CLICK_KINDS, BlockKind, Blocks, LinkKind, Links, Position
from periplus.model.visit import Headers
from periplus.urls.canonical import identity

# Modules needed only for XML are imported by its readers: saves 20 ms at start-up

_TITLE = BLOCK_KIND_CODES[BlockKind.TITLE]
SHELL_CHARS = 200  # of the whole text: "Loading", a name, a copyright notice
_SHEET = re.compile(r"""<\?xml-stylesheet\s[^>]*?href\s*=\s*(?:"([^"]*)"|'([^']*)')""")
FEED_ROOTS = frozenset({"rss", "feed", "RDF"})  # RSS, Atom, RSS 1.0


def read_html(source: Source) -> Content:
    """Reads HTML, with error handling as in browsers."""
    tree = parse(source.page)
    page = Reader(tree).read()
    facts = metadata(page, source.headers)
    rows = rows_of(page, source, facts)
    blocks = blocks_of(page, facts.language)
    answered = headers.date_s(source.headers.get("date"))
    latest = answered + TOMORROW_S if answered else math.inf
    return Content(
        facts,
        blocks,
        rows.links(),
        rows.bad_links(),
        translations_of(page, source),
        rows.bounds(),
        _is_shell(page, blocks),
        publication_of(tree, source.url, page.h1 or page.title, blocks.text, facts.language, latest),
        page.blocks.utf_8_text(),
    )


def _is_shell(page: Reader, blocks: Blocks) -> bool:
    """Whether a page is an empty shell until a script fills it."""
    if not page.script_count or not page.root_count or page.filled_roots:
        return False
    texts = zip(blocks.kinds, blocks.texts(), strict=True)
    return sum(len(text) for kind, text in texts if kind != _TITLE) <= SHELL_CHARS + page.unscripted_chars


def read_xhtml(source: Source) -> Content:
    """Reads XHTML as XML, in which `<title/>` is closed; if not well-formed, as HTML."""
    from periplus.document.canonical_xml import without_doctype

    tree = html.parse_xml(without_doctype(source.text))
    text = source.text if tree is None else html.html_from_xml(tree)
    return read_html(replace(source, page=text.encode("utf-8", "surrogatepass")))


def read_xml(source: Source) -> Content:
    """Reads well-formed XML: each text node is a block; a feed has headings, paragraphs and links.

    Ill-formed XML is read as HTML. Links: xlink:href and XHTML's a (any vocabulary), link of RSS (text) and Atom
    (href), enclosures, the style sheet.
    """
    from periplus.document.canonical_xml import without_doctype

    text = without_doctype(source.text)
    tree = html.parse_xml(text)
    if tree is None:
        return read_html(source)
    roots = html.select(tree, ":root")
    if roots and html.tag_of(roots[0]) == "html":
        return read_xhtml(source)
    facts = metadata_of_headers(source.headers)
    rows = GatheredLinks(source.url, facts.nofollow)
    for first, second in _SHEET.findall(source.text[:4096]):
        rows.add(first or second, place_of(LinkKind.STYLE, Position.HEAD))
    if roots and html.tag_of(roots[0]).rpartition(":")[2] in FEED_ROOTS:
        return _feed(source, text, rows, facts)
    _add_links(rows, tree)
    add_headers(rows, source)
    titles = html.elements(tree, "title")[:1]
    language = html.attribute(roots[0], "xml:lang").lower() if roots else ""
    facts = replace(facts, title=html.text_of(titles[0]) if titles else "", language=language or facts.language)
    return Content(
        facts,
        plain_blocks(list(filter(None, map(fold_whitespace, html.strings(tree))))),
        rows.links(),
        rows.bad_links(),
        bounds=rows.bounds(),
    )


def _feed(source: Source, text: str, rows: GatheredLinks, facts: Metadata) -> Content:
    """Reads a feed: blocks and language from its HTML; links in its texts are added unless the feed itself has them.

    Links to pages are RELATED: readers of a feed click them elsewhere, not on the site.
    """
    from periplus.document.feed import feed_of

    feed = feed_of(text, source.url)
    for link in rows.first(feed.links):
        rows.resolve_against(link.base)
        kinds = (
            (LinkKind.MEDIA,)
            if link.is_enclosure
            else headers.kinds_of_rel(link.rel)
            if link.rel
            else (LinkKind.RELATED,)
        )
        for kind in kinds:
            rows.add(link.text, place_of(kind, Position.BODY), link.title)
    add_headers(rows, source)
    inner = GatheredLinks(source.url, facts.nofollow)
    for base, part in feed.texts:
        add_document(inner, read_page(part), base)
    page = read_page(feed.page)
    of_page = metadata(page, Headers())
    facts = replace(facts, title=of_page.title, language=of_page.language or facts.language)
    own = rows.links()
    identities = set(map(identity, own.targets))
    further = [
        link._replace(kind=LinkKind.RELATED) if link.kind in CLICK_KINDS else link
        for link in inner.links()
        if identity(link.target) not in identities
    ]
    links = Links.of((*own, *{link[:3] + link[4:5]: link for link in further}.values()))
    blocks = blocks_of(page, of_page.language)
    return Content(
        facts,
        blocks,
        links,
        rows.bad_links(),
        bounds=tuple(dict.fromkeys((*feed.bounds, *rows.bounds(), *inner.bounds()))),
    )


def _add_links(rows: GatheredLinks, tree: html.Tree) -> None:
    for element in rows.first(html.select(tree, r"[xlink\:href]")):
        kind = LinkKind.ANCHOR if html.tag_of(element).rpartition(":")[2] == "a" else LinkKind.RELATED
        if html.tag_of(element) in ("image", "use", "script"):
            kind = LinkKind.IMAGE
        rows.add(html.attribute(element, "xlink:href"), place_of(kind, Position.BODY), html.text_of(element))
    for element in rows.first(html.elements(tree, "a")):
        if href := html.attribute(element, "href"):
            rows.add(href, place_of(LinkKind.ANCHOR, Position.BODY), html.text_of(element))
    for element in rows.first(html.elements(tree, "link")):
        if href := html.attribute(element, "href"):  # atom: without rel it is the entry's page
            for kind in headers.kinds_of_rel(html.attribute(element, "rel") or "bookmark"):
                rows.add(href, place_of(kind, Position.BODY), html.attribute(element, "title"))
        elif text := html.text_of(element):  # RSS
            rows.add(text, place_of(LinkKind.RELATED, Position.BODY))
    for element in rows.first(html.elements(tree, "enclosure")):
        rows.add(html.attribute(element, "url"), place_of(LinkKind.MEDIA, Position.BODY))
