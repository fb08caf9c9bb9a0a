"""URLs changed in HTML and CSS; all else stays as it was written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from periplus.document.rewriting import rewritten_css, rewritten_html


def marked(url):
    """Every URL but fragments and other schemes, between brackets."""
    return None if url.startswith(("#", "mailto:", "data:")) else f"[{url}]"


def html(text, **options):
    bases = []

    def change(base):
        bases.append(base)
        return marked

    changed = rewritten_html('<meta charset="utf-8">' + text, change, **options)
    return changed.removeprefix('<meta charset="utf-8">'), bases[0]


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
def test_urls_in_html(text, changed):
    assert html(text)[0] == changed


def test_the_first_base_counts_for_all_and_goes():
    changed, base = html("<a href=x><base target=_top><base href='/b/'><base href=c>")
    assert (changed, base) == ('<a href="[x]"><base target=_top><base ><base >', "/b/")


def test_what_a_file_cannot_obey_goes():
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
        ("<html><head><title>T</title>", '<html><head><meta charset="utf-8"><title>T</title>'),
        ("<p>T", '<meta charset="utf-8"><p>T'),
        ("<meta charset=windows-1250>", '<meta charset="utf-8">'),
        (
            '<meta http-equiv="content-type" content="text/html; charset=iso-8859-2">',
            '<meta http-equiv="content-type" content="text/html; charset=utf-8">',
        ),
    ],
)
def test_the_charset_becomes_utf_8(text, changed):
    assert rewritten_html(text, lambda base: marked) == changed


def test_xhtml_stays_well_formed():
    text = '<?xml version="1.0" encoding="iso-8859-1"?><html><head/><a href="x&amp;y"/></html>'
    changed = rewritten_html(text, lambda base: marked, is_xml=True)
    assert changed == '<?xml version="1.0" encoding="utf-8"?><html><head/><a href="[x&amp;y]"/></html>'


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
def test_urls_in_css(sheet, changed):
    assert rewritten_css(sheet, marked) == changed


@given(st.text(st.sampled_from("<>!-/\"'= abhrefscriptyl\n&;("), max_size=60))
def test_nothing_changed_is_the_same_text(text):
    assert rewritten_css(text, lambda url: None) == text
    page = '<meta charset="utf-8">' + text
    assert rewritten_html(page, lambda base: lambda url: None) == page or "base" in text or "meta" in text


@pytest.mark.parametrize("text", ["<a ", '<a x="', "<!--", "<a x=y ", "<script>", "<![CDATA["])
def test_hostile_pages_take_linear_time(text):
    """A million characters, in some seconds at the very most."""
    rewritten_html(text * (1_000_000 // len(text)), lambda base: marked)
    rewritten_css("url(" * 100_000 + '"' * 100_000 + "/*" * 100_000, marked)
