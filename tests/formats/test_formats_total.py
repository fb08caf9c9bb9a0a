"""Readers of formats never raise, and return valid pages."""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from document_files import docx, epub, odt, zipped
from periplus.document.media_types import text_readers
from periplus.document.understand import canonical_xml, understand
from periplus.model.visit import Fetched, Headers
from periplus.urls.canonical import canonical
from periplus_formats.feature import FEATURE

PAGE = canonical("http://a.example/")
RTF_PIECES = [
    *("{", "}", "\\par ", "\\u-9", "\\u55357?", "\\u-8704?", "\\'f8", "\\'", "\\*", "\\f1", "\\uc9", "\\bin9 ",
        "\\bin-1 ", "\\info"),
    *("\\title ", "\\stylesheet"),
    *("\\fonttbl", "\\fcharset204", "\\field", "\\fldinst HYPERLINK \"http://a/\"", "\\fldrslt ", "\\cell",
        "\\ansicpg1361", "\\ansicpg65001", "\\s1 "),
    *("x", "é", "\\"),
]  # fmt: skip
SGML_PIECES = ["<sect>", "<sect1>", "</sect>", "<title>", "</title>", "</>", "<em/", "/", "<", ">", "<p", "<item>",
    "<itemize>", "</itemize>",
    "<![", "[", "]]>", "\n\n", "a",
               "<url url='x'>", "<ulink url=http://a>", "</ulink>", "<!doctype a [", "&lt;", "&a;", "<indexterm>",
               "<section>", "<?x", "<pre/>"]  # fmt: skip
TEXT_PIECES = [
    "=====\n",
    "- ",
    "\n",
    "\n\n",
    "1. ",
    "1.2 A",
    "A",
    "a) ",
    " ",
    "\x00",
    "\f",
    "# ",
    "| a |",
    "|-|",
    "```",
    "---\n",
    "[a](b)",
    "<b>",
    "\\",
    "é",
    "\x1b",
]
WORD_FILE = docx(
    '<w:p><w:pPr><w:outlineLvl w:val="1"/></w:pPr><w:r><w:t>a</w:t></w:r></w:p><w:tbl><w:tr><w:tc/></w:tr></w:tbl>',
    core="<dc:title>x</dc:title>",
)
WHOLE = {
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": WORD_FILE,
    "application/vnd.oasis.opendocument.text": odt(
        '<text:h text:outline-level="99999999">a</text:h><text:p>b<text:s text:c="x"/></text:p>'
    ),
    "application/epub+zip": epub({"a": "<p>x<a href='y'>z</a></p>"}, "t"),
    "application/rtf": rb"{\rtf1 a\par}",
}


def check(body: bytes, media_type: str) -> None:
    fetched = Fetched(200, Headers((("content-type", media_type),)), body)
    page = understand(PAGE, fetched)
    assert page.media_type in (media_type, "text/markdown")
    written = canonical_xml(PAGE, fetched)
    assert written is not None
    etree.fromstring(written[0], etree.XMLParser(huge_tree=True))


@pytest.mark.parametrize("media_type", sorted(FEATURE.formats))
@settings(max_examples=25, deadline=None)
@given(body=st.binary(max_size=200))
def test_files_of_any_bytes(media_type, body):
    check(body, media_type)


@settings(max_examples=60, deadline=None)
@given(
    media_type=st.sampled_from(sorted(text_readers())),
    text=st.lists(st.sampled_from([*SGML_PIECES, *TEXT_PIECES]) | st.text(max_size=3), max_size=25).map("".join),
)
def test_texts_of_any_words(media_type, text):
    check(text.encode("utf-8", "replace"), media_type)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(RTF_PIECES) | st.text(max_size=3), max_size=25).map("".join))
def test_rtf_of_any_words(text):
    check(b"{\\rtf1" + text.encode("utf-8", "replace"), "application/rtf")


@pytest.mark.parametrize("media_type", sorted(WHOLE))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_whole_files_with_bytes_changed(media_type, data):
    body = bytearray(WHOLE[media_type])
    for place in data.draw(st.lists(st.integers(0, len(body) - 1), max_size=6)):
        body[place] = data.draw(st.integers(0, 255))
    check(bytes(body[: data.draw(st.integers(0, len(body)))]) if data.draw(st.booleans()) else bytes(body), media_type)


@pytest.mark.parametrize("media_type", [name for name in sorted(WHOLE) if WHOLE[name].startswith(b"PK")])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_packages_with_their_xml_changed(media_type, data):
    files = dict[str, bytes]()
    with zipfile.ZipFile(io.BytesIO(WHOLE[media_type])) as archive:
        for name in archive.namelist():
            text = bytearray(archive.read(name))
            for place in data.draw(st.lists(st.integers(0, len(text) - 1), max_size=2)):
                text[place] = data.draw(st.sampled_from(b'<>&/=" a:\x00\xff'))
            files[name] = bytes(text)
    check(zipped(files), media_type)


@pytest.fixture(scope="module")
def manual() -> bytes:
    import typst

    return typst.compile(b'= One\nwords #link("http://a.org/")[x]\n#pagebreak()\n- two')


def test_pdf_with_bytes_changed(manual):
    """Uses a plain generator: hypothesis would be slow on twenty thousand bytes."""
    import random

    rng = random.Random(7)
    for _ in range(40):
        body = bytearray(manual)
        for _ in range(rng.choice((1, 10, 200))):
            body[rng.randrange(len(body))] = rng.randrange(256)
        check(bytes(body[: rng.randrange(len(body))] if rng.random() < 0.2 else body), "application/pdf")


HOSTILE = [
    "a\n===\n",
    "\n" + " " * 50,
    "- ",
    "1. ",
    "[",
    "![",
    "*a_",
    "`",
    "> ",
    "<a ",
    "<a '",
    '<a "',
    "<sect>",
    "<section><sect1>",
    "<x>",
    "</y>",
    "<em/",
    "<title>",
    "<!--",
    "]]>",
    "&",
]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("media_type", sorted(text_readers()))
def test_a_repeated_piece_neither_stops_nor_breaks_a_reader(media_type, piece):
    """A quadratic reader would take minutes here, a recursive one fail."""
    page = understand(
        PAGE, Fetched(200, Headers((("content-type", media_type),)), (piece * 4_000 + " " * 100_000).encode())
    )
    assert page.media_type == media_type
