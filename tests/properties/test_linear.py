# ruff: noqa: E501
"""Readers of untrusted input take linear time, whatever its shape.

Compares the CPU time of this thread for four times the input: a quadratic reader takes sixteen times as long. Times
below a floor are not compared, because they depend on other load.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest

from periplus.document.canonical_xml import xml_of_html, xml_of_xml
from periplus.document.dates import feed_dates, written_dates
from periplus.document.decode import decode
from periplus.document.links import fragment_verdict, urls
from periplus.document.rewriting import rewritten_css, rewritten_html, rewritten_xml
from periplus.document.robots import page_directives, parse_robots
from periplus.document.sitemaps import read_sitemap
from periplus.document.understand import understand
from periplus.errors import InvalidUrl, UsageError
from periplus.masking import without_secrets
from periplus.model.visit import Fetched, Headers
from periplus.retrieval.query import parse
from periplus.urls.canonical import canonical, resolve
from periplus.urls.mailto import mailto_problem
from periplus.urls.url_patterns import plain, url_patterns

PAGE = canonical("http://a.example/dir/page.html")
SIZE = 50_000
FLOOR_S = 0.5  # for the larger input: a quadratic reader needs seconds
MOST_TIMES = 10  # largest ratio for four times the input; 16 is quadratic


def document(media_type: str) -> Callable[[str], object]:
    return lambda text: understand(PAGE, Fetched(200, Headers((("content-type", media_type),)), text.encode()))


def field(name: str) -> Callable[[str], object]:
    fields = lambda text: Headers((("content-type", "text/html"), (name, text)))  # noqa: E731
    return lambda text: understand(PAGE, Fetched(200, fields(text), b"<p>x"))


def address(text: str) -> None:
    for read in (
        lambda: canonical(f"http://a.example/{text}"),
        lambda: canonical(f"http://{text}"),
        lambda: resolve(text, PAGE),
    ):
        try:
            found = read()
        except InvalidUrl:
            continue
        found = found if isinstance(found, str) else found[0]
        for part in (url_patterns, plain):
            part(found)


def query(text: str) -> None:
    with contextlib.suppress(UsageError):
        parse(text)


def rewritten(text: str) -> None:
    rewritten_html(text, lambda base: lambda url: url, "p", with_scripts=False)
    rewritten_xml(f"<svg xmlns='http://www.w3.org/2000/svg'>{text}", lambda base: lambda url: url)
    rewritten_css(text, lambda url: url)


READERS: dict[Callable[[str], object], str] = {
    document("text/html; charset=utf-8"): """<div> <b> <font|color=a>x <a|href=x> <b><p>x <table><b> <table><tr><td> <ul><li>
        <svg> <template> <select><option> <dl><dt><dd> <button> </p> </i></b> < <a| <!-- <!--- & &#x41 &notit
        <a|href='|" <p|title="a| a1=1| <a|href="/x?a=%31">y</a> <base|href=x> <img|srcset="| <img|srcset=",|
        <style>url( <style>@import| <p|style="background:url(x)"> <style>/* <script><!--<script> <textarea> <h1>x</h1>
        <p|lang="en">hello|world 1.|1.|2020| 1 1. | \u65e5 \u0301 <noscript> <script|type="application/ld+json">[
        <script|type="application/ld+json">{"a": <time|datetime=2020-01-01>x</time> <math><mi> <ruby><rt> <frame|src=x>
        <link|rel=alternate|hreflang=a|href=x> <meta|name=robots|content=x> <form> <plaintext>""",
    document("text/plain"): "a\\n a\\n\\n http://a/| a| | \\t 1. www.a@b.",
    document("text/markdown"): "* *a|**b| [ ![[]() ` > <a| [a]:|/u\\n a<? & \\\\ ~~a [a](( www.a@b. *|a\\n 1)|\\n `a`` [](b\" a**b |a|b|\\n",
    document("application/xml"): "<a> <a|b='1'/> <?x|y?> <!-- <![CDATA[ &x; <!DOCTYPE|a[ <!ENTITY|x|'y'>",
    document("application/xhtml+xml"): "<div> <a|xmlns:b='1'>",
    document("application/rtf"): "{\\rtf1 { \\'e1 {\\fonttbl{\\f0|a;} \\bin1| \\uc9\\u1|",
    document("application/rss+xml"): "<rss> <item> <item><title>x <link>a</link> <pubDate>(((",
    document("image/svg+xml"): "<g> <a|href='x'>",
    field("link"): "<a>;rel=x, < <a>;a=\" , ;",
    field("content-type"): ";charset=\" ; text/html;",
    field("last-modified"): "( 1 Mon,|",
    field("x-robots-tag"): "a: , noindex,",
    rewritten: "<a| <a|x=\" <!-- <!--|- <!--> <?x <script> <![CDATA[ <a> <a></b> <a|on=1> &x; url( \" /* url('a| \\\\",
    lambda text: rewritten_xml(f"<!DOCTYPE svg [{text}", lambda base: lambda url: url): "<!ENTITY|x|'y'> <!ENTITY| ' [ <!--",
    lambda text: (xml_of_html(text), xml_of_xml(text)): "<a> <a|b='c'> &x; <!-- <![CDATA[ <!DOCTYPE|a[",
    lambda text: read_sitemap(text.encode(), PAGE): """<url> <url><loc| <loc| <loc> <loc><![CDATA[ <!-- http://a/|\\n <lastmod>1 &amp;
        <entry><link|href <link|rel='self'|href='x'/> <a \\r <item><link>http://a/</link><pubDate>(</pubDate> <sitemap><loc>a""",
    lambda text: feed_dates(text.encode(), PAGE): "<item><pubDate> <rss><item> <link>http://a/</link>",
    lambda text: parse_robots(text.encode()).group_for().decide("/" + text): "Disallow:|/a*b\\n * a: User-agent:|x\\n /*$ %2a",
    lambda text: page_directives((text,), (("robots", text),)): "a: , ; noindex,",
    lambda text: list(written_dates(text, "cs")): "1 1.| 2020- leden| ",
    lambda text: list(urls(text)): "url(| url( url(' @import' /* /**/@import url(\\\\ image-set(",
    lambda text: decode(text.encode("latin-1", "replace"), "", "text/html"): "\xe8\xe9| <meta|a=\" <meta|'\" <meta|content='charset' \x1b$B!! +AGE-",
    lambda text: fragment_verdict(":~:text=" + text[: len(text) // 100] + "c", frozenset(), text=text): "a a-,b, b",
    lambda text: fragment_verdict(":~:" + text[:60], frozenset(), text="a" * len(text)): "text=zz& text=p-,a,b,-s&",
    lambda text: mailto_problem("mailto:" + text): "@ a@b.c, a. \\\\ to=a@b.c&",
    without_secrets: "b a:// a://b: postgres:// postgres://a?b& segments=a:// segments=a%3A%2F%2Fb%3A @",
    address: "a/ ../ a=1& ?sid=1& %41 a. xn--a. @ 1 a-b_c. \xe9 [ :",
    query: "( a|OR| \" - title: a*| )",
}  # fmt: skip
CASES = [
    (reader, piece.replace("|", " ").replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t"))
    for reader, pieces in READERS.items()
    for piece in pieces.split()
]


def cpu_s(reader: Callable[[str], object], text: str) -> float:
    began = time.thread_time()
    reader(text)
    return time.thread_time() - began


@pytest.mark.parametrize(("reader", "piece"), CASES, ids=[f"{n}: {piece!r}" for n, (_, piece) in enumerate(CASES)])
def test_four_times_as_much_takes_about_four_times_as_long(reader, piece):
    text = piece * (SIZE // len(piece) + 1)
    small, large = cpu_s(reader, text), cpu_s(reader, text * 4)
    if large > max(FLOOR_S, MOST_TIMES * small):  # repeated: a first call loads its tables
        small, large = min(small, cpu_s(reader, text)), min(large, cpu_s(reader, text * 4))
    assert large <= max(FLOOR_S, MOST_TIMES * small), f"{small:.3f} s, then {large:.3f} s"
