"""Extraction of links: every kind, merging, positions, limits."""

from __future__ import annotations

from html import escape

import pytest

from periplus.document import links as document_links
from periplus.document.conversion import Content, Source
from periplus.document.markup import read_html
from periplus.document.page_rules import ELEMENTS_MOST
from periplus.document.understand import understand
from periplus.model.page import BadLink, Link, LinkKind, Position
from periplus.model.visit import Fetched, Headers
from periplus.model.web import Url
from periplus.urls.canonical import canonical

PAGE = canonical("http://a.example/dir/page.html?q=1")


def content(html: str, *fields: tuple[str, str], charset: str = "utf-8") -> Content:
    return read_html(Source(PAGE, Headers(fields), html.encode("utf-8", "surrogatepass"), charset))


def links(html: str, *fields: tuple[str, str]) -> tuple[Link, ...]:
    return content(html, *fields).links


def targets(html: str, kind: LinkKind = LinkKind.ANCHOR) -> list[str]:
    return [link.target.removeprefix("http://a.example") for link in links(html) if link.kind is kind]


def bad(html: str) -> list[tuple[str, str]]:
    return [(link.text, link.why) for link in content(html).bad_links]


def test_the_limit_counts_distinct_links():
    """A page of documentation links to each function dozens of times."""
    found = content("<a href=x#p>x</a>" * 30_000 + "<a href=last>y</a>")
    assert [(link.target, link.times) for link in found.links] == [
        ("http://a.example/dir/x", 30_000),
        ("http://a.example/dir/last", 1),
    ]
    assert found.bounds == ()


@pytest.mark.parametrize(
    ("markup", "most", "what"),
    [
        ("<a href=a{}>a</a>", 20_000, "distinct links"),
        ("<a href=tel:{}>a</a>", 2_000, "distinct links that are none"),
        ("<a href=#a{}>a</a>", 20_000, "places of one page linked to"),
    ],
)
def test_a_reached_limit_is_reported(markup, most, what):
    assert content("".join(map(markup.format, range(most + 1)))).bounds == (f"more than {most:,} {what}",)
    assert content("".join(map(markup.format, range(most)))).bounds == ()


def test_fragments_of_merged_links_keep_their_order():
    written = "<a href=?q=1#b>1</a><a href=#c>2</a><a href=page.html?q=1#a>3</a><a href='#d e'>4</a><a href=#b>5</a>"
    (link,) = links(written)
    assert (link.fragments, link.times, link.anchor) == (("b", "c", "a", "d%20e"), 5, "1")


def test_elements_with_links_beyond_the_limit_are_ignored():
    read = content("<img src=a>" * (ELEMENTS_MOST + 1))
    assert read.bounds == ("more than 200,000 elements of one kind with links",)
    assert [link.times for link in read.links] == [ELEMENTS_MOST]


