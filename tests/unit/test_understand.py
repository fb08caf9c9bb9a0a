"""Understanding of a response: from body and header to a Document."""

from __future__ import annotations

import gc

import pytest
from xxhash import xxh3_128_digest

from periplus.document.headers import sniffed_media_type
from periplus.document.media_types import is_read
from periplus.document.understand import understand
from periplus.model.page import Charset, Document, LinkKind
from periplus.model.visit import Fetched, Headers
from periplus.urls.canonical import canonical

PAGE = canonical("http://a.example/dir/page")


def document(body: bytes, media_type: str = "text/html", *fields: tuple[str, str]) -> Document:
    return understand(PAGE, Fetched(200, Headers((("content-type", media_type), *fields)), body))


def test_reading_a_page_leaves_no_reference_cycles():
    """Cycles would stay in memory until a garbage collection thousands of pages later."""
    body = b"<p id=b><a href=/x#a>one</a><a href=y#b>two</a><iframe srcdoc='<a href=z#c>three</a>'></iframe>"
    document(body)
    gc.collect()
    gc.disable()
    try:
        document(body)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_complete_page_is_read():
    body = """<!doctype html><html lang="cs"><head><meta charset="utf-8"><title>Titul</title><meta name="description" content="Popis">
    <link rel="canonical" href="/one"><meta name="robots" content="noindex"></head><body><h1>Nadpis</h1><p>Text  a
    <a href="x">odkaz</a>.</p><a href="mailto:a@a.example">pošta</a></body></html>""".encode()  # noqa: E501
    page = document(body, "text/html; charset=utf-8", ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"))
    assert (page.media_type, page.charset, page.language) == ("text/html", Charset("utf-8", "header"), "cs")
    assert (page.title, page.description, page.h1) == ("Titul", "Popis", "Nadpis")
    assert page.text == "Nadpis\nText a odkaz.\npošta"
    assert (page.noindex, page.nofollow, page.canonical) == (True, False, "http://a.example/one")
    assert (page.last_modified, page.expires) == (784111777.0, 0.0)
    assert [link.kind for link in page.links] == [LinkKind.ANCHOR, LinkKind.CANONICAL]
    assert [link.why for link in page.bad_links] == ["mailto"]
    assert (page.digests.body, page.digests.text) == (xxh3_128_digest(body), xxh3_128_digest(page.text.encode()))


def test_an_unread_media_type_has_digests_and_metadata_of_its_header():
    fields = (
        ("link", "<http://a.example/doc.html>; rel=canonical"),
        ("x-robots-tag", "noindex"),
        ("content-language", "cs"),
    )
    page = document(b"GIF89a <a href=x>", "image/gif", *fields)
    assert (page.text, page.title, page.charset) == ("", "", Charset("", "default"))
    assert (page.canonical, page.noindex, page.language) == ("http://a.example/doc.html", True, "cs")
    assert page.digests.text == xxh3_128_digest(b"GIF89a <a href=x>")
    assert not is_read("image/gif")


@pytest.mark.parametrize("media_type", ["text/html", "text/plain", "application/xml"])
@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"\x89PNG\r\n\x1a\n\0<a href=x>x</a>", "image/png"),
        (b"GIF89a<a href=x>x</a>", "image/gif"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF\1\2\3\4WEBPVP8 ", "image/webp"),
        (b"\0\0\0\x18ftypmp42", "video/mp4"),
        (b"%PDF-1.7", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
    ],
)
def test_binary_content_is_not_read_as_text(body, found, media_type):
    page = document(body, media_type)
    assert (page.text, page.links, page.fault, page.media_type) == (
        "",
        (),
        f"{found}, sent as {media_type}",
        media_type,
    )


@pytest.mark.parametrize(
    "body", [b"\xff\xfe<\0p\0>\0x\0", b"GIF is a format", b"RIFFRAFF, a band", b"PKP timetable", b"\0<p>x"]
)
def test_content_that_can_be_text_is_read(body):
    assert document(body, "text/html").fault == ""
    assert document(body, "text/html").text


