"""Reading of sitemaps and feeds, valid and broken."""

import gzip
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.document.sitemaps import MAX_ENTRIES, MAX_INFLATED_BYTES, SitemapEntry, SitemapKind, read_sitemap
from periplus.urls.canonical import canonical

HERE = canonical("https://example.org/sitemap.xml")
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def read(text):
    return read_sitemap(text if isinstance(text, bytes) else text.encode(), HERE)


def lastmod(date):
    """Modification time of a URL of a sitemap with this date."""
    url = f"<url><loc>https://example.org/</loc><lastmod>{escape(date)}</lastmod></url>"
    return read(f"<urlset>{url}</urlset>").entries[0].lastmod


def urls(text):
    return [entry.url for entry in read(text).entries]


def test_sitemaps_org_example_is_read():
    found = read(
        f"""<?xml version="1.0" encoding="UTF-8"?>
        <urlset {NAMESPACE}>
          <url><loc>http://www.example.com/?id=who</loc><lastmod>2005-01-01</lastmod><priority>0.8</priority></url>
          <url>
            <loc> http://www.example.com/catalog?item=12&amp;desc=vacation_hawaii </loc>
          </url>
        </urlset>"""
    )
    assert found.kind is SitemapKind.URLS
    assert found.entries == (
        SitemapEntry(canonical("http://www.example.com/?id=who"), 1104537600.0),
        SitemapEntry(canonical("http://www.example.com/catalog?item=12&desc=vacation_hawaii"), 0.0),
    )
    assert (found.nested, found.bad, found.cut) == ((), 0, False)


def test_sitemaps_org_index_is_read():
    found = read(
        f"<sitemapindex {NAMESPACE}><sitemap><loc>https://example.org/1.xml.gz</loc><lastmod>"
        "2004-10-01T18:23:17+00:00</lastmod></sitemap></sitemapindex>"
    )
    assert found.kind is SitemapKind.INDEX
    assert found.entries == ()
    assert found.nested == ("https://example.org/1.xml.gz",)


def test_sitemaps_org_text_file_is_read():
    found = read(
        b"\xef\xbb\xbfhttps://example.org/a\r\nHTTPS://EXAMPLE.org/b?c=%20\n\n# no\n"
        b"example.org/d\nhttps://example.org/e f\n"
    )
    assert found.kind is SitemapKind.TEXT
    assert [entry.url for entry in found.entries] == ["https://example.org/a", "https://example.org/b?c=%20"]


def test_rss_is_read():
    found = read(
        """<rss version="2.0"><channel><link>https://example.org/</link>
        <item><title>x</title><link>https://example.org/1</link><pubDate>Sun, 06 Nov 1994 08:49:37 GMT</pubDate></item>
        <item><link><![CDATA[https://example.org/2?a=1&b=2]]></link><guid>q</guid></item></channel></rss>"""
    )
    assert found.kind is SitemapKind.RSS
    assert found.entries == (
        SitemapEntry(canonical("https://example.org/1"), 784111777.0),
        SitemapEntry(canonical("https://example.org/2?a=1&b=2"), 0.0),
    )


def test_rdf_is_read():
    text = """<rdf:RDF><channel><link>https://example.org/</link></channel>
    <item rdf:about="x"><link>https://example.org/1</link><dc:date>1970-01-02</dc:date></item></rdf:RDF>"""
    assert read(text).entries == (SitemapEntry(canonical("https://example.org/1"), 86400.0),)


def test_atom_is_read():
    found = read(
        """<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://example.org/"/>
        <entry><link rel="self" href="/self"/><link rel='alternate' href='/1?a&amp;b'/><updated>1970-01-01T01:00:00Z</updated></entry>
        <entry><link href="https://example.org/2"></link></entry><entry><id>x</id></entry></feed>"""  # noqa: E501
    )
    assert found.kind is SitemapKind.ATOM
    assert found.entries == (
        SitemapEntry(canonical("https://example.org/1?a&b"), 3600.0),
        SitemapEntry(canonical("https://example.org/2"), 0.0),
    )