# A page with each kind once: markup, linked file names, kind.
EVERY_KIND: list[tuple[str, str, LinkKind]] = [
    ('<a href="k1">x</a>', "k1", LinkKind.ANCHOR),
    ('<map><area href="k2" alt="m"></map>', "k2", LinkKind.AREA),
    ('<link rel="stylesheet" href="k3">', "k3", LinkKind.STYLE),
    ('<link rel="shortcut icon" href="k4">', "k4", LinkKind.ICON),
    ('<link rel="canonical" href="k5">', "k5", LinkKind.CANONICAL),
    ('<link rel="alternate" hreflang="cs" href="k6">', "k6", LinkKind.ALTERNATE),
    ('<link rel="next" href="k7">', "k7", LinkKind.RELATED),
    ('<link rel="manifest" href="k8">', "k8", LinkKind.OBJECT),
    ('<link rel="sitemap" href="k9">', "k9", LinkKind.SITEMAP),
    ('<link rel="preload" as="image" href="k10">', "k10", LinkKind.IMAGE),
    ('<img src="k11" srcset="k12 1x, k13 2x" data-src="k14" longdesc="k15">', "k11 k12 k13 k14", LinkKind.IMAGE),
    ("", "k15", LinkKind.RELATED),
    ('<picture><source srcset="k16, k17 2x"><img></picture>', "k16 k17", LinkKind.IMAGE),
    ('<video src="k18" poster="k19"><source src="k20"><track src="k21"></video>', "k18 k19 k20 k21", LinkKind.MEDIA),
    ('<audio src="k22"></audio>', "k22", LinkKind.MEDIA),
    ('<iframe src="k23"></iframe>', "k23", LinkKind.IFRAME),
    (
        '<embed src="k24"><object data="k25"></object><applet code="k26" archive="k27"></applet>',
        "k24 k25 k26 k27",
        LinkKind.OBJECT,
    ),
    (
        '<form action="k28"><input type="image" src="k29"><button formaction="k30">b</button></form>',
        "k28 k30",
        LinkKind.FORM,
    ),
    ("", "k29", LinkKind.IMAGE),
    (
        '<blockquote cite="k31">a</blockquote><q cite="k32">b</q><ins cite="k33">c</ins><del cite="k34">d</del>',
        "k31 k32 k33 k34",
        LinkKind.CITE,
    ),
    ('<meta http-equiv="refresh" content="9; url=k35">', "k35", LinkKind.REFRESH),
    ('<script src="k36"></script>', "k36", LinkKind.SCRIPT),
    (
        '<svg><a xlink:href="k37">s</a><image href="k38"/><use xlink:href="k39#i"/><a href="k40">t</a></svg>',
        "k37 k40",
        LinkKind.ANCHOR,
    ),
    ("", "k38 k39", LinkKind.IMAGE),
    (
        '<style>@import "k41"; @import url(k42); p { background: url("k43") } /* url(no) */</style>',
        "k41 k42",
        LinkKind.STYLE,
    ),
    ("", "k43", LinkKind.IMAGE),
    ("<p style=\"background: URL( 'k44' )\">z</p>", "k44", LinkKind.IMAGE),
    ('<table background="k45"><tr><td>t</td></tr></table>', "k45", LinkKind.IMAGE),
    ('<noscript><a href="k46">n</a></noscript>', "k46", LinkKind.ANCHOR),
    ('<template><a href="k47">t</a></template>', "k47", LinkKind.ANCHOR),
    ('<iframe srcdoc="<a href=k51>x</a><img src=k52>"></iframe>', "k51", LinkKind.ANCHOR),
    ('<link rel="preload" as="image" imagesrcset="k53, k54 2x">', "k52 k53 k54", LinkKind.IMAGE),
    ("<p style='background: image-set(\"k55\" 1x)'>z</p>", "k55", LinkKind.IMAGE),
]
NO_LINKS = """
<!-- <a href="no1">x</a> <img src=no2> --><script>var a = '<a href="no3">x</a>'; location = "no4";</script><textarea><a href="no5"></textarea>
<title><a href="no6"></title><svg><text><![CDATA[<a href="no7">]]></text><use href="#icon"/></svg><p title='<a href="no8">'>&lt;a href="no9"&gt;</p>
<img src=""><img src="data:image/gif;base64,R0lG"><iframe src="about:blank"></iframe><iframe srcdoc="<p title=no10>"></iframe><a name="no11">x</a>
<style>p:before { content: "url(no12)" } b { fill: url(#no13) }</style><link rel="preconnect" href="http://no14.example/">
"""  # noqa: E501


def test_every_kind_of_link_is_found_and_nothing_else():
    html = "".join(markup for markup, _, _ in EVERY_KIND) + NO_LINKS
    found = content(html, ("link", '<k48>; rel="prev", <k49>; rel=canonical; title="a, b"'), ("refresh", "3; url=k50"))
    expected = {(name, kind) for _, names, kind in EVERY_KIND for name in names.split()}
    expected |= {("k48", LinkKind.RELATED), ("k49", LinkKind.CANONICAL), ("k50", LinkKind.REFRESH)}
    assert {(link.target.removeprefix("http://a.example/dir/"), link.kind) for link in found.links} == expected
    assert sum(link.times for link in found.links) == 55
    assert found.bad_links == ()