SCRIPT = "<script src=/app.js></script>"
SHELLS = {
    "React": (
        "<title>App</title><noscript>You need to enable JavaScript to run this "
        f"app.</noscript><div id=root></div>{SCRIPT}"
    ),
    "Vue": f"<title>App</title><div id=app>Loading...</div>{SCRIPT}",
    "Angular": f"<title>App</title><app-root></app-root>{SCRIPT}",
    "inline": "<div id=root></div><script>start()</script>",
}
PAGES = {
    "rendered by the server": f"<div id=root><h1>News</h1><p>{'Words that the server sent. ' * 5}</p></div>{SCRIPT}",
    "few words, but a link": f"<div id=app><a href=/en>Enter</a></div>{SCRIPT}",
    "text beside it": f"<div id=app></div><p>{'Words. ' * 50}</p>{SCRIPT}",
    "no script": "<div id=root></div>",
    "no root": f"<p>Short.</p>{SCRIPT}",
    "empty": "",
}


@pytest.mark.parametrize(
    ("markup", "expected"), [*((page, True) for page in SHELLS.values()), *((page, False) for page in PAGES.values())]
)
def test_ours_an_empty_shell_needs_a_script(markup, expected):
    assert document(markup.encode(), "text/html").needs_script is expected


def test_plain_text_is_split_into_paragraphs():
    page = document(b"One line\r\nand more.\r\n \r\n\r\nhttp://a.example/  two\n\nthree", "text/plain")
    assert page.text == "One line and more.\nhttp://a.example/ two\nthree"
    assert page.links == ()


def test_xhtml_is_read_as_xml():
    body = b"""<?xml version="1.0" encoding="iso-8859-2"?><html xmlns="http://www.w3.org/1999/xhtml" xml:lang="cs"><head><title/>
    <script src="s.js"/></head><body><div/><p>K\xf9\xf2 <a href="x">odkaz</a></p><![CDATA[<a href="no">]]></body></html>"""  # noqa: E501
    page = document(body, "application/xhtml+xml")
    assert (page.charset, page.language, page.title) == (Charset("iso-8859-2", "xml"), "cs", "")
    assert page.text == 'Kůň odkaz\n<a href="no">'
    assert {link.target.rpartition("/")[2] for link in page.links} == {"s.js", "x"}


def test_xhtml_with_errors_is_read_as_html():
    assert document(b"<html><p>one<p>two &nbsp; <a href=x>three</a>", "application/xhtml+xml").text == "one\ntwo three"


def test_feeds_and_other_xml_are_read():
    rss = (
        b"<rss><channel><title>T</title><link>http://a.example/</link><item><title>"
        b"I</title><link>/i</link><enclosure "
        b"url='m.mp3'/></item></channel></rss>"
    )
    page = document(rss, "application/rss+xml")
    assert (page.title, page.text) == ("T", "T\nI")
    assert [link.target for link in page.links] == ["http://a.example/", "http://a.example/i", "http://a.example/m.mp3"]
    atom = (
        b'<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="CS"><title>T</title><link href="/x"/><link '
        b'rel="alternate" href="/y"/></feed>'
    )
    page = document(atom, "application/atom+xml")
    assert (page.language, [(link.target[-1], link.kind) for link in page.links]) == (
        "cs",
        [("x", LinkKind.RELATED), ("y", LinkKind.ALTERNATE)],
    )
    book = (
        b'<?xml-stylesheet href="b.xsl"?><book xmlns:xlink="http://www.w3.org/1999/xlink"><p '
        b'xlink:href="z">w</p></book>'
    )
    assert [link.target[-5:] for link in document(book, "text/xml").links] == ["b.xsl", "dir/z"]
    assert document(b"<svg xml:lang='CS'><title>T</title></svg>", "image/svg+xml").language == "cs"


