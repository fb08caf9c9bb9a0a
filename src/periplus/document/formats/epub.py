"""Converts books in EPUB to HTML: their chapters in the order of reading. Source: EPUB 3.3, 3 and 5."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from lxml import etree

from periplus.document.canonical_xml import without_doctype
from periplus.document.formats import zipped
from periplus.document.formats.converted import Converted, is_absolute, page
from periplus.document.formats.zipped import attribute, local

CHAPTERS_MOST = 2_000


def html_of(body: bytes) -> Converted:
    """Total: what is no such file has a fault."""
    with zipped.opened(body) as archive:
        if archive is None:
            return Converted(page(()), "damaged: no zip archive")
        container = archive.tree("META-INF/container.xml")
        place = next((attribute(one, "full-path") for one in _all(container, "rootfile")), "")
        package = archive.tree(place) if place else None
        if package is None:
            return Converted(page(()), "; ".join(archive.faults) or "damaged: no package")
        files = {attribute(one, "id"): attribute(one, "href") for one in _all(package, "item")}
        chapters = [
            files[reference] for one in _all(package, "itemref") if (reference := attribute(one, "idref")) in files
        ]
        names = [
            posixpath.normpath(posixpath.join(posixpath.dirname(place), unquote(name)))
            for name in chapters[:CHAPTERS_MOST]
        ]
        if len(chapters) > CHAPTERS_MOST:
            archive.faults.append(f"long: {CHAPTERS_MOST} of {len(chapters)} chapters were read")
        parts = [_chapter(archive.bytes_of(name)) for name in dict.fromkeys(names)]
        facts = {
            name: next(((one.text or "").strip() for one in _all(package, name)), "")
            for name in ("title", "language", "description")
        }
        return Converted(page(parts, **facts), "; ".join(archive.faults))


def _all(root: etree._Element | None, name: str) -> list[etree._Element]:
    return [element for element in root.iter() if local(element) == name] if root is not None else []


def _chapter(data: bytes) -> str:
    """What stands in a chapter's body. Links within the book are no addresses of the web: they are left out."""
    root = zipped.parsed(without_doctype(data.decode("utf-8", "replace")).encode())
    parts = _all(root, "body")
    if not parts:
        return ""
    for element in parts[0].iter():
        for name in ("href", "src", "srcset", "{http://www.w3.org/1999/xlink}href"):
            value = element.get(name)
            if value is not None and not is_absolute(str(value)):
                del element.attrib[name]
    etree.cleanup_namespaces(parts[0])
    for element in parts[0].iter():
        element.tag = local(element) or element.tag
    parts[0].tag = "div"
    return str(etree.tostring(parts[0], method="html", encoding="unicode", with_tail=False))
