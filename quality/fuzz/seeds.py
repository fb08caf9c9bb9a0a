"""Small complete examples of every input format, as seeds for the fuzzer."""

from __future__ import annotations

import gzip
import sys
import zlib
from pathlib import Path

import brotli
import zstandard

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from document_files import docx, epub, odt  # noqa: E402 - the tests make the same files
from periplus.model.page import Block, BlockKind, Blocks  # noqa: E402
from periplus.model.visit import Headers  # noqa: E402
from periplus.store.bodies import BodyCodec, pack_blocks, pack_headers  # noqa: E402

URLS = [
    *(
        b"http://a.example/",
        b"HTTPS://User:pw@B%C3%BCcher.example:443/a/../b//c;jsessionid=1?x=%7e&y#z",
        b"//b",
        b"/\\b",
        b"?q",
        b"#f",
        b"..",
        b"http://[::1]:80/",
    ),
    *(
        b"http://xn--bcher-kva.example",
        b"http://0x7f.1/",
        b"mailto:a@b.example?subject=x",
        b"tel:+420 123",
        b"javascript:alert(1)",
        b"http:x",
        b"data:,x",
    ),
]
ROBOTS = [
    (
        b"User-agent: *\nDisallow: /private\nAllow: /private/open$\nCrawl-delay: 2\n"
        b"Sitemap: http://a.example/s.xml\n\0private/open"
    ),
    b"\xef\xbb\xbfuser-agent: periplus\r\nuser-agent: x\r\ndisalow: /*?q=*&\r\n#c\r\n\0a?q=1&",
]
_URLSET = (
    b'<?xml version="1.0"?><urlset '
    b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://a.example/&amp;</loc><lastmod>'
    b"2026-01-01</lastmod></url></urlset>"
)
SITEMAPS = [
    *(_URLSET, gzip.compress(_URLSET, mtime=0), b"http://a.example/1\nhttp://a.example/2\n"),
    b"<sitemapindex><sitemap><loc>http://a.example/s2.xml</loc></sitemap></sitemapindex>",
    (
        b"<rss><channel><item><link>http://a.example/i</link><pubDate>Mon, 01 Jan 2026 00:00:00 "
        b"GMT</pubDate></item></channel></rss>"
    ),
    (
        b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><link '
        b'href="/x"/><published>2026-01-01T00:00:00Z</published></entry></feed>'
    ),
]
_TEXT = "Příliš žluťoučký kůň úpěl ďábelské ódy. "
CHARSETS = [
    *(
        label.encode() + b"\0" + (_TEXT * 3).encode(label, "replace")
        for label in ("utf-8", "windows-1250", "iso-8859-2", "utf-16", "koi8-r", "shift_jis")
    ),
    b"\0<meta charset=windows-1250><p>\x9e\xe1k",
    b"x\0<?xml version='1.0' encoding='utf-16le'?>",
]
_BODY = b"<p>The harbour lies behind the mole.</p>" * 20
CODINGS = [
    *(b"gzip\0" + gzip.compress(_BODY, mtime=0), b"deflate\0" + zlib.compress(_BODY), b"br\0" + brotli.compress(_BODY)),
    *(
        b"zstd\0" + zstandard.compress(_BODY),
        b"gzip, br\0" + brotli.compress(gzip.compress(_BODY, mtime=0)),
        b"x\0http://a.example/",
        b"\x00120",
    ),
]
HEADERS = [
    b"<http://a.example/c>; rel=\"canonical\", </n>; rel=next; title*=utf-8''x\ntext/html; charset=utf-8\n0; url=/r\n"
    b"noindex, unavailable_after: 1 Jan 2030\n"
    b"Mon, 01 Jan 2026 00:00:00 GMT\n-1\ncs"
]
WORDS = [
    "On 3. května 2026 v 10:00 and May 3, 2026, 2026-05-03T10:00:00+02:00".encode(),
    b"@import url('a.css'); a{b:url(data:x)} <a id=x name=y>#:~:text=a,b&text=-c",
]
WARC = [
    b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
    b"Content-Type: application/http; msgtype=response\r\n"
    b"Content-Length: 50\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n\r\n\r\n",
]
WARC += [gzip.compress(WARC[0], mtime=0), zstandard.compress(WARC[0])]
SETTINGS = [
    (
        b'[settings]\nmax_depth = 3\ndelay_s = 0.5\nmine = ["a.example"]\n[[site]]\nsite = "a.example"\nwww = "drop"\n'
        b'ignored = ["utm_*"]\nslash = "keep"\n'
    ),
    (
        b'[[script]]\npath = ["/a.php"]\nrequired = ["id"]\none_of = ["a", "b"]\noptional = ["c"]\n'
        b'default = {c = "1"}\nsort = true\n'
    ),
]
QUERIES = [
    b'harbour -fog "deep sea" site:a.example after:2026-01-01 (a OR b) title:x',
    "přístav +mlha NOT (a | b) date:2026-05".encode(),
]
_BLOCKS = [
    Block(BlockKind.TITLE, "t", "html/head"),
    Block(BlockKind.PARAGRAPH, "a", "html/body/p", language="cs"),
    Block(BlockKind.ITEM, "b", "html/body/ul/li"),
]
KEPT = [
    BodyCodec().pack(_BODY, None),
    pack_blocks(Blocks.of(_BLOCKS)),
    pack_headers(Headers((("content-type", "text/html"),), "HTTP/1.1 200 OK")) or b"",
    b"\0\1\1",
]

