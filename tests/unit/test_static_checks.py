"""Static checks of markup and headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from periplus.document import html
from periplus.document.header_checks import (
    MODEL_CRAWLERS,
    page_header_notes,
    part_header_notes,
    undecided_crawlers,
)
from periplus.document.static_checks import noted_elements, vitals_notes
from periplus.model.visit import Headers

SOUND = (
    '<!DOCTYPE html><html lang="en"><head><meta name="viewport" content="width=device-width"><title>T</title></head>'
    "<body><main>{}</main></body></html>"
)


def notes(body: str = "", page: str = SOUND) -> dict[str, tuple[float, str]]:
    text = page.replace("{}", body)
    return {note.code: (note.number, note.words) for note, _ in noted_elements(text, html.parse(text))}


@pytest.mark.parametrize(
    ("paint_s", "shift", "expected"),
    [
        (None, None, []),
        (2.5, 0.1, []),
        (2.6, 0.0, [("slow-paint", "needs improvement")]),
        (4.1, 0.26, [("slow-paint", "poor"), ("layout-shift", "poor")]),
        (None, 0.25, [("layout-shift", "needs improvement")]),
    ],
)
def test_measurements_of_a_browser_are_compared_with_the_limits_of_web_vitals(paint_s, shift, expected):
    assert [(note.code, note.words) for note in vitals_notes(paint_s, shift)] == expected


def test_a_sound_page_has_no_notes():
    assert notes("<h1>A</h1><h2>B</h2><h3>C</h3><h2>D</h2><a href=/>w</a><label>x<input></label>") == {}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<h1>A</h1><h3>B</h3><h2>C</h2><h4>D</h4>", {"heading-skipped": (2, "h1 to h3")}),
        ("<h2>Begins low</h2><h3>B</h3>", {}),
        ("<h1>A</h1><div role=heading aria-level=3>B</div>", {"heading-skipped": (1, "h1 to h3")}),
        ("<h1>A</h1><h3 role=presentation>B</h3>", {}),
        ("<h1>A</h1><h2></h2>", {"heading-empty": (1, "")}),
        ("<h1><img alt=Logo></h1>", {}),
        ("<a href=/><img src=x></a><a href=/x></a>", {"link-without-name": (2, "")}),
        ("<a href=/><img alt=Home src=x></a><a href=/ aria-label=Up></a><a href=/ title=T></a><a name=x></a>", {}),
        ("<a href=/ hidden></a><div aria-hidden=true><a href=/></a></div><a href=/ style='display: none'></a>", {}),
        ("<a href=/><svg><title>Up</title></svg></a>", {}),
        ("<map><area href=/x></map>", {"link-without-name": (1, "")}),
        ("<button></button><input type=image src=x><input type=button>", {"button-without-name": (3, "")}),
        ("<button>Go</button><input type=submit><input type=image alt=Go><input type=button value=Go>", {}),
        ("<input><select></select><textarea></textarea>", {"field-without-label": (3, "")}),
        ("<label for=a>A</label><input id=a><input placeholder=b><input aria-label=c><input type=hidden>", {}),
        ("<label for=a></label><input id=a>", {"field-without-label": (1, "")}),
        ("<iframe src=/x></iframe><iframe title=Map></iframe>", {"frame-without-title": (1, "")}),
        ("<table>" + "<tr><td>1<td>2<td>3" * 3 + "</table>", {"table-without-heads": (1, "")}),
        ("<table><tr><th>1<th>2<th>3" + "<tr><td>1<td>2<td>3" * 3 + "</table>", {}),
        ("<table role=presentation>" + "<tr><td>1<td>2<td>3" * 3 + "</table>", {}),
        ("<table>" + "<tr><td>1<td>2" * 9 + "</table>", {}),
        ("<p tabindex=3>x<p tabindex=0>y<p tabindex=-1>z", {"focus-order": (1, "")}),
    ],
)
def test_faults_of_headings_names_fields_and_tables_are_noted(body, expected):
    assert notes(body) == expected


def test_faults_of_the_whole_page_are_noted():
    assert notes(page="<title>x</title><p>y") == {"main-missing": (0, ""), "viewport-missing": (0, ""),
                                                  "doctype-missing": (0, "")}  # fmt: skip
    assert notes(page=SOUND.replace('"en"', '"en_US!"')) == {"language-bad": (0, "en_US!")}
    assert notes(page=SOUND.replace('"en"', '"pt-BR"')) == {}
    assert notes(page=SOUND.replace("<main>", "<div role=main>").replace("</main>", "</div>")) == {}
    assert notes(page="<?xml version='1.0'?><!-- x -->\n" + SOUND) == {}
    assert notes("<meta http-equiv=refresh content='5; url=/x'>") == {"reloads-itself": (5, "")}
    assert notes("<meta http-equiv=refresh content='0; url=/x'>") == {}


@pytest.mark.parametrize(
    ("content", "forbids"),
    [
        ("width=device-width, user-scalable=no", True),
        ("maximum-scale=1.0", True),
        ("maximum-scale=5;user-scalable=yes", False),
        ("width=device-width", False),
        ("nonsense", False),
    ],
)
def test_a_forbidden_zoom_is_noted(content, forbids):
    assert ("zoom-forbidden" in notes(page=SOUND.replace("width=device-width", content))) is forbids


def test_an_incomplete_preview_is_noted():
    title = "<meta property=og:title content=T><meta property=og:type content=website>"
    assert notes(title) == {"preview-incomplete": (2, "og:image, og:url")}
    assert notes(title + "<meta property=og:image content=/i><meta property=og:url content=/>") == {}


@given(st.text() | st.text(alphabet="<>/=\"' abhtmlinputselect!-[]", max_size=200))
def test_the_checks_never_raise(text):
    noted_elements(text, html.parse(text))


SAFE = (
    ("content-security-policy", "default-src 'self'; frame-ancestors 'none'"),
    ("strict-transport-security", "max-age=31536000; includeSubDomains"),
    ("x-content-type-options", "nosniff"),
    ("permissions-policy", "camera=()"),
    ("etag", '"1"'),
    ("content-encoding", "gzip"),
)


def header_notes(*fields, url="https://e.org/", size=10_000, without=()):
    kept = [field for field in SAFE if field[0] not in {*without, *(name for name, _ in fields)}]
    return {note.code: note.words for note in page_header_notes(url, (*kept, *fields), "text/html", size)}


def test_a_safe_header_has_no_notes():
    assert header_notes() == {}
    assert header_notes(without=["strict-transport-security"], url="http://e.org/") == {"page-insecure": ""}
    assert header_notes(without=["strict-transport-security"], url="http://localhost:8000/") == {}


@pytest.mark.parametrize(
    ("fields", "without", "expected"),
    [
        ((), ["content-security-policy"],
         {"csp-missing": "Content-Security-Policy", "framing-allowed": "frame-ancestors"}),
        ((("x-frame-options", "DENY"),), ["content-security-policy"], {"csp-missing": "Content-Security-Policy"}),
        ((("content-security-policy", "script-src 'unsafe-inline'; frame-ancestors *"),), [],
         {"csp-weak": "script-src 'unsafe-inline'"}),
        ((("content-security-policy", "script-src 'unsafe-inline' 'nonce-x'; frame-ancestors *"),), [], {}),
        ((("content-security-policy", "img-src x; frame-ancestors *"),), [], {"csp-weak": "script-src"}),
        ((("strict-transport-security", "max-age=300"),), [], {"hsts-missing": "max-age 300 s"}),
        ((), ["strict-transport-security"], {"hsts-missing": "Strict-Transport-Security"}),
        ((), ["x-content-type-options"], {"sniffing-allowed": "X-Content-Type-Options"}),
        ((), ["permissions-policy"], {"permissions-missing": "Permissions-Policy"}),
        ((("referrer-policy", "unsafe-url"),), [], {"referrer-leak": "unsafe-url"}),
        ((("referrer-policy", "unsafe-url, strict-origin"),), [], {}),
        ((("server", "nginx/1.22.1"), ("x-powered-by", "PHP/8.2")), [], {"version-shown": "nginx/1.22.1, PHP/8.2"}),
        ((("server", "cloudflare"),), [], {}),
        ((("set-cookie", "a=1; Secure; HttpOnly; SameSite=Lax"),), [], {}),
        ((("set-cookie", "a=1; HttpOnly; SameSite=Lax"), ("set-cookie", "b=2; Secure")), [],
         {"cookie-insecure": "a", "cookie-open": "b"}),
        ((("content-encoding", "identity"),), [], {"not-compressed": ""}),
        ((), ["etag"], {"not-cacheable": ""}),
        ((("cache-control", "no-store"),), ["etag"], {}),
    ],
)  # fmt: skip
def test_faults_of_headers_are_noted(fields, without, expected):
    assert header_notes(*fields, without=without) == expected


def test_short_texts_need_no_compression():
    assert header_notes(("content-encoding", ""), size=1_000) == {}


@pytest.mark.parametrize(
    ("media_type", "control", "seconds"),
    [
        ("image/png", "max-age=31536000", None),
        ("text/css", "public, max-age=3600", 3600),
        ("application/javascript; charset=utf-8", "", 0),
        ("font/woff2", "immutable", None),
        ("image/svg+xml", "no-cache, max-age=9999999", 0),
        ("text/html", "", None),
    ],
)
def test_a_resource_with_a_cache_lifetime_below_a_week_is_noted(media_type, control, seconds):
    noted = part_header_notes(Headers((("content-type", media_type), ("cache-control", control))))
    assert [note.number for note in noted] == ([] if seconds is None else [seconds])


def test_crawlers_of_language_models_without_a_rule_are_listed():
    assert undecided_crawlers(b"") == list(MODEL_CRAWLERS)
    assert undecided_crawlers(b"User-agent: *\nDisallow: /\n") == []
    named = undecided_crawlers(b"User-agent: GPTBot\nDisallow: /\n\nUser-agent: CCBot\nAllow: /\n")
    assert named == [name for name in MODEL_CRAWLERS if name not in ("GPTBot", "CCBot")]
