"""What does an HTML page hold, and what an XHTML page?"""

from __future__ import annotations

from periplus.document import html
from periplus.document.blocks import blocks_of
from periplus.document.formats.content import Content, Source
from periplus.document.links import Setting, links_of, translations_of
from periplus.document.metadata import metadata
from periplus.document.xml_source import without_doctype


def read(source: Source) -> Content:
    """HTML with all its errors, as a browser takes it."""
    tree = html.parse(source.text)
    said = metadata(tree, source.headers)
    setting = Setting(source.url, source.headers, said.refreshes, said.nofollow, source.charset)
    links, bad_links = links_of(tree, setting)
    translations = translations_of(tree, setting)
    return Content(said, blocks_of(tree, said.language), links, bad_links, translations)  # last of all questions: it consumes the tree


def read_xhtml(source: Source) -> Content:
    """XHTML by the rules of XML, in which `<title/>` ends at once; when it is not well-formed, by those of HTML."""
    tree = html.parse_xml(without_doctype(source.text))
    text = source.text if tree is None else html.html_from_xml(tree)
    return read(Source(source.url, source.headers, text, source.charset))
