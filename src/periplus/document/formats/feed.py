"""What does a feed hold, told as HTML? Its entries as headings with links, each with its text. RSS, Atom, RDF."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from periplus.document.formats import zipped
from periplus.document.formats.converted import block, escape, page
from periplus.document.formats.tree_walk import attribute, child, local

ENTRIES_MOST = 5_000
_TEXTS = ("encoded", "content", "summary", "description")  # of an entry: the first that it has, the fullest first


def html_of(text: str) -> str:
    """text: XML without a document type."""
    root = zipped.parsed(text.encode("utf-8", "replace"))
    if root is None:
        return page(())
    channel = child(root, "channel")
    head = root if channel is None else channel
    parts = [block("h1", _words(head, "title")), block("p", _words(head, "subtitle") or _words(head, "description"))]
    entries = [element for element in root.iter() if local(element) in ("item", "entry")][:ENTRIES_MOST]
    language = attribute(root, "lang") or _words(head, "language")
    return page((*parts, *(part for entry in entries for part in _entry(entry))), _words(head, "title"), language)


def _words(element: etree._Element, name: str) -> str:
    found = child(element, name)
    return " ".join("".join(map(str, found.itertext())).split()) if found is not None else ""


def _entry(entry: etree._Element) -> Iterator[str]:
    title, target = _words(entry, "title"), _target(entry)
    words = escape(title or target, quote=False)
    if words:
        yield f'<h2><a href="{escape(target)}">{words}</a></h2>\n' if target else f"<h2>{words}</h2>\n"
    for name in _TEXTS:
        found = child(entry, name)
        if found is not None and (text := _html(found)):
            yield f"<div>{text}</div>\n"
            return


def _target(entry: etree._Element) -> str:
    """The entry's page: Atom's link without rel or with rel=alternate, RSS's link as text, else a guid that is a link."""
    for element in entry:
        if local(element) == "link" and attribute(element, "rel") in ("", "alternate"):
            return attribute(element, "href") or (element.text or "").strip()
    guid = child(entry, "guid")
    return (guid.text or "").strip() if guid is not None and attribute(guid, "isPermaLink") != "false" and (guid.text or "").strip().startswith("http") else ""


def _html(element: etree._Element) -> str:
    """A text construct as HTML: elements within it as they are, text that is plain as text, else text that is HTML."""
    if len(element):
        for part in element.iter():
            part.tag = local(part) or part.tag
        etree.cleanup_namespaces(element)
        return "".join(str(etree.tostring(part, method="html", encoding="unicode", with_tail=True)) for part in element)
    text = element.text or ""
    return escape(text, quote=False) if attribute(element, "type") == "text" else text
