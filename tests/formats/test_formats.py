"""Document formats: blocks, links, titles, faults."""

from __future__ import annotations

import re
import time
import zlib

import pytest

from document_files import docx, epub, odt, zipped
from periplus.document import conversion as converted
from periplus.document import feed
from periplus.document.headers import media_type_of
from periplus.document.media_types import is_read, may_be_read
from periplus.document.understand import canonical_xml, understand
from periplus.model.page import Block, Document
from periplus.model.visit import Fetched, Headers
from periplus.urls.canonical import canonical
from periplus_formats import markdown, pdf_reader, rtf
from periplus_formats import zipped as archive_formats
from periplus_formats.feature import FEATURE

PAGE = canonical("http://a.example/dir/file")
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
ODT = "application/vnd.oasis.opendocument.text"


def document(body: bytes, media_type: str, url: str = PAGE) -> Document:
    return understand(canonical(url), Fetched(200, Headers((("content-type", media_type),)), body))


def rows(page: Document) -> list[tuple[str, int, str]]:
    return [(block.kind.value, block.level, block.text) for block in page.blocks if isinstance(block, Block)]


def links(page: Document) -> list[tuple[str, str]]:
    return [(link.target, link.anchor) for link in page.links]


def test_plain_text_is_read_with_paragraphs_lists_and_headings():
    text = "My Title\n========\n\nOne line\nand more.\n\n1.2 Installing It\n\nUSAGE NOTES\n\n  - one\n    goes on\n"
    text += "  - two\n\nA. Smith wrote it.\n\nwhat\n----\nbelow\n"
    assert rows(document(text.encode(), "text/plain")) == [
        ("heading", 1, "My Title"), ("paragraph", 0, "One line and more."), ("heading", 3, "1.2 Installing It"),
        ("heading", 2, "USAGE NOTES"),
        ("item", 0, "one goes on"), ("item", 0, "two"), ("paragraph", 0, "A. Smith wrote it."), ("heading", 2, "what"),
        ("paragraph", 0, "below"),
    ]  # fmt: skip


def test_markdown_is_read_with_its_tables_code_and_links():
    text = (
        b"---\ntitle: 'The T'\n---\n# H\n\nwords [l](x.html)\n\n* a\n* b\n\n|k|v|\n|-|-|\n"
        b"|1|2|\n\n```\na  b\n  c\n```\n"
    )
    page = document(text, "text/markdown")
    assert page.title == "The T"
    assert rows(page)[1:] == [
        ("heading", 1, "H"), ("paragraph", 0, "words l"), ("item", 0, "a"), ("item", 0, "b"),
        *(("cell", 0, cell) for cell in ("k", "v", "1", "2")),
        ("code", 0, "a  b\n  c"),
    ]  # fmt: skip
    assert links(page) == [("http://a.example/dir/x.html", "l")]


def test_plain_text_with_a_markdown_file_name_is_markdown():
    page = document(b"# H\n", "text/plain", "http://a.example/README.md?raw")
    assert (page.media_type, rows(page)) == ("text/markdown", [("heading", 1, "H")])
    assert document(b"# H\n", "text/html", "http://a.example/README.md").media_type == "text/html"


def test_minimized_sgml_is_read():
    text = b"""<!doctype linuxdoc system [ <!entity me "x"> ]>
<article><title>The HOWTO<author>me
<sect>Introduction<label id="a">
<p>Text &mdash; with <em/emph/ and <tt>tt</>. <url url="http://a.org/" name="A site">
<itemize><item>one<item>two</itemize>
<sect1>Sub part

Words &me;.
<sect>Next<p>End <!-- no --> it<indexterm>x</indexterm>.</article>"""
    page = document(text, "text/sgml")
    assert page.title == "The HOWTO"
    assert rows(page)[1:] == [
        ("heading", 1, "The HOWTO"), ("paragraph", 0, "me"), ("heading", 2, "Introduction"),
        ("paragraph", 0, "Text — with emph and tt. A site"),
        ("item", 0, "one"), ("item", 0, "two"), ("heading", 3, "Sub part"), ("paragraph", 0, "Words &me;."),
        ("heading", 2, "Next"),
        ("paragraph", 0, "End it."),
    ]  # fmt: skip
    assert links(page) == [("http://a.org/", "A site")]


