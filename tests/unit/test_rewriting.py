"""Rewriting of URLs in HTML, XML and CSS without other changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from periplus.document.rewriting import rewritten_css, rewritten_html, rewritten_xml

CHARSET = '<meta charset="utf-8">'


def marked(url):
    """The URL in brackets; None for fragments and other schemes."""
    return None if url.startswith(("#", "mailto:", "data:")) else f"[{url}]"


def html(text, **options):
    bases = []

    def change(base):
        bases.append(base)
        return marked

    changed = rewritten_html(text, change, **options)
    return changed.replace(CHARSET, "", 1), bases[0]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("<a href=x>y</a>", '<a href="[x]">y</a>'),
        ("<A\n HREF = 'x y' title=\"t\">y</A>", '<A\n href="[x y]" title="t">y</A>'),
        ('<a href="?a=1&amp;b=2#f">', '<a href="[?a=1&amp;b=2#f]">'),
        ('<a href="#f">', '<a href="#f">'),
        ('<a href="mailto:a@e.org">', '<a href="mailto:a@e.org">'),
        ("<a data-href=x title='>' href=y>", "<a data-href=x title='>' href=\"[y]\">"),
        ("<!-- <a href=x> --><a href=y>", '<!-- <a href=x> --><a href="[y]">'),
        ("<!--><a href=y>", '<!--><a href="[y]">'),
        ("<script>'<a href=x>'</script><a href=y>", "<script>'<a href=x>'</script><a href=\"[y]\">"),
        ("<SCRIPT src=s>a</SCRIPT >", '<SCRIPT src="[s]">a</SCRIPT >'),
        ("<textarea><a href=x></textarea>", "<textarea><a href=x></textarea>"),
        ("a < b <1 <a href=x>", 'a < b <1 <a href="[x]">'),
        ('<img src="a.png" srcset="a.png 1x, b,c.png 2x">', '<img src="[a.png]" srcset="[a.png] 1x, [b%2Cc.png] 2x">'),
        ("<source srcset='a 1w,b 2w'>", '<source srcset="[a] 1w,[b] 2w">'),
        ('<link rel=preload imagesrcset="a 1x" href=b>', '<link rel=preload imagesrcset="[a] 1x" href="[b]">'),
        ("<body background=b>", '<body background="[b]">'),
        ("<p style=\"background: url('x.png')\">", '<p style="background: url(&quot;[x.png]&quot;)">'),
        ("<style>p{background:url(x)}</style>", '<style>p{background:url("[x]")}</style>'),
        ('<meta http-equiv="Refresh" content="3; URL=\'x\'">', '<meta http-equiv="Refresh" content="3; url=[x]">'),
        (
            "<svg><use xlink:href=i.svg#a /><image href=p></svg>",
            '<svg><use xlink:href="[i.svg#a]" /><image href="[p]"></svg>',
        ),
        ("<iframe src=f></iframe><video poster=p src=v>", '<iframe src="[f]"></iframe><video poster="[p]" src="[v]">'),
        ("<object data=o><embed src=e><form action=/f>", '<object data="[o]"><embed src="[e]"><form action="[/f]">'),
        ("<a href=x", "<a href=x"),
    ],
)
def test_urls_in_html_are_rewritten(text, changed):
    assert html(text)[0] == changed


def test_the_first_base_applies_and_all_are_removed():
    changed, base = html("<a href=x><base target=_top><base href='/b/'><base href=c>")
    assert (changed, base) == ('<a href="[x]"><base target=_top><base ><base >', "/b/")


def test_policies_and_integrity_are_removed():
    changed, _ = html(
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'self'\">"
        '<link rel=stylesheet href=s integrity="sha256-x" crossorigin>'
    )
    assert changed == (
        '<meta http-equiv="x-content-security-policy" content="default-src \'self\'"><link rel=stylesheet href="[s]"  >'
    )


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("<html><head><title>T", f"{CHARSET}<html><head><title>T"),
        ("<!DOCTYPE html>\n<html>", f"<!DOCTYPE html>\n{CHARSET}<html>"),
        ("<!-- a --><?x y><!DOCTYPE html><p>", f"<!-- a --><?x y><!DOCTYPE html>{CHARSET}<p>"),
        ("<p>T", f"{CHARSET}<p>T"),
        ("T<!DOCTYPE html>", f"{CHARSET}T<!DOCTYPE html>"),
        ("<!--><script>1</script>-->", f"{CHARSET}<!--><script>1</script>-->"),
        ("<!--->-->", f"{CHARSET}<!--->-->"),
        ("<!-- --!><p>-->", f"<!-- --!>{CHARSET}<p>-->"),
        ("<!-- ", f"{CHARSET}<!-- "),
        ("<meta charset=windows-1250>", f'{CHARSET}<meta charset="utf-8">'),
        (
            '<meta http-equiv="content-type" content="text/html; charset=iso-8859-2">',
            f'{CHARSET}<meta http-equiv="content-type" content="text/html; charset=utf-8">',
        ),
    ],
)
def test_the_charset_comes_before_scripts_and_content(text, changed):
    assert rewritten_html(text, lambda base: marked) == changed
    policy = '<meta http-equiv="Content-Security-Policy" content="a &#x27;b&#x27;">'
    assert rewritten_html(text, lambda base: marked, "a 'b'") == changed.replace(CHARSET, CHARSET + policy, 1)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("<script src=s>alert(1)</script>a<SCRIPT>b</SCRIPT>", "</script>a</SCRIPT>"),
        ("<p onclick=a() ONLOAD='b()' title=on>", "<p   title=on>"),
        ('<a href="javascript:a()">x</a>', "<a >x</a>"),
        ("<a href=' java\nscript&#58;a()'>x</a>", "<a >x</a>"),
        ("<form action=JavaScript:a><button formaction=vbscript:b>", "<form ><button >"),
        ("<p title='see javascript: it'>", "<p title='see javascript: it'>"),
    ],
)
def test_scripts_can_be_removed(text, changed):
    assert html(text, with_scripts=False)[0] == changed
    assert html(text)[0] != changed or text == changed


def test_a_rewritten_page_does_not_connect_to_the_web():
    text = '<link rel="x preconnect" href=//b><meta http-equiv=refresh content="0;url=http://b/"><iframe src=//b>'
    changed = (
        '<link rel="x preconnect" ><meta http-equiv="x-refresh" content="0; url=http://b/"><iframe data-src="//b">'
    )
    assert rewritten_html(text, lambda base: lambda url: url) == CHARSET + changed


def xml(text, policy=""):
    return rewritten_xml(text, lambda base: marked, policy).decode().partition("?>\n")[2]


SPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:h="http://www.w3.org/1999/xhtml"'


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("<script>a</script>t<h:script>b</h:script>", "t"),
        ("<g onload='a()' id='x'/>", '<g id="x"/>'),
        ("<a href=' java&#10;script:a()'/>", "<a/>"),
        ("<animate values='a;javascript:b()'/>", "<animate/>"),
        ("<use href='data:image/svg+xml,x#a'/>", "<use/>"),
        ("<g><h:iframe srcdoc='x'/><h:p>y</h:p></g>", "<g><h:p>y</h:p></g>"),
        ("<?xml-stylesheet href='x.xsl'?><g/>", "<g/>"),
        ("<a href='x'/><image href='#y'/>", '<a href="[x]"/><image href="#y"/>'),
        ("<style>a{b:url(x)}</style>", '<style>a{b:url("[x]")}</style>'),
        ("<text>&nbsp;&amp;&eacute;</text>", "<text>\xa0&amp;\xe9</text>"),
        ("<x xmlns='urn:x'><script onload='1'/></x>", '<x xmlns="urn:x"><script onload="1"/></x>'),
    ],
)  # fmt: skip
def test_scripts_in_svg_are_removed(text, changed):
    assert xml(f"<svg {SPACES}>{text}</svg>") == f"<svg {SPACES}>{changed}</svg>"


@pytest.mark.parametrize(
    "text", ["<image href='http://b/x'/>", "<style>@import 'http://b';</style>", r"<g style='fill:u\72l(/b)'/>"]
)
def test_svg_loads_nothing_from_the_web(text):
    assert "b" not in rewritten_xml(f"<svg {SPACES}>{text}</svg>", lambda base: lambda url: None).decode()[170:]


def test_entities_cannot_hide_a_script():
    text = f"""<?xml version="1.0" encoding="utf-16"?>
        <!DOCTYPE svg [<!ENTITY s "<script>a</script>"><!ENTITY j "javascript:a">
        <!ENTITY n "http://www.w3.org/2000/svg"><!ATTLIST g onload CDATA "a()">]>
        <s:svg xmlns:s="&n;" {SPACES}>&s;<g/><a href="&j;"/></s:svg>"""
    assert xml(text) == f'<s:svg xmlns:s="http://www.w3.org/2000/svg" {SPACES}>&amp;s;<g/><a/></s:svg>'


@pytest.mark.parametrize("text", ["", "no XML", "<!DOCTYPE svg>", f"<script {SPACES}>a</script>", "\x00<svg/>"])
def test_invalid_xml_becomes_empty(text):
    assert rewritten_xml(text, lambda base: marked) == b""


def test_truncated_xml_is_completed():
    assert xml(f"<svg {SPACES}><g><a href='x' onclick='a()'>t") == f'<svg {SPACES}><g><a href="[x]">t</a></g></svg>'


def test_the_policy_comes_first_in_xhtml():
    space = 'xmlns="http://www.w3.org/1999/xhtml"'
    head = '<base href="/b/"/><meta http-equiv="refresh" content="0"/><script>a</script>'
    text = f'<html {space}>{head}<p><a href="x&amp;y">t</a></p></html>'
    policy = '<meta http-equiv="Content-Security-Policy" content="p"/>'
    changed = f'<html {space}><head>{policy}</head><base/><meta content="0"/><p><a href="[x&amp;y]">t</a></p></html>'
    assert xml(text, "p") == changed


@pytest.mark.parametrize(
    ("sheet", "changed"),
    [
        ("a{b:url(x)}", 'a{b:url("[x]")}'),
        ("a{b:url( 'x y' )}", 'a{b:url("[x y]")}'),
        ('@import "x.css" screen;', '@import "[x.css]" screen;'),
        ("@IMPORT url(x.css);", '@IMPORT url("[x.css]");'),
        ("/* url(x) */ a{content:'url(y)'}", "/* url(x) */ a{content:'url(y)'}"),
        ("a{b:url(data:image/png;base64,AA==)}", "a{b:url(data:image/png;base64,AA==)}"),
        (r"a{b:url(x\20 y)}", 'a{b:url("[x y]")}'),
        ("a{b:url()}", "a{b:url()}"),
    ],
)
def test_urls_in_css_are_rewritten(sheet, changed):
    assert rewritten_css(sheet, marked) == changed


@given(st.text(st.sampled_from("<>!-/\"'= abhrefscriptyl\n&;("), max_size=60))
def test_without_changes_the_text_is_the_same(text):
    assert rewritten_css(text, lambda url: None) == text
    page = rewritten_html(text, lambda base: lambda url: None)
    assert page.replace(CHARSET, "", 1) == text or "base" in text or "meta" in text


@pytest.mark.parametrize(
    "text", ["<a ", '<a x="', "<!--", "<!-- -", "<a x=y ", "<script>", "<![CDATA[", "<a>", "<a></b>"]
)
def test_hostile_pages_take_linear_time(text):
    """A million characters take at most a few seconds."""
    rewritten_html(text * (1_000_000 // len(text)), lambda base: marked, "p", with_scripts=False)
    rewritten_xml(text * (1_000_000 // len(text)), lambda base: marked)
    rewritten_css("url(" * 100_000 + '"' * 100_000 + "/*" * 100_000, marked)
