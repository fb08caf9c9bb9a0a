"""Converts books in EPUB to HTML: their chapters in the order of reading. Source: EPUB 3.3, 3 and 5."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from lxml import etree

from periplus.document.canonical_xml import without_doctype
from periplus.document.formats import zipped
from periplus.document.formats.converted import Converted, is_absolute
from periplus.document.formats.zipped import Archive, attribute, local

CHAPTERS_MOST = 2_000


def html_of(body: bytes) -> Converted:
    """Total: what is no such file has a fault."""
    return zipped.html_of(body, _read)


def _read(archive: Archive) -> tuple[list[str], etree._Element | None]:
    container = archive.tree("META-INF/container.xml")
    place = next((attribute(one, "full-path") for one in _all(container, "rootfile")), "")
    package = archive.tree(place) if place else None
    if package is None and not archive.faults:
        archive.faults.append("damaged: no package")
    files = {attribute(one, "id"): attribute(one, "href") for one in _all(package, "item")}
    chapters = [files[reference] for one in _all(package, "itemref") if (reference := attribute(one, "idref")) in files]
    if len(chapters) > CHAPTERS_MOST:
        archive.faults.append(f"long: {CHAPTERS_MOST} of {len(chapters)} chapters were read")
    folder = posixpath.dirname(place)
    names = [posixpath.normpath(posixpath.join(folder, unquote(name))) for name in chapters[:CHAPTERS_MOST]]
    return [_chapter(archive.bytes_of(name)) for name in dict.fromkeys(names)], package


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