def test_docbook_is_read():
    text = b"""<!DOCTYPE book PUBLIC "-//OASIS//DTD DocBook V4.1//EN"><book><bookinfo><title>B</title></bookinfo><chapter id=one><title>C</title>
<sect1><title>S</title><para>P <ulink url="http://a.org/x">w</ulink></para><programlisting>a
  b</programlisting></sect1></chapter></book>"""  # noqa: E501
    page = document(text, "application/sgml")
    assert rows(page)[1:] == [
        ("heading", 1, "B"),
        ("heading", 2, "C"),
        ("heading", 3, "S"),
        ("paragraph", 0, "P w"),
        ("code", 0, "a\n  b"),
    ]


def test_rtf_is_read_with_its_code_pages():
    text = rb"""{\rtf1\ansi\ansicpg1250\deff0{\fonttbl{\f0 Times;}{\f1\fcharset204 Arial CYR;}}{\stylesheet{\s0 Normal;}{\s2 heading 2;}{\*\cs3 Char;}}
{\info{\title P\'f8\'edli\'9a}{\author X}}\pard\s2 Nadpis \'9elut\'fd\par
\pard\plain
Text {\b tu\'e8n\'fd} \u345?\u-10179?\u-8704? a {\f1 \'cf\'f0\'e8}.\par
{\field{\*\fldinst{HYPERLINK "http://a.org/?b&c"}}{\fldrslt{\ul odkaz}}} je\par
{\pntext\bullet\tab}\pard\ls1 item\par\trowd a\cell b\cell\row{\*\unknown zzz}{\pict 0011}{\v hidden}\pard\{x\}\~y{\bin3 {}}z\par}"""  # noqa: E501
    page = document(text, "application/rtf")
    assert page.title == "Příliš"
    assert rows(page)[1:] == [
        ("heading", 2, "Nadpis žlutý"), ("paragraph", 0, "Text tučný ř😀 a При."), ("paragraph", 0, "odkaz je"),
        ("item", 0, "item"), ("cell", 0, "a"),
        ("cell", 0, "b"), ("paragraph", 0, "{x} yz"),
    ]  # fmt: skip
    assert links(page) == [("http://a.org/?b&c", "odkaz")]


def test_docx_is_read_with_styles_lists_tables_and_links():
    styles = (
        '<w:style w:styleId="N2"><w:name w:val="heading 2"/></w:style><w:style '
        'w:styleId="T"><w:name w:val="Title"/></w:style>'
    )
    body = """<w:p><w:pPr><w:pStyle w:val="T"/></w:pPr><w:r><w:t>Titul</w:t></w:r></w:p>
<w:p><w:pPr><w:pStyle w:val="N2"/></w:pPr><w:r><w:t>Nad</w:t></w:r><w:r><w:t>pis</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">Text </w:t></w:r><w:hyperlink r:id="r1"><w:r><w:t>odkaz</w:t></w:r></w:hyperlink>
<w:del><w:r><w:delText>ne</w:delText></w:r></w:del></w:p>
<w:p><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>bod</w:t></w:r></w:p>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"""
    relations = (
        '<Relationship Id="r1" Target="http://a.org/" TargetMode="External"/><Relationship '
        'Id="r2" Target="media/x.png"/>'
    )
    page = document(
        docx(
            body,
            styles=styles,
            relations=relations,
            core=("<dc:title>Jméno</dc:title><dc:language>cs-CZ</dc:language>"),
        ),
        DOCX,
    )
    assert (page.title, page.language, page.fault) == ("Jméno", "cs-cz", "")
    assert rows(page)[1:] == [
        ("heading", 1, "Titul"), ("heading", 2, "Nadpis"), ("paragraph", 0, "Text odkaz"), ("item", 0, "bod"),
        ("cell", 0, "a"), ("cell", 0, "b"),
    ]  # fmt: skip
    assert links(page) == [("http://a.org/", "odkaz")]