@pytest.mark.parametrize(
    "text",
    [
        "<urlset><url><loc>https://example.org/a?b=1&c=2</loc></url></urlset>",
        "<urlset><url><loc>https://example.org/a?b=1&#38;c=&#x32;</loc></url></urlset>",
        '<urlset xmlns="http://wrong.example/"><url><loc>https://example.org/a?b=1&amp;c=2</loc></url></urlset>',
        '<sm:urlset xmlns:sm="x"><sm:url><sm:loc>https://example.org/a?b=1&amp;c=2</sm:loc></sm:url></sm:urlset>',
        "<urlset><url><loc><![CDATA[https://example.org/a?b=1&c=2]]></loc></url></urlset>",
        "<urlset><url><loc>/a?b=1&amp;c=2</loc></url></urlset>",
        "<URLSET><URL><LOC>https://example.org/a?b=1&amp;c=2</LOC></URL></URLSET>",
        "\n\n<?xml version='1.0'?><urlset><url id='1'><loc a='b'>\nhttps://example.org/a?b=1&amp;c=2\n</loc>",
        "<urlset><url><loc>https://example.org/a?b=1&amp;c=2</loc></url><url><lo",
        (
            "<urlset><!-- <url><loc>https://example.org/x</loc></url> "
            "--><url><loc>https://example.org/a?b=1&amp;c=2</loc></url></urlset>"
        ),
        (
            "<urlset><url><image:image><image:loc>/i.png</image:loc></image:image><loc>"
            "https://example.org/a?b=1&amp;c=2</loc></url></urlset>"
        ),
        "<urlset><url><loc>https://example.org/a?b=1&amp;c=2</loc><image><loc>/i.png</loc></image></url></urlset>",
        "<urlset>" + "<url><loc>https://example.org/a?b=1&amp;c=2</loc></url>" * 2 + "</urlset>",
    ],
)
def test_ours_common_mistakes_are_accepted(text):
    for body in (text.encode(), b"\xef\xbb\xbf" + text.encode(), text.encode("utf-16"), gzip.compress(text.encode())):
        assert urls(body) == ["https://example.org/a?b=1&c=2"]


@pytest.mark.parametrize(
    ("loc", "expected"),
    [
        ("http://h.example/d<![CDATA[?a=1&b=2]]>", "http://h.example/d?a=1&b=2"),
        ("<![CDATA[http://h.example/]]>d?a=1&amp;<![CDATA[b=2]]>", "http://h.example/d?a=1&b=2"),
        ("<![CDATA[http://h.example/?f[]=1]]>", "http://h.example/?f[]=1"),
        ("<![CDATA[http://h.example/?a]]]]><![CDATA[>b]]>", "http://h.example/?a]]%3Eb"),
        ("<![CDATA[http://h.example/<!--p]]>", "http://h.example/%3C!--p"),
        ("<![CDATA[http://h.example/?a=&amp;]]>", "http://h.example/?a=&amp;"),
        ("http://h.example/<!-- <![CDATA[ -->d", "http://h.example/d"),
    ],
)
def test_xml_text_references_and_cdata_are_decoded(loc, expected):
    last = "<url><loc>http://h.example/last</loc></url>"
    assert urls(f"<urlset><url><loc>{loc}</loc></url>{last}</urlset>") == [expected, "http://h.example/last"]
    assert urls(f"<rss><item><link>{loc}</link></item><item><link>http://h.example/last</link></item></rss>") == [
        expected,
        "http://h.example/last",
    ]


def test_markup_in_cdata_is_text():
    item = (
        "<item><description><![CDATA[<link>http://no.example/</link><item>]]></description><link>"
        "http://h.example/</link></item>"
    )
    assert urls(f"<rss>{item}</rss>") == ["http://h.example/"]


def test_entities_are_never_expanded_and_urls_with_entities_are_bad():
    laughs = '<!DOCTYPE z [<!ENTITY a "ha"><!ENTITY b "&a;&a;"><!ENTITY x SYSTEM "file:///etc/passwd">]>'
    found = read(
        laughs
        + (
            "<urlset><url><loc>&x;</loc></url><url><loc>https://example.org/&b;/a</loc></url><url><loc>"
            "/c?d&e=f;g</loc></url></urlset>"
        )
    )
    assert ([entry.url for entry in found.entries], found.bad) == (["https://example.org/c?d&e=f;g"], 2)


def test_all_urls_of_an_entry_are_read():
    assert urls("<urlset><url><loc>/a</loc> <loc>/b</loc><lastmod>2020</lastmod><loc>/no</loc></url></urlset>") == [
        "https://example.org/a",
        "https://example.org/b",
    ]
    assert read("<sitemapindex><sitemap><loc>/1</loc><loc>/2</loc></sitemap></sitemapindex>").nested == (
        "https://example.org/1",
        "https://example.org/2",
    )


def test_rss_2_0_a_guid_is_a_permalink_unless_declared_otherwise():
    items = "".join(
        f"<item>{item}</item>"
        for item in (
            "<guid>http://h.example/1</guid>",
            '<guid isPermaLink="true">http://h.example/2</guid><link/>',
            '<guid isPermaLink="false">http://h.example/no</guid>',
            "<guid>tag:no</guid>",
            "<guid>http://h.example/no</guid><link>http://h.example/3</link>",
        )
    )
    assert urls(f"<rss><channel>{items}</channel></rss>") == [
        "http://h.example/1",
        "http://h.example/2",
        "http://h.example/3",
    ]


