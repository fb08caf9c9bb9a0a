"""Pages and feeds of a portal: well formed, complete, safe with hostile text, reproducible."""

import posixpath
import re
from dataclasses import replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import pytest
from lxml import etree

from newsroom import BUOY, DAY, FERRY, NOW, edition, entry, story, told
from periplus.model.page import DateOrigin, PageDate
from periplus_topics.model import Portal
from periplus_topics.present.portal import delay, name_of, period, portal_files, week_days, week_title

HOSTILE = 'Ann & <b onclick="x">Bob</b> "]]>\u202e\ud800\x07 --><script>alert(1)</script>'
XHTML, ATOM = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/2005/Atom}"
FILES = portal_files(edition())
PAGES = sorted(path for path in FILES if path.endswith(".html"))


def hostile_edition():
    bad = story("x", HOSTILE, ("a.example", 1), ("b.example", 0.5), links=((1, 0),))
    bad = replace(
        bad, pages=(replace(bad.pages[0], url="javascript:alert(1)", language='en" onload="x'), *bad.pages[1:])
    )
    return edition(
        entry(bad, "aaaaaaa2", 1.0, HOSTILE, HOSTILE, "plain"),
        portal=Portal("coast", HOSTILE, NOW, HOSTILE, address="https://p.example/"),
    )


def tree(files, path):
    return etree.fromstring(files[path])


@pytest.mark.parametrize("path", [path for path in FILES if path.endswith((".html", ".svg", ".atom", ".opml"))])
def test_every_page_picture_and_feed_is_well_formed(path):
    tree(FILES, path)


def test_pages_load_only_their_style_and_pictures():
    for path in PAGES:
        page = tree(FILES, path)
        loaded = [
            element.get("src") or element.get("href")
            for element in page.iter(f"{XHTML}img", f"{XHTML}script", f"{XHTML}link", f"{XHTML}iframe")
        ]
        assert all("//" not in address for address in loaded)
        assert not list(page.iter(f"{XHTML}script", f"{XHTML}style"))
        assert not page.xpath("//@style | //@onclick")
        assert "default-src 'none'" in page.xpath("string(//@content)")
    assert b"url(" not in FILES["portal.css"]
    assert b"@import" not in FILES["portal.css"]


def test_every_internal_link_has_a_file_and_an_anchor():
    for path in PAGES:
        for address in tree(FILES, path).xpath("//@href | //@src"):
            parts = urlsplit(address)
            if parts.scheme:
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), parts.path)) if parts.path else path
            assert target in FILES, f"{path} leads to {address}"
            if parts.fragment:
                assert tree(FILES, target).xpath(f"//*[@id='{parts.fragment}']"), f"{path} leads to {address}"


def test_a_story_page_has_its_sources_in_order_its_picture_and_its_run():
    page = tree(FILES, "story/aaaaaaa2.html")
    assert [link for link in page.xpath("//@href") if link.startswith("https://")] == [
        found.url for found in BUOY.pages
    ]
    assert "aaaaaaa2.svg" in page.xpath("//@src")
    text = " ".join(page.itertext())
    assert "crawl 3" in text
    assert "by its JSON-LD" in text
    assert "links to gazette.example" in text


def test_hostile_text_is_escaped():
    files = portal_files(hostile_edition())
    for path, content in files.items():
        if path.endswith((".html", ".atom", ".opml", ".svg")):
            found = tree(files, path)
            assert not found.xpath(
                "//*[local-name()='script'] | //@onclick | //@onload | //*[local-name()='b' and text()='Bob']"
            ), path
            assert not [
                address
                for address in found.xpath("//@href")
                if address.startswith("javascript:") and path.endswith("html")
            ], path
        assert b"\xe2\x80\xae" not in content  # no right-to-left override
        assert b"\x07" not in content


def test_an_edition_is_reproducible_and_a_later_time_changes_only_two_pages():
    assert portal_files(edition()) == FILES
    later = portal_files(edition(made=NOW + DAY))
    assert sorted(path for path in FILES if later[path] != FILES[path]) == ["about.html", "index.html"]
    assert list(FILES)[-1] == "index.html"  # written last, after all pages that it links to


def test_an_empty_edition_gives_the_reason():
    files = portal_files(edition(entries=(), waiting=(entry(FERRY, "aaaaaaa3", 1.0),), sites=()))
    assert "1 story waits for the editor" in files["index.html"].decode()
    for path in files:
        if path.endswith(("html", "atom", "opml")):
            tree(files, path)
    assert not [path for path in files if path.startswith("story/")]  # waiting stories are not published


def test_missing_parts_of_an_edition_are_listed_on_its_about_page():
    assert "no keywords" in portal_files(edition(lacks=("2 stories have no keywords.",)))["about.html"].decode()