@pytest.mark.parametrize(
    ("feed", "expected"),  # {atom}: the namespace of Atom
    [
        ((
"<rss><channel><link>http://h.example/n/</link><item><link>i/1</link><description>"
"{text}</description></item></channel></rss>"
), "http://h.example/n/i/"),
        ((
"<rss><channel><link>http://h.example/n/</link><item><description>"
"{text}</description></item></channel></rss>"
),
            "http://h.example/n/"),
        ("<rss><channel><title>t</title><item><description>{text}</description></item></channel></rss>",
            "http://a.example/dir/"),
        ((
"<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>"
"<channel xml:base='/x/'/><item><description>{text}</description></item></r:RDF>"
), "http://a.example/x/"),
        ((
"<rss xml:base='/x/'><channel><link>/n/</link><item><link>/i/</link><description>"
"{text}</description></item></channel></rss>"
), "http://a.example/x/"),
        ((
"<rss><channel><item><guid>http://h.example/g/1</guid><description>"
"{text}</description></item></channel></rss>"
), "http://h.example/g/"),
        ("<feed {atom}><entry xml:base='http://h.example/e/'><link href='1'/><content type='html' "
"xml:base='c/'>{text}</content>"
         "</entry></feed>", "http://h.example/e/c/"),
        ((
"<feed {atom}><link href='http://h.example/n/'/><entry><link href='i/1'/><summary "
"type='html'>{text}</summary></entry></feed>"
),
         "http://h.example/n/i/"),
        ((
"<feed {atom} xml:base='http://['><entry><link href='i/1'/><summary "
"type='html'>{text}</summary></entry></feed>"
),
         "http://a.example/dir/i/"),
    ],
)  # fmt: skip
def test_a_link_in_a_feed_is_resolved_against_xml_base_or_the_entrys_page_or_the_feed(feed, expected):
    text = "&lt;a href='sub'&gt;x&lt;/a&gt;&lt;img src='i.png'&gt;"
    found = {
        link.target: link.kind
        for link in document(
            feed.format(text=text, atom="xmlns='http://www.w3.org/2005/Atom'").encode(), "application/rss+xml"
        ).links
    }
    assert (found.get(expected + "sub"), found.get(expected + "i.png")) == (LinkKind.RELATED, LinkKind.IMAGE)


def test_a_document_in_three_encodings_has_the_same_text():
    text = "Příliš žluťoučký kůň úpěl ďábelské ódy"
    pages = [
        document(f'<meta charset="{label}"><title>x</title><p>{text}<a href="/č?ž">ř</a>'.encode(label), "text/html")
        for label in ("utf-8", "windows-1250", "iso-8859-2")
    ]
    assert len({page.digests.text for page in pages}) == 1
    assert len({page.digests.body for page in pages}) == 3
    plain = document(b"<p>Prilis zlutoucky kun upel dabelske odyr")
    assert {page.digests.folded for page in pages} == {plain.digests.folded}


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"\n <!-- c --><!DOCTYPE html>", "text/html"),
        (b"\xef\xbb\xbf<html>", "text/html"),
        (b"<?xml version='1.0'?><a/>", "text/xml"),
        (b"plain", "text/plain"),
        (b"\xff\xfea\0", "text/plain"),
        (b"GIF89a\x01\0", "application/octet-stream"),
        (b"<!---->" * 200, "text/plain"),
        (b"", "text/plain"),
    ],
)
def test_a_missing_media_type_is_detected(body, media_type):
    assert sniffed_media_type(body) == media_type
    assert understand(PAGE, Fetched(200, Headers(), body)).media_type == media_type


@pytest.mark.parametrize(
    "value", ["<" * 60_000, "<x>;a" + " " * 60_000, "<x>" + ";a=" * 20_000, '<x>;a="' + "\\" * 60_000]
)
def test_hostile_link_headers_are_harmless(value):
    document(b"", "text/html", ("link", value), ("refresh", "1" * 60_000), ("x-robots-tag", "," * 60_000))