def test_odt_is_read_with_headings_lists_tables_and_links():
    body = """<text:sequence-decls/><text:h text:outline-level="2">Nadpis</text:h><text:p>Dvě<text:s text:c="2"/>slova<text:tab/>a
<text:a xlink:href="http://a.org/">odkaz</text:a><text:note><text:note-citation>1</text:note-citation></text:note></text:p>
<text:list><text:list-item><text:p>bod</text:p></text:list-item></text:list>
<table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell></table:table-row></table:table><text:p>   </text:p>"""  # noqa: E501
    page = document(odt(body, "<dc:title>Jméno</dc:title><dc:language>cs</dc:language>"), ODT)
    assert (page.title, page.language) == ("Jméno", "cs")
    assert rows(page)[1:] == [
        ("heading", 2, "Nadpis"),
        ("paragraph", 0, "Dvě slova a odkaz"),
        ("item", 0, "bod"),
        ("cell", 0, "a"),
    ]
    assert links(page) == [("http://a.org/", "odkaz")]


def test_epub_is_read_in_reading_order():
    chapters = {
        "b.xhtml": '<h1>První</h1><p>slovo&nbsp;<a href="a.xhtml">uvnitř</a></p>',
        "a.xhtml": '<h1>Druhá</h1><p><a href="http://a.org/">ven</a></p>',
    }
    page = document(epub(chapters, "Kniha"), "application/epub+zip")
    assert (page.title, page.language) == ("Kniha", "cs")
    assert rows(page)[1:] == [
        ("heading", 1, "První"),
        ("paragraph", 0, "slovo uvnitř"),
        ("heading", 1, "Druhá"),
        ("link", 0, "ven"),
    ]
    assert links(page) == [("http://a.org/", "ven")]


def test_docx_and_rtf_served_as_msword_are_read_and_binary_doc_is_not():
    for body, texts in ((docx("<w:p><w:r><w:t>a</w:t></w:r></w:p>"), ["a"]), (rb"{\rtf1 b\par}", ["b"])):
        assert [block.text for block in document(body, "application/msword").blocks] == texts
        assert may_be_read("application/msword", body)
    assert may_be_read("application/msword")
    assert not may_be_read("application/msword", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))


@pytest.fixture(scope="module")
def manual() -> bytes:
    import typst

    text = (
        '#set document(title: "The Manual")\n#set heading(numbering: "1.")\n= First part\n'
        "Some words of the part that make a sentence. "
    )
    text += (
        '#link("http://a.org/x")[a site]\n\n- one\n- two\n\n== Second part\nMore words.\n'
        "#pagebreak()\n= Last part\nEnd."
    )
    return typst.compile(text.encode())


def test_pdf_is_read_with_items_and_links(manual):
    page = document(manual, "application/pdf")
    kinds = rows(page)
    assert (page.title, page.fault) == ("The Manual", "")
    assert [text for kind, level, text in kinds if kind == "item"] == ["one", "two"]
    assert links(page) == [("http://a.org/x", "a site")]
    assert "Some words of the part that make a sentence." in page.text
    assert page.text.index("First part") < page.text.index("More words") < page.text.index("Last part")


def test_pdf_pages_beyond_the_limit_are_skipped_and_reported(manual, monkeypatch):
    monkeypatch.setattr(pdf_reader, "PAGES_MOST", 1)
    converted = pdf_reader.conversion_of(manual)
    assert converted.fault == "long: 1 of 2 pages were read"
    assert "Last part" not in converted.html.split("More words")[-1]


def test_a_document_that_is_too_long_as_html_is_cut_and_reported(monkeypatch):
    assert document(b"first\n\nsecond", "text/plain").fault == ""
    monkeypatch.setattr(converted, "HTML_CHARS", 15)
    page = document(b"first\n\nsecond", "text/plain")
    assert (page.text, page.fault) == ("first", "long: more than 20,000,000 characters as HTML")