@pytest.mark.parametrize(
    ("feed", "expected"),
    [
        ("<rss><channel><link>http://h.example/n/</link><item><link>a</link></item></channel></rss>",
            "http://h.example/n/a"),
        ((
"<rss xml:base='http://h.example/x/'><channel "
"xml:base='y/'><link>http://no.example/</link><item><link>a</link></item></channel></rss>"
),
         "http://h.example/x/y/a"),
        ((
"<rss><channel><link>http://no.example/</link><item "
"xml:base='http://h.example/i/'><link>a</link></item></channel></rss>"
), "http://h.example/i/a"),
        ("<rss><channel><title>t</title><item><link>a</link></item></channel></rss>", "https://example.org/a"),
        ((
"<feed><link rel='self' href='http://no.example/'/><link "
"href='http://h.example/n/'/><entry><link href='a'/></entry></feed>"
), "http://h.example/n/a"),
        ("<feed xml:base='http://h.example/x/'><link href='/n/'/><entry xml:base='e/'><link href='a'/></entry></feed>",
            "http://h.example/x/e/a"),
        ("<feed xml:base='http://['><link href='/n/'/><entry><link href='a'/></entry></feed>", "https://example.org/a"),
    ],
)  # fmt: skip
def test_relative_urls_of_a_feed_are_resolved_against_base_or_page(feed, expected):
    assert urls(feed) == [expected]


def test_bad_urls_are_counted():
    found = read(
        "<urlset><url><loc>ftp://example.org/</loc></url><url><loc>http://</loc></url><url>"
        "<loc></loc></url><url/></urlset>"
    )
    assert (found.entries, found.bad) == ((), 2)


@pytest.mark.parametrize(
    "body",
    [b"", b"\x00", b"<html><body>Not found http://example.org/</body></html>", b"\x1f\x8b", b"\x1f\x8brubbish", b"{}"],
)
def test_other_content_is_no_sitemap(body):
    assert read(body).kind is SitemapKind.NONE


def test_entries_before_the_damage_of_a_gzip_file_are_read():
    whole = gzip.compress(("".join(f"https://example.org/{n * n}\n" for n in range(50_000))).encode())
    assert len(whole) > 70_000
    damaged = whole[:70_000] + b"\xff" * 5_000
    assert 1_000 < len(read(whole[:70_000]).entries) < 50_000
    assert len(read(damaged).entries) > 1_000


def test_limits_of_entries_and_bytes_cut_a_sitemap():
    assert not read("".join(f"https://example.org/{n}\n" for n in range(MAX_ENTRIES))).cut
    found = read("".join(f"https://example.org/{n}\n" for n in range(MAX_ENTRIES + 1)))
    assert (len(found.entries), found.cut) == (MAX_ENTRIES, True)
    bomb = read(gzip.compress(b"https://example.org/a\n" + b"x" * MAX_INFLATED_BYTES))
    assert (len(bomb.entries), bomb.cut) == (1, True)
    assert read(b"https://example.org/a\n" + b"x" * MAX_INFLATED_BYTES).cut


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("1970", 0.0),
        ("1971", 31536000.0),
        ("1970-02", 2678400.0),
        ("2004-10-01T18:23:17+00:00", 1096654997.0),
        ("1970-01-02", 86400.0),
        ("1970-01-02T00:00Z", 86400.0),
        ("1970-01-02T01:00:00+01:00", 86400.0),
        ("1970-01-02 00:00:00", 86400.0),
        ("1970-01-02T00:00:00.5Z", 86400.5),
        ("Fri, 02 Jan 1970 00:00:00 +0000", 86400.0),
        ("1969-01-01", 0.0),
        ("2005-13-01", 0.0),
        ("0000-01-01", 0.0),
        ("yesterday", 0.0),
        ("", 0.0),
        ("0001-01-01T00:00:00+23:00", 0.0),
    ],
)
def test_dates(date, seconds):
    assert lastmod(date) == seconds


def test_hostile_sitemaps_are_read_in_linear_time():
    first = (b"<!--", b"<url", b"<url>", b"<url><loc", b"<loc>", b"<url><loc><![CDATA[", b"<link", b"<entry><link ")
    for piece in (*first, b"<loc><![CDATA[", b"<loc></loc>", b"<url xml:base", b"<item xml:base='"):
        for root in (b"<urlset>", b"<feed>"):
            read(root + piece * 100_000)


PIECES = [
    b"<urlset>",
    b"<feed>",
    b"<rss>",
    b"<url>",
    b"<item>",
    b"<entry>",
    b"<loc>",
    b"<link>",
    b"<link href='",
    b"'>",
    b"</loc>",
    b"<lastmod>",
    b"<pubDate>",
    b"<updated>",
]
TEXTS = [
    b"<!--",
    b"-->",
    b"<![CDATA[",
    b"]]>",
    b"&amp;",
    b"&#x110000;",
    b"&#xd800;",
    b"http://a/",
    b"2024-01-01",
    b"9",
    b"-",
    b"\n",
    b"\xff",
    b"\x1f\x8b",
    b"\xff\xfe",
]


@given(st.binary(max_size=100) | st.lists(st.sampled_from(PIECES + TEXTS), max_size=30).map(b"".join))
@settings(max_examples=133)
def test_reading_never_raises(body):
    found = read(body)
    assert all(canonical(entry.url) == entry.url and entry.lastmod >= 0 for entry in found.entries)
    assert all(canonical(nested) == nested for nested in found.nested)
    read(gzip.compress(body))


@given(st.text(st.characters(), max_size=30))
def test_dates_are_total(text):
    assert lastmod(text) >= 0