def test_frames_and_manifests_are_links():
    html = '<html manifest="m"><frameset><frame src="f1"><frame src="f2" longdesc="d"></frameset></html>'
    assert targets(html, LinkKind.FRAME) == ["/dir/f1", "/dir/f2"]
    assert targets(html, LinkKind.OBJECT) == ["/dir/m"]


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("/other/", "/other/x"),
        ("sub/file.html", "/dir/sub/x"),
        ("http://b.example/", "http://b.example/x"),
        ("//b.example/y?z", "http://b.example/x"),
        ("javascript:no()", "/dir/x"),
        ("http://[bad/", "/dir/x"),
        ("", "/dir/x"),
    ],
)
def test_relative_links_are_resolved_against_the_base(base, expected):
    assert targets(f'<base href="{base}"><a href="x">x</a>') == [expected]


def test_only_the_first_base_with_href_counts():
    assert targets('<base target="_top"><base href="/one/"><base href="/two/"><a href="x">x</a>') == ["/one/x"]


@pytest.mark.parametrize(
    ("charset", "query", "expected"),
    [
        ("windows-1250", "q=č", "q=%E8"),
        ("windows-1251", "q=я&a=%ff", "q=%FF&a=%ff"),
        ("windows-1252", "price=£2&µ=unit", "price=%A32&%B5=unit"),
        ("windows-1252", "\u2020", "%86"),
        ("windows-1250", "q=日", "q=%26%2326085%3B"),
        ("windows-1250", "a b\"<>'č", "a%20b%22%3C%3E%27%E8"),
        ("big5", "\u2020", "%26%238224%3B"),
        ("big5", "Ê一", "%26%23202%3B%A4@"),  # Ê belongs to the Hong Kong extension, which is decoded but not encoded
        ("big5", "\x0eA", "%0EA"),
        ("euc-kr", "\u2020", "%A2%D3"),
        ("euc-jp", "Ê日", "%26%23202%3B%C6%FC"),
        ("shift_jis", "\u2212", "%81|"),
        ("iso-2022-jp", "\x0eA", "%26%2365533%3BA"),
        ("iso-2022-jp", "\u203e\\", "%1B(J~%1B(B\\"),
        ("iso-2022-jp", "a=か&b", "a=%1B$B$+%1B(B&b"),
        ("gbk", "€𠀀", "%80%26%23131072%3B"),
        ("gb18030", "\ue5e5", "%26%2358853%3B"),
        ("gb18030", "€𠀀", "%A2%E3%952%826"),
        ("kamenicky", "č日", "%87%26%2326085%3B"),
        ("utf-8", "q=č", "q=%C4%8D"),
        ("utf-16le", "q=č", "q=%C4%8D"),
        ("utf-8", "á|", "%C3%A1|"),
        ("no-such", "q=č", "q=%C4%8D"),
    ],
)
def test_url_standard_4_4_a_query_is_sent_in_the_charset_of_its_page(charset, query, expected):
    markup = (
        f'<a href="/č{escape(query)}">p</a><a href="/s?{escape(query)}#č">q</a><form '
        f'action="/s?{escape(query)}"></form>'
    )
    found = content(f"{markup}<link rel=alternate hreflang=cs href='/s?{escape(query)}#č'>", charset=charset)
    path, anchor, alternate, form = found.links
    assert path.target.startswith("http://a.example/%C4%8D")  # paths are always UTF-8
    assert {link.target for link in (anchor, alternate, form)} == {"http://a.example/s?" + expected}
    assert (anchor.fragments, found.translations) == (("%C4%8D",), (("cs", Url("http://a.example/s?" + expected)),))


def test_queries_of_html_use_its_encoding_and_those_of_text_files_utf_8():
    header = (("content-type", "text/html; charset=windows-1250"),)
    asked = understand(
        PAGE, Fetched(200, Headers(header), b'<a href="?q=\xe8">x</a><a href="http://b.example/?q=&#x10d;">y</a>')
    ).links
    assert [link.target for link in asked] == ["http://a.example/dir/page.html?q=%E8", "http://b.example/?q=%E8"]
    markdown = (("content-type", "text/markdown; charset=windows-1250"),)
    assert [link.target for link in understand(PAGE, Fetched(200, Headers(markdown), b"[x](?q=\xe8)")).links] == [
        "http://a.example/dir/page.html?q=%C4%8D"
    ]


def test_links_in_headers_are_resolved_against_the_page():
    found = links('<base href="/other/"><p>', ("link", "<x>; rel=next"))
    assert [link.target for link in found] == ["http://a.example/dir/x"]


