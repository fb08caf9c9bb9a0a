"""A collection and screens with attacks in all foreign text: sites, a survey, a topic, stories, a portal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from urllib.parse import quote

from voyage import TESTS

from newsroom import edition, entry, story
from periplus.api.collection import Collection
from periplus_studies import api as survey
from periplus_studies.model import Campaign, SiteMark, SiteStatus
from periplus_studies.results import mark_sites
from periplus_studies.screens import VIEWS
from periplus_studies.units import unit_of
from periplus_topics.api import portal
from periplus_topics.api.portal import publish
from periplus_topics.api.stories import store_stories
from periplus_topics.api.topics import TopicOrder, add_label, judged_pages, store_classifications, train_topic
from periplus_topics.model import Example, Portal, Stories
from periplus_topics.present.portal import portal_files
from stored import page, stored
from testweb import Site
from testweb.site import Page
from testweb.wire import Answer

TABLE = json.loads((TESTS / "tables" / "hostile.json").read_text("utf-8"))
HOST = "hostile.test"
TABLES = ("pages", "links", "external", "faults", "issues", "sites")


def hostile_site() -> Site:
    """A home page with every text and address, a page with each text in all elements, and answers with attacks in
    headers.
    """
    site = Site(HOST)
    links = "".join(
        f'<p><a href="{escape(href)}">{escape(text)}</a></p>' for href in TABLE["hrefs"] for text in TABLE["texts"][:2]
    )
    pages = "".join(f'<li><a href="/t{number}">{escape(text)}</a></li>' for number, text in enumerate(TABLE["texts"]))
    _add(
        site,
        "/",
        TABLE["texts"][0],
        links
        + f"<ul>{pages}</ul><a href=/header>h</a><a href=/moved>m</a><a href=/gone>{escape(TABLE['texts'][5])}</a>",
    )
    for number, text in enumerate(TABLE["texts"]):
        _add(
            site,
            f"/t{number}",
            text,
            (
                f"<h1>{escape(text)}</h1><img src=/i.png alt='{escape(text)}'><p>{escape(text)} "
                f"lantern</p><pre>{escape(text)}</pre>"
            ),
        )
    sly = TABLE["texts"][1]
    headers = (("ETag", f'"{sly}"'), ("Content-Language", sly), ("X-Robots-Tag", sly), ("X-Any", sly))
    site.answer(
        "/header", Answer(200, b"<title>Headers</title>", f"text/html; charset={sly}", headers), linked_from=None
    )
    site.answer(
        "/moved",
        Answer(302, b"", "text/html", (("Location", "/p/<script>alarm(60)</script>?a='\"><svg onload=alarm(61)>"),)),
        linked_from=None,
    )
    site.answer("/media", Answer(200, b"x", f"text/{'<img/src/onerror=alarm(62)>'}"), linked_from=None)
    return site


def _add(site: Site, path: str, title: str, body: str) -> None:
    html = (
        f"<!DOCTYPE html><html lang='{escape(title)}'><head><title>{escape(title)}</title><meta "
        f"name=description content='{escape(title)}'>"
        f"<link rel=canonical href='{escape('/p/' + title)}'></head><body>{body}</body></html>"
    )
    site.add(Page(path, title, html=html))


def surveyed(folder: Path) -> None:
    """A survey of it, with attacks in names, bundle, title and tags."""
    texts = TABLE["texts"]
    with Collection(folder) as kept:
        home = kept.runs()[0].starts[0]
    units = (
        unit_of(home, texts[5], texts[1][:40], bundle=texts[2]),
        *(unit_of(f"https://s{at}.example/", text) for at, text in enumerate(texts[6:10])),
    )
    survey.create(folder, Campaign(texts[0], units))
    mark_sites(
        folder,
        [
            SiteMark(home.split("/")[2], SiteStatus.IN, (texts[1], texts[7])),
            SiteMark("evil.example", SiteStatus.OUT, (texts[0],)),
        ],
        1.0,
    )


def told(folder: Path) -> None:
    """Another collection, with every hostile text in topic, labels, stories and portal."""
    texts, home = TABLE["texts"], "https://e.org/"
    pages = {
        f"{home}{number}": page(escape(text), head=f"<p>{escape(text)} lantern</p>")
        for number, text in enumerate(texts)
    }
    collection = stored(folder, {home: page("Home", *pages), **pages}, [home])
    with Collection(collection) as kept:
        train_topic(kept, TopicOrder("t", [f"{home}1*"]))
        store_classifications(collection, "t", judged_pages(kept, "t", -1))
    add_label(collection, "t", Example(texts[1], True, "labelled", f"{home}2"))
    told = [story(f"s{number}", text, (f"a{text[:3]}.example", 2), (text, 1)) for number, text in enumerate(texts)]
    store_stories(collection, Stories(tuple(told), 9, (), (), ()))
    made = Portal("p", texts[0], 1.0, texts[1])
    portal.create(collection, made)
    shown = edition(
        *(entry(one, f"aaaaaa{number:02}", 1.0, texts[number], texts[number - 1]) for number, one in enumerate(told)),
        portal=made,
        lacks=tuple(texts),
    )
    portal.keep(collection, shown)
    publish(collection / "portals" / "p", portal_files(shown))


def screens(home: str) -> Iterator[str]:
    """Every kind of screen, with hostile text in the address too."""
    first, second, third = TABLE["texts"][1], TABLE["texts"][6], TABLE["hrefs"][0]
    sly = [quote(text, safe="") for text in (first, second, third)]
    yield from (
        "/", "/jobs", "/c/x/live", "/c/x/map?show=size&show=in&show=score&nodes=400", "/c/x/picture.svg",
        "/c/x/compare?before=1&after=1",
    )  # fmt: skip
    yield from ("/c/x/graph?steps=2&most=200", "/c/x/graph?by=site")
    yield from (f"/c/x/t/{table}?per=500" for table in TABLES)
    yield from ("/notices", "/c/x/delete", f"/c/x/delete?site={quote(HOST, safe='')}&format=")
    for word in sly:
        yield from (
            f"/c/x/delete?site={word}",
            f"/c/x/delete?url={word}",
            f"/feeds/{word}.atom",
            f"/c/x/delete?all=pages&q={word}",
        )
        yield from (
            f"/?url={word}&name={word}&preset=map&every={word}",
            f"/c/{word}/live",
            f"/{word}",
            f"/search?q={word}",
            f"/c/x/search?q={word}",
        )
        yield from (
            f"/c/x/t/pages?q={word}&title={word}&sort={word}",
            f"/c/x/t/pages?q={word}",
            f"/c/x/t/pages?title=~{word}",
            f"/c/x/t/{word}",
        )
        yield from (
            f"/c/x/graph?node={word}",
            f"/c/x/graph?by=directory&steps={word}",
            f"/c/x/graph.svg?node={quote(home, safe='')}",
        )
        yield from (
            f"/c/x/map?find={word}&site={word}",
            f"/c/x/map?find={word}",
            f"/c/x/page?url={word}&view={word}",
            f"/c/x/compare?before={word}&after=1",
        )
        yield from (
            f"/surveys?sites={word}&name={word}&title={word}&rule={word}",
            f"/c/x/survey?rule={word}&pages={word}",
            f"/c/x/survey/{word}",
        )
        yield from (
            f"/c/x/survey/companions?class={word}&q={word}",
            f"/c/x/survey/sites?model={word}",
            f"/c/x/survey/links?kind=external&to={word}&on={word}",
        )
    yield from (f"/c/x/survey/{view}" for view in VIEWS)
    yield from (f"/c/told/{path}" for path in of_results())
    yield from (
        "/surveys",
        "/c/x/survey",
        "/c/x/survey/links?kind=internal",
        "/c/x/survey/links?kind=bad",
        "/c/x/survey/companions?met_by=domain",
    )
    yield from (f"/c/x/survey/picture/{what}.svg" for what in ("live", "network", "matrix", "fragment", "yield"))
    yield "/c/x/search?q=lantern"
    for place in (
        "", "t1", "t4", "t8", "t16", "t21", "header", "moved", "gone", "p/%3Cscript%3Ealarm(47)%3C/script%3E",
    ):  # fmt: skip
        for view in ("", "blocks", "source", "xml", "visits"):
            yield f"/c/x/page?url={quote(home + place, safe='')}&view={view}"


def of_results() -> Iterator[str]:
    """Screens of topics, stories and portals of a collection."""
    yield from (
        "topics",
        "topic/t",
        "topic/t/label",
        "t/judged:t?per=500",
        "t/words:t",
        "stories",
        "stories?objective=dt",
        "t/stories?per=500",
    )
    yield from (
        "t/story-pages?per=500",
        "portals",
        "portal/p",
        "portal/p?at=2",
        "t/entries:p?per=500",
        "t/sources:p?per=500",
        "portal/p/site/index.html",
    )
    yield from (
        "portal/p/site/story/aaaaaa03.html",
        "portal/p/site/sources.html",
        "portal/p/site/about.html",
        "portal/p/site/story/aaaaaa01.svg",
    )
    yield from (f"story?n={number}" for number in range(1, len(TABLE["texts"]) + 1, 9))
    for text in (TABLE["texts"][1], TABLE["texts"][6], TABLE["hrefs"][0]):
        word = quote(text, safe="")
        yield from (
            f"topics?name=a&words={word}",
            f"topics?name={word}",
            f"topic/{word}",
            f"topic/t?show=crawl&seeds={word}",
            f"t/judged:{word}",
        )
        yield from (
            f"portals?name={word}&title={word}&lead={word}",
            f"portal/{word}",
            f"portal/p?q={word}",
            f"portal/p?show={word}",
            f"portal/p/site/{word}",
        )
        yield from (f"stories?k={word}", f"story?n={word}", f"keywords?of={word}", f"keywords?query={word}")