_HTML = (
    b'<!doctype html><html lang=cs><head><base href="/b/"><meta '
    b'charset=utf-8><title>T</title><link rel=canonical href="/c">'
    b"<meta name=robots content=noindex>"
    b'<meta http-equiv=refresh content="0; url=/r"><script type="application/ld+json">'
    b'{"@type":"Article","datePublished":"2026-01-01"}</script></head><body><nav>'
    b'<a href="x?a=1&amp;b">y</a></nav><main><h1>H</h1><p>words <img srcset="a.png 1x, b.png 2x" '
    b'alt="i"><table><tr><td>c<li>d</table>'
    b'<svg><a xlink:href="#s"/></svg>'
    b"<template><p>t</template><style>@import 'a.css';</style></main><footer>f"
)


def _pdf() -> bytes:
    import typst

    return bytes(typst.compile(b'= One\nwords #link("http://a.example/")[x]\n- two'))  # type: ignore[arg-type]


_RTF = rb"{\rtf1\ansi\ansicpg1250{\fonttbl{\f0\fcharset238 A;}}{\info{\title t}}\f0 a\'f8\u345?\par"
_RTF += rb'{\field{\*\fldinst HYPERLINK "http://a/"}{\fldrslt x}}\cell}'
_ODT = odt('<text:h text:outline-level="2">a</text:h><text:p>b<text:s text:c="3"/><text:a>c</text:a></text:p>')
_WORD = docx(
    '<w:p><w:pPr><w:outlineLvl w:val="1"/></w:pPr><w:r><w:t>a</w:t></w:r></w:p><w:tbl><w:tr><w:tc/></w:tr></w:tbl>',
    core="<dc:title>x</dc:title>",
)
_OFFICE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
DOCUMENTS = {  # name -> (media type, examples)
    "html": ("text/html",
        [_HTML, b"<p>a<p>b", b'<a href="http://b.example/">x</a><iframe src=/f></iframe><form action=/g>']),
    "xhtml": ("application/xhtml+xml",
        [b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><a href="/x">y</a></body></html>',
            _HTML]),
    "xml": ("application/xml",
        [b"<!DOCTYPE a [<!ENTITY b 'c'>]><a><b>&b;</b></a>",
            b"<rss><channel><item><link>http://a/</link></item></channel></rss>"]),
    "text": ("text/plain", [b"Title\n=====\n\n- one\n- two\n\n1. three\n\nwords http://a.example/ more\n\x0c"]),
    "markdown": ("text/markdown",
        [b"# T\n\n[a](/b) ![i](c) `d`\n\n| a | b |\n|---|---|\n| c | d |\n\n```\ncode\n```\n> q\n1. x\n"]),
    "sgml": ("text/sgml",
        [(
b"<!doctype article><article><title>t</title><sect1><title>s<p>a<em/b/<itemize><item>"
b"c</itemize>&lt;<![%a;[x]]></article>"
)]),
    "rtf": ("application/rtf", [_RTF]),
    "docx": (_OFFICE, [_WORD]),
    "odt": ("application/vnd.oasis.opendocument.text", [_ODT]),
    "epub": ("application/epub+zip", [epub({"a": "<p>x<a href='y'>z</a></p>", "b": "<h1>q</h1>"}, "t")]),
    "pdf": ("application/pdf", [_pdf()]),
    "feed": ("application/atom+xml",
        [(
b'<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><entry><title>e</title>'
b'<link href="/x"/></entry></feed>'
)]),
}  # fmt: skip