def test_equal_links_are_one_row_with_count_fragments_and_first_text():
    (row,) = links(
        '<a href="x#a"></a><a href="x#b"> First\n words </a><a href="x">Other</a><a '
        'href="x#a">More</a><a href=" ./x#%41 é">N</a>'
    )
    assert row == Link(
        Url("http://a.example/dir/x"),
        LinkKind.ANCHOR,
        Position.BODY,
        "First words",
        False,
        ("a", "b", "%41%20%C3%A9"),
        5,
    )


def test_spellings_of_a_url_are_one_row_with_the_first_spelling():
    (row,) = links('<a href="/%7Eu">a</a><a href="/~u#x">b</a><a href="http://a.example./%7eu">c</a>')
    assert (row.target, row.anchor, row.fragments, row.times) == ("http://a.example/%7Eu", "a", ("x",), 3)


def test_an_empty_href_and_a_fragment_link_to_the_page_itself():
    (row,) = links('<a href="">self</a><a href="#top">top</a><a href="page.html?q=1">named</a>')
    assert (row.target, row.times, row.fragments) == (PAGE, 3, ("top",))


@pytest.mark.parametrize(
    ("html", "words"),
    [
        ("<a href=x> two\n<b>words</b> </a>", "two words"),
        ('<a href=x title="t"><img alt="Home" src=i></a>', "Home"),
        ('<a href=x title="t"><img alt="" src=i></a>', "t"),
        ("<a href=x><img src=i></a><a href=x>later</a>", "later"),
        ("<a href=x></a>", ""),
    ],
)
def test_anchor_text_comes_from_text_alt_or_title(html, words):
    assert [link.anchor for link in links(html) if link.kind is LinkKind.ANCHOR] == [words]


def test_areas_and_images_have_their_alt_text():
    found = links('<map><area href="x" alt="North"></map><img src="i" alt="A hill">')
    assert {link.kind: link.anchor for link in found} == {LinkKind.AREA: "North", LinkKind.IMAGE: "A hill"}


@pytest.mark.parametrize(
    ("markup", "nofollow"),
    [
        ('<a href=x rel="nofollow">x</a>', True),
        ('<a href=x rel="external UGC">x</a>', True),
        ('<a href=x rel="sponsored">x</a>', True),
        ('<a href=x rel="noopener">x</a>', False),
        ('<area href=x rel="nofollow">', True),
        ('<meta name="robots" content="noindex, NoFollow"><a href=x>x</a>', True),
        ('<meta name="periplus" content="none"><a href=x>x</a>', True),
        ('<meta name="otherbot" content="nofollow"><a href=x>x</a>', False),
    ],
)
def test_rel_values_that_mean_nofollow(markup, nofollow):
    assert [link.nofollow for link in links(markup)] == [nofollow]


def test_nofollow_splits_rows_and_the_header_applies_to_all_links():
    assert [link.nofollow for link in links("<a href=x>x</a><a rel=nofollow href=x>x</a>")] == [False, True]
    assert [link.nofollow for link in links("<a href=x>x</a><img src=y>", ("x-robots-tag", "nofollow"))] == [True, True]


@pytest.mark.parametrize(
    ("around", "position"),
    [
        ("<nav>{}</nav>", Position.NAV),
        ("<header>{}</header>", Position.HEADER),
        ("<main><p>{}</p></main>", Position.MAIN),
        ("<aside>{}</aside>", Position.ASIDE),
        ("<footer>{}</footer>", Position.FOOTER),
        ('<div role="navigation"><ul><li>{}</ul></div>', Position.NAV),
        ('<div role=" Banner ">{}</div>', Position.HEADER),
        ('<div role="main">{}</div>', Position.MAIN),
        ('<div role="complementary">{}</div>', Position.ASIDE),
        ('<div role="contentinfo">{}</div>', Position.FOOTER),
        ('<div role="button">{}</div>', Position.BODY),
        ("<header><nav>{}</nav></header>", Position.NAV),
        ("<nav><a href=n>n</a><main>{}</main></nav>", Position.MAIN),
        ("<main><article><header>{}</header></article></main>", Position.MAIN),
        ("<article><footer>{}</footer></article>", Position.BODY),
        ("<nav>n</nav><p>{}</p>", Position.BODY),
    ],
)
@pytest.mark.parametrize("copies", [1, 40])
def test_the_position_is_the_innermost_landmark(around, position, copies):
    """Few and many elements use different code."""
    html = "<p><a href=before>b</a>" + around.format("<a href=x>x</a><img src=i>" * copies) + "<a href=after>a</a>"
    found = {(link.target.rpartition("/")[2]): link for link in links(html)}
    assert (found["x"].position, found["x"].times) == (position, copies)
    assert (found["i"].position, found["i"].times) == (position, copies)
    assert found["before"].position is found["after"].position is Position.BODY


