"""Reads documents of markup: HTML, XHTML, and other XML: feeds, drawings, books in vocabularies of their own."""

from __future__ import annotations

import re
from dataclasses import replace

from periplus.document import headers, html, whitespace
from periplus.document.blocks import blocks_of, plain_blocks
from periplus.document.canonical_xml import without_doctype
from periplus.document.formats.content import Content, Source
from periplus.document.links import GatheredLinks, add_document, add_headers, rows_of, translations_of
from periplus.document.metadata import Metadata, metadata, metadata_of_headers
from periplus.model.page import BlockKind, Blocks, LinkKind, Links, Position
from periplus.model.visit import Headers
from periplus.urls.canonical import identity

SHELL_CHARS = 200  # of all text: "Loading", a name, a line of rights
ROOT_CHARS = 50  # of what stands in a root until the script comes
# What the frameworks and their starters call the element that they fill: React, Vue, Next, Nuxt, Gatsby, Svelte,
# Angular, Quasar, Polymer.
_ROOTS = (
    "#root,#app,#__next,#__nuxt,#___gatsby,#svelte,#q-app,#react-root,#app-root,#app-mount,#application,app-root,"
    "my-app,[ng-app],[data-reactroot]"
)


def read_html(source: Source) -> Content:
    """HTML with all its errors, as a browser takes it."""
    tree = html.parse(source.text)
    facts = metadata(tree, source.headers)
    rows = rows_of(tree, source, facts)
    translations = translations_of(tree, source)
    scripts = bool(html.elements(tree, "script"))
    unscripted_chars = sum(len(html.text_of(element)) for element in html.elements(tree, "noscript")) if scripts else 0
    blocks = blocks_of(tree, facts.language)  # last of all questions: it consumes the tree
    return Content(
        facts,
        blocks,
        rows.links(),
        rows.bad_links(),
        translations,
        rows.bounds(),
        scripts and _is_shell(tree, blocks, unscripted_chars),
    )


def _is_shell(tree: html.Tree, blocks: Blocks, unscripted_chars: int) -> bool:
    """Whether a page with scripts is empty until one fills it.

    unscripted_chars: of what is shown without scripts only.
    """
    most = SHELL_CHARS + unscripted_chars
    if len(blocks.text) > 2 * most:  # each block has a character at least, and one that parts it from the next
        return False
    if sum(len(block.text) for block in blocks if block.kind is not BlockKind.TITLE) > most:
        return False
    roots = html.select(tree, _ROOTS)
    return bool(roots) and all(
        len(html.text_of(root)) <= ROOT_CHARS and html.first(root, "a[href]") is None for root in roots
    )


def read_xhtml(source: Source) -> Content:
    """XHTML by the rules of XML, in which `<title/>` ends at once; when it is not well-formed, by those of HTML."""
    tree = html.parse_xml(without_doctype(source.text))
    text = source.text if tree is None else html.html_from_xml(tree)
    return read_html(replace(source, page=text.encode("utf-8", "surrogatepass")))


_SHEET = re.compile(r"""<\?xml-stylesheet\s[^>]*?href\s*=\s*(?:"([^"]*)"|'([^']*)')""")
FEED_ROOTS = frozenset({"rss", "feed", "RDF"})  # RSS, Atom, RSS 1.0


def read_xml(source: Source) -> Content:
    """Well-formed XML: each piece of text is a block; a feed has headings, paragraphs and links.

    Anything else that calls itself XML is HTML.

    Links: xlink:href and XHTML's a (any vocabulary), link of RSS (text) and Atom (href), enclosures, the style sheet.
    """
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
        rows.add(first or second, (LinkKind.STYLE, Position.HEAD, False))
    if roots and html.tag_of(roots[0]).rpartition(":")[2] in FEED_ROOTS:
        return _feed(source, text, rows, facts)
    _add_links(rows, tree)
    add_headers(rows, source)
    titles = html.elements(tree, "title")[:1]
    language = html.attribute(roots[0], "xml:lang").lower() if roots else ""
    facts = replace(facts, title=html.text_of(titles[0]) if titles else "", language=language or facts.language)
    return Content(
        facts,
        plain_blocks(list(filter(None, map(whitespace.folded, html.strings(tree))))),
        rows.links(),
        rows.bad_links(),
        bounds=rows.bounds(),
    )


def _feed(source: Source, text: str, rows: GatheredLinks, facts: Metadata) -> Content:
    """A feed's blocks and language come from its HTML; of the links there those that are not the feed's own already."""
    from periplus.document.formats.feed import feed_of

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
            rows.add(link.text, (kind, Position.BODY, False), link.title)
    add_headers(rows, source)
    inner = GatheredLinks(source.url, facts.nofollow)
    for base, part in feed.texts:
        add_document(inner, html.parse(part), base)
    tree = html.parse(feed.page)
    page = metadata(tree, Headers())
    facts = replace(facts, title=page.title, language=page.language or facts.language)
    own = rows.links()
    identities = set(map(identity, own.targets))
    links = Links.of((*own, *(link for link in inner.links() if identity(link.target) not in identities)))
    blocks = blocks_of(tree, page.language)  # last of all questions: it consumes the tree
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
        rows.add(html.attribute(element, "xlink:href"), (kind, Position.BODY, False), html.text_of(element))
    for element in rows.first(html.elements(tree, "a")):
        if href := html.attribute(element, "href"):
            rows.add(href, (LinkKind.ANCHOR, Position.BODY, False), html.text_of(element))
    for element in rows.first(html.elements(tree, "link")):
        if href := html.attribute(element, "href"):  # Atom: without rel it is the entry's page
            for kind in headers.kinds_of_rel(html.attribute(element, "rel") or "bookmark"):
                rows.add(href, (kind, Position.BODY, False), html.attribute(element, "title"))
        elif text := html.text_of(element):  # RSS
            rows.add(text, (LinkKind.RELATED, Position.BODY, False))
    for element in rows.first(html.elements(tree, "enclosure")):
        rows.add(html.attribute(element, "url"), (LinkKind.MEDIA, Position.BODY, False))