def test_rfc4287_a_feed_and_its_entries_have_the_required_elements():
    feed = tree(FILES, "feed.atom")
    assert feed.tag == f"{ATOM}feed"
    for element in (feed, *feed.iter(f"{ATOM}entry")):
        assert [len(element.findall(f"{ATOM}{name}")) for name in ("id", "title", "updated")] == [1, 1, 1]
        assert datetime.fromisoformat(element.findtext(f"{ATOM}updated")).tzinfo
        assert (
            len(
                {
                    (link.get("rel"), link.get("type"), link.get("hreflang"))
                    for link in element.findall(f"{ATOM}link[@rel='alternate']")
                }
            )
            == 1
        )
    assert feed.find(f"{ATOM}author/{ATOM}name").text == "The Seven Lights"
    ids = [element.text for element in feed.iter(f"{ATOM}id")]
    assert len(set(ids)) == len(ids) == 5
    assert all(re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", one) for one in ids)
    updated = [element.findtext(f"{ATOM}updated") for element in feed.iter(f"{ATOM}entry")]
    assert updated == sorted(updated, reverse=True)
    assert feed.findtext(f"{ATOM}updated") == updated[0]


def test_feeds_of_a_portal_with_an_address_are_absolute_and_keep_their_ids():
    there = portal_files(
        edition(portal=Portal("coast", "The Seven Lights", NOW - 90 * DAY, address="https://lights.example/news"))
    )
    feed = tree(there, "feed.atom")
    assert feed.find(f"{ATOM}link[@rel='self']").get("href") == "https://lights.example/news/feed.atom"
    assert [one.text for one in feed.iter(f"{ATOM}id")] == [
        element.text for element in tree(FILES, "feed.atom").iter(f"{ATOM}id")
    ]


def test_opml_2_0_lists_feeds_as_subscriptions_and_other_sites_as_links():
    opml = tree(FILES, "sources.opml")
    assert opml.get("version") == "2.0"
    assert parsedate_to_datetime(opml.findtext("head/dateModified"))
    outlines = [dict(outline.attrib) for outline in opml.find("body")]
    assert outlines[0]["type"] == "rss"
    assert outlines[0]["xmlUrl"] == "https://gazette.example/feed.xml"
    assert outlines[1] == {"type": "link", "text": "North Pilot", "url": "https://north-pilot.example/"}


def test_the_archive_has_linked_pages_per_week():
    assert [path for path in PAGES if re.match("archive/2", path)] == ["archive/2026-W19.html", "archive/2026-W20.html"]
    assert "2026-W20.html" in " ".join(tree(FILES, "archive/2026-W19.html").xpath("//@href"))
    assert b"4 to 10 May 2026" in FILES["archive/2026-W19.html"]


@pytest.mark.parametrize(
    ("hours", "whole_day", "text"),
    [(0, False, "at once"), (0.5, False, "+30 min"), (5, False, "+5 h"), (100, False, "+4 d"), (-2, False, "-2 h"),
                                     (5, True, "same day"), (30, True, "+1 d")]
)  # fmt: skip
def test_a_delay_is_written_in_words(hours, whole_day, text):
    first = PageDate(NOW - NOW % DAY, DateOrigin.META, whole_day)
    assert delay(first, PageDate(first.when + hours * 3600, DateOrigin.META)) == text


def test_weeks_periods_and_sites_are_written_in_words():
    assert (week_title("2026-W01"), week_days("2026-W01")) == ("Week 1, 2026", "29 December 2025 to 4 January 2026")
    assert [period(seconds) for seconds in (3600, 7200, 86_400, 7 * 86_400, 5400)] == [
        "every hour",
        "every 2 hours",
        "every day",
        "every week",
        "every 90 minutes",
    ]
    assert [name_of(site) for site in ("a.example:8080", "a.example", "[::1]:80")] == [
        "a.example",
        "a.example",
        "[::1]",
    ]


def test_texts_have_their_language():
    page = told("a.example", "x", "Zimní jablka", NOW, language="cs")
    files = portal_files(
        edition(entry(replace(FERRY, pages=(page, *FERRY.pages[1:])), "aaaaaaa3", 1.0, "Sadaři otevřeli sklepy."))
    )
    assert tree(files, "index.html").xpath("//*[@lang='cs']")
    assert tree(files, "feed.atom").find(f"{ATOM}entry").get("{http://www.w3.org/XML/1998/namespace}lang") == "cs"


def test_a_date_without_hour_is_shown_without_hour():
    day = DAY * (NOW // DAY)
    pages = (told("a.example", "x", "A", day, whole_day=True), told("b.example", "x", "B", day, whole_day=True))
    files = portal_files(edition(entry(replace(BUOY, pages=pages, links=(), near=()), "aaaaaaa2", 1.0)))
    assert not [path for path, text in files.items() if re.search(rb"\d, 00:00|datetime=.{11}00:00", text)]
    feed = tree(files, "feed.atom")
    assert feed.find(f"{ATOM}entry/{ATOM}published") is None
    assert feed.find(f"{ATOM}entry/{ATOM}updated") is not None


def test_the_front_page_says_how_old_its_newest_story_is_and_its_counts_agree():
    fresh, old = (portal_files(edition(made=NOW + days * DAY))["index.html"].decode() for days in (1, 30))
    assert "No story since" not in fresh
    assert "No story since 12 May 2026" in old or "No story since 13 May 2026" in old
    for page in (fresh, old):
        telling = re.search(r"stories from (\d+) sites", page)[1]
        assert re.search(rf"\d+ sites to read of {telling}, with their feeds", page)


def test_links_in_text_are_underlined():
    rule = next(line for line in FILES["portal.css"].decode().splitlines() if line.startswith(".tellers a"))
    assert "main p a" in rule and "text-decoration: underline" in rule
