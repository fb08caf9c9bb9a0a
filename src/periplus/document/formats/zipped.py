"""Documents in zip archives: their files within bounds, and their XML trees as HTML."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from lxml import etree

from periplus.document.formats.converted import HTML_CHARS, Converted, escape, page

MEMBER_BYTES = 33_554_432  # inflated, of one file: as much as a body may have
TOTAL_BYTES = 67_108_864  # inflated, of one archive
NODES: Final = etree.XMLParser(
    resolve_entities=False, load_dtd=False, no_network=True, recover=True, remove_comments=True, remove_pis=True
)
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    LookupError,
    OverflowError,
)


class Archive:
    """The files of an archive by name.

    What is damaged, encrypted, missing or too large reads as nothing, and faults tell of it.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive, self._room = archive, TOTAL_BYTES
        self.faults: list[str] = []

    def bytes_of(self, name: str) -> bytes:
        most = min(MEMBER_BYTES, self._room)
        try:
            with self._archive.open(name) as member:
                data = member.read(most + 1)
        except KeyError:
            return b""
        except _BROKEN as error:
            self.faults.append(f"damaged: {name}: {error}"[:100])
            return b""
        if len(data) > most:
            self.faults.append(f"long: {name} is larger than {most} bytes")
            data = data[:most]
        self._room -= len(data)
        return data

    def tree(self, name: str) -> etree._Element | None:
        """An XML file's root; of a damaged one as much as can be read. No entity is expanded."""
        return parsed(self.bytes_of(name))


def parsed(data: bytes) -> etree._Element | None:
    """The root of XML, as far as it is some.

    Deeper than 256 elements or with a text of 10 MB it is cut: libxml2's own bounds.
    """
    if not data:
        return None
    try:
        return etree.fromstring(data, NODES)
    except (etree.XMLSyntaxError, ValueError):
        return None


def html_of(body: bytes, read: Callable[[Archive], tuple[Sequence[str], etree._Element | None]]) -> Converted:
    """A document in an archive, converted. Total: what is no such file has a fault.

    read: gives its contents as HTML, and the root of what holds its title, language and description.
    """
    try:
        opened = zipfile.ZipFile(io.BytesIO(body))
    except _BROKEN:
        return Converted(page(()), "damaged: no zip archive")
    with opened:
        archive = Archive(opened)
        parts, properties = read(archive)
        facts = {name: _text_of(properties, name) for name in ("title", "language", "description")}
        return Converted(page(parts, **facts), "; ".join(archive.faults))


def _text_of(root: etree._Element | None, name: str) -> str:
    """The text of the first element of that local name."""
    element = next(root.iter("{*}" + name), None) if root is not None else None
    return (element.text or "").strip() if element is not None else ""


class ElementMarkup(NamedTuple):
    """What HTML stands around an element's contents."""

    before: str = ""
    after: str = ""
    text: bool = False  # whether its own text counts, and not only that of elements below
    skip: bool = False  # whether nothing below counts


SKIPPED = ElementMarkup(skip=True)
Rule = Callable[[etree._Element], ElementMarkup]


def local(element: etree._Element) -> str:
    """Its name without the namespace."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute(element: etree._Element, name: str) -> str:
    """An attribute's value by the name without its namespace; empty where there is none."""
    for key, value in element.attrib.items():
        if str(key).rpartition("}")[2] == name:
            return str(value)
    return ""


def child(element: etree._Element, name: str) -> etree._Element | None:
    """The first child of that local name."""
    return next((below for below in element if local(below) == name), None)


def tree_html(root: etree._Element, rules: Mapping[str, Rule]) -> str:
    """The HTML of everything below root. rules: by local name; an element without one counts by what is below it."""
    pieces: list[str] = []
    texts: list[bool] = []
    skipped: etree._Element | None = None
    room = HTML_CHARS
    ends: list[str] = []
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if skipped is not None:
            if event == "end" and element is skipped:
                skipped = None
                _tail(pieces, texts, element)
            continue
        if event == "start":
            rule = rules.get(local(element))
            markup = rule(element) if rule else ElementMarkup(text=bool(texts) and texts[-1])
            pieces.append(markup.before)
            if markup.skip:
                pieces.append(markup.after)
                skipped = element
                continue
            if markup.text and element.text:
                pieces.append(escape(element.text, quote=False))
            texts.append(markup.text)
            ends.append(markup.after)
        else:
            pieces.append(ends.pop())
            texts.pop()
            _tail(pieces, texts, element)
        room -= len(pieces[-1])
        if room < 0:
            break
    return "".join(pieces)


def _tail(pieces: list[str], texts: list[bool], element: etree._Element) -> None:
    if texts and texts[-1] and element.tail:
        pieces.append(escape(element.tail, quote=False))