def test_links_in_the_head_have_their_own_position():
    found = links(
        "<head><script src=s></script><link rel=next "
        "href=n><style>p{background:url(u)}</style></head><script src=t></script>"
    )
    assert {link.target[-1]: link.position for link in found} == {
        "s": Position.HEAD,
        "n": Position.HEAD,
        "u": Position.HEAD,
        "t": Position.HEAD,
    }


@pytest.mark.parametrize(
    ("href", "why"),
    [
        ("javascript:void(0)", "javascript"),
        (" java\nscript:alert('#')", "javascript"),
        ("MAILTO:me@a.example", "mailto"),
        ("tel:+420123", "tel"),
        ("data:text/html,x", "data"),
        ("ftp://a.example/x", "ftp"),
        ("http://", "malformed"),
        ("http://a b/", "malformed"),
        ("//[::1/x", "malformed"),
        ("http://a.example:99999/", "malformed"),
        ("x" * 70_000, "malformed"),
    ],
)
def test_a_bad_link_is_stored_with_its_reason(href, why):
    (row,) = content(f'<nav><a href="{href}">words</a><a href="{href}">again</a></nav>').bad_links
    assert row == BadLink(href.strip()[:2000], LinkKind.ANCHOR, Position.NAV, "words", why)


def test_urls_in_srcset_can_contain_commas():
    assert targets('<img srcset="a,b.png 1x,c.png 2x, d.png,, e.png">', LinkKind.IMAGE) == [
        "/dir/a,b.png",
        "/dir/c.png",
        "/dir/d.png",
        "/dir/e.png",
    ]


def test_urls_in_css_are_found():
    sheet = """@import 'a.css' screen; @IMPORT url( "b.css" ); x { y: url(c.png) url('d e.png'); z: "url(no)" 'url(no)' } /* url(no) /* */ w: url()"""  # noqa: E501
    assert list(document_links.urls(sheet)) == [("a.css", True), ("b.css", True), ("c.png", False), ("d e.png", False)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('image-set("a.png" 1x, "b.png" 2x)', ["a.png", "b.png"]),
        ("-webkit-image-set(url(a.png) 1x, url('b.png') 2x), url(c.png)", ["a.png", "b.png", "c.png"]),
        (
            "image-set('a,(.avif' type('image/avif'), linear-gradient(red, blue) 1x, \"b.png\" type(\"image/png\"))",
            ["a,(.avif", "b.png"],
        ),
        ("image-set('a.png' 1x", ["a.png"]),
        ("'image-set(\"no\")' image-set()", []),
    ],
)
def test_css_images_4_strings_of_an_image_set_are_urls(value, expected):
    assert [text for text, _ in document_links.urls(f"x {{ background: {value} }}")] == expected


def test_css_is_read_in_linear_time():
    for piece in ("image-set(", "image-set((", "image-set('", "image-set('',", "url(", "@import"):
        list(document_links.urls(piece * 50_000))


def test_a_srcdoc_document_inherits_the_base_unless_it_has_one():
    assert targets(
        """<base href=/b/><iframe srcdoc="<a href=x>"></iframe><iframe srcdoc="<base href=c/><a href=y>"></iframe>"""
    ) == ["/b/x", "/b/c/y"]


def test_links_beyond_the_limit_are_dropped():
    assert len(links("".join(f"<a href={i}>x</a>" for i in range(25_000)))) == 20_000


def test_translations_have_their_language_as_written():
    head = (
        "<base href=/x/><link rel='alternate' hreflang=pt-BR href=b><link rel=alternate href=feed><link "
        "rel=next hreflang=cs href=c>"
    )
    assert content(head).translations == (("pt-BR", "http://a.example/x/b"),)
