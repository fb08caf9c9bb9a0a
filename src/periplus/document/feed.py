"""Converts feeds (RSS, Atom, RDF) to HTML: entries as headings with links, each with its text; and reads their links.

Relative URLs are resolved as in feed readers: against `xml:base`, else the entry's page, else the feed's own page, else
the feed's URL. Source: RFC 4287, 2; XML Base, 3 and 4; RSS does not specify it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from lxml import etree

from periplus.document.conversion import block, escape, page
from periplus.errors import InvalidUrl
from periplus.model.web import Url
from periplus.urls.canonical import canonical

NODES: Final = etree.XMLParser(
    resolve_entities=False, load_dtd=False, no_network=True, recover=True, remove_comments=True, remove_pis=True
)
ENTRIES_MOST = 5_000
_ENTRIES = ("item", "entry")
_TEXTS = ("encoded", "content", "summary", "description")  # texts of an entry: the first present is used, fullest first
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"


class FeedLink(NamedTuple):
    """A link or an enclosure, as written."""

    text: str
    base: Url  # base URL
    rel: str  # in Atom; empty for RSS links and enclosures
    title: str = ""
    is_enclosure: bool = False


class Feed(NamedTuple):
    """A parsed feed."""

    page: str  # all of it as HTML
    links: tuple[FeedLink, ...]
    texts: tuple[tuple[Url, str], ...]  # (base URL, HTML) of its entries
    bounds: tuple[str, ...] = ()  # limits that were exceeded


def feed_of(text: str, url: Url) -> Feed:
    """text: XML without a document type. url: of the feed."""
    root = parse_xml(text.encode("utf-8", "replace"))
    if root is None:
        return Feed(page(()), (), ())
    channel = child(root, "channel")
    head = root if channel is None else channel
    home = _own_base(head, url) or _page_of(head, url) or url
    links = tuple(_links(root, url, home))  # before texts are read, which changes their elements
    parts = [block("h1", _words(head, "title")), block("p", _words(head, "subtitle") or _words(head, "description"))]
    entries = [element for element in root.iter() if local(element) in _ENTRIES]
    texts = [part for element in entries[:ENTRIES_MOST] for part in _entry(element, url, home)]
    language = attribute(root, "lang") or _words(head, "language")
    return Feed(
        page((*parts, *(part for _, part in texts)), _words(head, "title"), language),
        links,
        tuple(texts),
        (f"more than {ENTRIES_MOST:,} entries",) if len(entries) > ENTRIES_MOST else (),
    )


def _own_base(element: etree._Element, url: Url) -> Url | None:
    """The base URL from `xml:base` of the element and its ancestors; None if there is none."""
    base = None
    for around in (*reversed([*element.iterancestors()]), element):
        if written := around.get(_XML_BASE):
            with suppress(InvalidUrl):
                base = canonical(str(written), base or url)
    return base


def _page_of(element: etree._Element, base: Url) -> Url | None:
    """The page of an entry, or of the feed."""
    with suppress(InvalidUrl):
        return canonical(target, base) if (target := _target(element)) else None
    return None


def _links(root: etree._Element, url: Url, home: Url) -> Iterator[FeedLink]:
    for element in root.iter():
        name = local(element)
        if name not in ("link", "enclosure"):
            continue
        around = element.getparent()
        base = _own_base(element, url)
        if base is None and around is not None:
            base = home if local(around) in _ENTRIES else url
            base = (name == "enclosure" and _page_of(around, base)) or base
        base = base or url
        if name == "enclosure":
            yield FeedLink(attribute(element, "url"), base, "", is_enclosure=True)
        elif href := attribute(element, "href"):  # atom: without rel it is the entry's page
            yield FeedLink(href, base, attribute(element, "rel") or "bookmark", attribute(element, "title"))
        elif text := _words(element):
            yield FeedLink(text, base, "")


def _words(element: etree._Element, name: str = "") -> str:
    """The text of the element, or of its first child with this name."""
    of = child(element, name) if name else element
    return " ".join("".join(map(str, of.itertext())).split()) if of is not None else ""


def _entry(entry: etree._Element, url: Url, home: Url) -> Iterator[tuple[Url, str]]:
    """(base URL of links, HTML) of the parts of an entry."""
    title, target = _words(entry, "title"), _page_of(entry, _own_base(entry, url) or home)
    base = target or home
    words = escape(title or _target(entry), quote=False)
    if words:
        yield base, f'<h2><a href="{escape(target)}">{words}</a></h2>\n' if target else f"<h2>{words}</h2>\n"
    for name in _TEXTS:
        body = child(entry, name)
        if body is not None:
            own = _own_base(body, url)
            if text := _html(body):
                yield own or base, f"<div>{text}</div>\n"
                return


def _target(entry: etree._Element) -> str:
    """The entry's page: Atom's link without rel or with rel=alternate, RSS's link text, else a guid that is a
    permalink.
    """
    for element in entry:
        if local(element) == "link" and attribute(element, "rel") in ("", "alternate"):
            return attribute(element, "href") or (element.text or "").strip()
    guid = child(entry, "guid")
    return (
        (guid.text or "").strip()
        if guid is not None
        and attribute(guid, "isPermaLink") != "false"
        and (guid.text or "").strip().startswith("http")
        else ""
    )


def _html(element: etree._Element) -> str:
    """A text construct as HTML: child elements as they are, plain text escaped, other text as HTML."""
    if len(element):
        for part in element.iter():
            part.tag = local(part) or part.tag
        etree.cleanup_namespaces(element)
        return "".join(str(etree.tostring(part, method="html", encoding="unicode", with_tail=True)) for part in element)
    text = element.text or ""
    return escape(text, quote=False) if attribute(element, "type") == "text" else text


def parse_xml(data: bytes) -> etree._Element | None:
    """The root of an XML document, or None.

    Cut at a depth of 256 elements or a text of 10 MB: libxml2's limits.
    """
    if not data:
        return None
    try:
        return etree.fromstring(data, NODES)
    except (etree.XMLSyntaxError, ValueError):
        return None


def local(element: etree._Element) -> str:
    """The name without namespace."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute(element: etree._Element, name: str) -> str:
    """An attribute's value by local name; '' if missing."""
    for key, value in element.attrib.items():
        if str(key).rpartition("}")[2] == name:
            return str(value)
    return ""


def child(element: etree._Element, name: str) -> etree._Element | None:
    """The first child with this local name."""
    return next((below for below in element if local(below) == name), None)