def test_limits_of_every_format_are_reported(monkeypatch):
    monkeypatch.setattr(rtf, "TEXT_CHARS", 3)
    assert document(rb"{\rtf1 abc def}", "application/rtf").fault.startswith("long: more than 3 characters")
    long = b"abc " * (markdown.TEXT_CHARS // 4) + b"[d](http://e.org/)"
    assert document(long, "text/markdown").fault == "long: the text after 1,000,000 characters was read as plain text"
    chapters = {f"{n}.xhtml": "<html><body>a</body></html>" for n in range(archive_formats.CHAPTERS_MOST + 1)}
    assert document(epub(chapters, "x"), "application/epub+zip").fault == "long: 2000 of 2001 chapters were read"
    entries = b"<item><title>a</title></item>" * (feed.ENTRIES_MOST + 1)
    assert document(b"<rss><channel>" + entries + b"</channel></rss>", "application/rss+xml").bounds == (
        f"more than {feed.ENTRIES_MOST:,} entries",
    )


@pytest.mark.parametrize("media_type", sorted(FEATURE.formats))
def test_an_invalid_file_has_a_fault_and_no_text(media_type):
    page = document(b"\x00\x01 no such file", media_type)
    assert page.fault
    assert (page.text, page.links) == ("", ())


def test_a_zip_bomb_is_cut():
    bomb = zipped({"word/document.xml": b"<a>" + b" " * 50_000_000})
    assert len(bomb) < 100_000
    began = time.process_time()
    page = document(bomb, DOCX)
    assert page.fault.startswith("long: ")
    assert time.process_time() - began < 20  # 0.3 s are normal; without a limit memory would run out


def test_a_damaged_member_is_reported():
    body = bytearray(docx("<w:p><w:r><w:t>a</w:t></w:r></w:p>"))
    place = body.index(b"word/document.xml") + len("word/document.xml")
    body[place : place + 8] = zlib.compress(b"x")[:8]
    assert document(bytes(body), DOCX).fault.startswith("damaged: word/document.xml")


@pytest.mark.parametrize(
    ("declared", "body", "found"),
    [
        ("", b"%PDF-1.7", "application/pdf"),
        ("application/octet-stream", b"%PDF-1.7", "application/pdf"),
        ("application/octet-stream", b"{\\rtf1", "application/rtf"),
        ("binary/octet-stream", docx(""), DOCX),
        ("application/octet-stream", odt(""), ODT),
        ("application/octet-stream", epub({}, ""), "application/epub+zip"),
        ("application/octet-stream", zipped({"a": "b"}), "application/zip"),
        ("application/octet-stream", b"\x7fELF\x01", "application/octet-stream"),
        ("application/octet-stream", b"plain words", "text/plain"),
        ("image/png", b"%PDF-1.7", "image/png"),
    ],
)
def test_a_generic_media_type_is_detected_from_the_content(declared, body, found):
    assert media_type_of(declared, body) == found
    assert may_be_read(declared, body) == is_read(found)


def test_every_readable_document_has_canonical_xml():
    fields = Headers((("content-type", DOCX),))
    written = canonical_xml(PAGE, Fetched(200, fields, docx("<w:p><w:r><w:t>a&amp;b</w:t></w:r></w:p>")))
    assert written is not None
    assert b"<p>a&amp;b</p>" in written[0]
    assert canonical_xml(PAGE, Fetched(200, Headers((("content-type", "image/png"),)), b"x")) is None
    feed = Fetched(200, Headers((("content-type", "application/atom+xml"),)), b'<feed xmlns="u"><a/></feed>')
    assert canonical_xml(PAGE, feed) == (
        b'<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="u"><a/></feed>\n',
        "application/xml",
    )


def test_excessive_markdown_markup_is_kept_as_text_and_reported():
    """A markup character costs as much time as a hundred others."""
    dense = markdown.html_of("# Title\n\n" + "[x](/y) " * 20_000)
    assert re.fullmatch("long: the text after [0-9]+,[0-9]+ characters was read as plain text", dense.fault)
    assert dense.html.count("[x](/y)") + dense.html.count('<a href="/y">x</a>') == 20_000
    assert 0 < dense.html.count("<a ") < 20_000
    items = markdown.html_of("* a\n" * 50_000)
    assert items.html.count("<li>") <= markdown.SIGNS_MOST + 200_000 // markdown.CHARS_A_SIGN
    assert items.html.count("<li>") + items.html.count("* a") == 50_000


def test_a_long_markdown_changelog_is_read_completely():
    line = (
        "* [`0123456789`](https://a.example/commit/0123456789) - **doc**: say what "
        "becomes of a page that is not there\n"
    )
    found = markdown.html_of(line * 5_000)
    assert (found.fault, found.html.count("<a ")) == ("", 5_000)
