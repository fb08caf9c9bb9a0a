"""Writing of sitemap.xml, checked with our reader."""

from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from periplus.document.sitemaps import SitemapKind, read_sitemap
from periplus.model.web import Url
from periplus.present import map_files
from periplus.present.map_files import NAMESPACE, sitemap_files
from periplus.urls.canonical import canonical


def pages_of(count, host="https://e.org"):
    return [(Url(f"{host}/{page:06}?a&b="), page * 86_400.0) for page in range(count)]


def read(file):
    return read_sitemap(file.body, Url(f"{file.origin}/{file.name}"))


def entries(files):
    return [(entry.url, entry.lastmod) for file in files for entry in read(file).entries]


def test_written_entries_are_read_back():
    pages = pages_of(20)
    (file,) = sitemap_files(pages)
    assert entries([file]) == pages
    assert (file.origin, file.name, file.entries, file.left_out) == (
        "https://e.org",
        "sitemap.xml",
        20,
        0,
    )
    assert not read(file).bad


def test_unknown_dates_are_omitted():
    (file,) = sitemap_files([(Url("https://e.org/"), 0.0), (Url("https://e.org/a"), 1.0)])
    assert file.body.count(b"<lastmod>") == 1
    assert b"priority" not in file.body


def test_several_files_have_an_index():
    pages = pages_of(25)
    *parts, index = sitemap_files(pages, max_urls=10)
    assert [part.entries for part in parts] == [10, 10, 5]
    assert entries(parts) == pages
    found = read(index)
    assert found.kind is SitemapKind.INDEX
    assert found.nested == tuple(f"https://e.org/{part.name}" for part in parts)
    newest = [entry.findtext(f"{{{NAMESPACE}}}lastmod") for entry in etree.fromstring(index.body)]
    assert newest == ["1970-01-10T00:00:00Z", "1970-01-20T00:00:00Z", "1970-01-25T00:00:00Z"]


def test_a_full_file_needs_no_index():
    assert [file.name for file in sitemap_files(pages_of(10), max_urls=10)] == ["sitemap.xml"]


def test_sitemaps_org_a_file_has_at_most_50000_urls():
    assert [file.entries for file in sitemap_files((Url(f"https://e.org/{page}"), 0.0) for page in range(50_001))] == [
        50_000,
        1,
        2,
    ]


def test_sitemaps_org_a_file_has_a_limited_size(monkeypatch):
    monkeypatch.setattr(map_files, "MAX_BYTES", 5_000)
    pages = pages_of(200)
    *parts, _ = sitemap_files(pages)
    assert max(len(part.body) for part in parts) <= 5_000
    assert len(parts) > 2
    assert entries(parts) == pages


def test_sitemaps_org_a_file_has_urls_of_one_host():
    pages = pages_of(3, "http://a.org") + pages_of(12, "https://a.org") + pages_of(2, "https://b.org:8443")
    files = list(sitemap_files(pages, max_urls=10))
    assert [(file.origin, file.name) for file in files] == [
        ("http://a.org", "sitemap.xml"),
        ("https://a.org", "sitemap-1.xml"),
        ("https://a.org", "sitemap-2.xml"),
        ("https://a.org", "sitemap.xml"),
        ("https://b.org:8443", "sitemap.xml"),
    ]
    for file in files:
        assert all(entry.url.startswith(file.origin + "/") for entry in read(file).entries)


def test_urls_too_long_for_the_protocol_are_counted():
    pages = [
        (Url("https://e.org/"), 0.0),
        (Url("https://e.org/" + "a" * 2033), 0.0),
        (Url("https://e.org/" + "a" * 2034), 0.0),
    ]
    (file,) = sitemap_files(pages)
    assert (file.entries, file.left_out) == (2, 1)


def test_without_pages_there_is_no_file_and_files_are_reproducible():
    assert list(sitemap_files([])) == []
    assert list(sitemap_files(pages_of(5))) == list(sitemap_files(pages_of(5)))


@settings(max_examples=60)
@given(st.lists(st.text(max_size=30), max_size=6))
def test_any_canonical_url_is_read_back(texts):
    urls = sorted({canonical(f"https://e.org/?{text}") for text in texts})
    assert entries(sitemap_files([(url, 0.0) for url in urls], max_urls=4)) == [(url, 0.0) for url in urls]
