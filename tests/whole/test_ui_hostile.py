"""A site that attacks whoever looks at its map: its titles, words, addresses and headers are shown on every screen, and no script runs.

Each screen is opened twice: as it is, and with the browser told to leave our Content-Security-Policy aside, so that escaping is tried alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from itertools import islice
from pathlib import Path
from urllib.parse import quote

import pytest
from served_interface import served
from voyage import TESTS, crawled

from browser import Browser
from periplus.analyse.units import unit_of
from periplus.api import survey_plan
from periplus.api.collection import open_collection
from periplus.api.webometrics import mark_sites
from periplus.model.campaign import Campaign
from periplus.model.survey import SiteMark, SiteStatus
from periplus.ui.survey_views import VIEWS
from testweb import Site, serve
from testweb.site import Page
from testweb.wire import Answer

TABLE = json.loads((TESTS / "tables" / "hostile.json").read_text("utf-8"))
HOST = "hostile.test"
TABLES = ("pages", "links", "external", "dead", "bad", "issues", "hosts", "sites", "runs", "redirects", "visits")
STRAYS = "iframe, base, math, main script, main style, main link, [onerror], [onload], [onfocus], [onmouseover], [ontoggle]"  # had words become markup
BAD_LINKS = (
    "[...document.querySelectorAll('[href], [src], [action]')]"
    ".filter(e => /^\\s*(javascript|data|vbscript):/i.test(e.getAttribute('href') || e.src || '')).length"
)


def hostile_site() -> Site:
    """A home page with every text and address, a page with each text wherever a page can say something, and answers that attack by their headers."""
    site = Site(HOST)
    links = "".join(f'<p><a href="{escape(href)}">{escape(text)}</a></p>' for href in TABLE["hrefs"] for text in TABLE["texts"][:2])
    pages = "".join(f'<li><a href="/t{number}">{escape(text)}</a></li>' for number, text in enumerate(TABLE["texts"]))
    _add(site, "/", TABLE["texts"][0], links + f"<ul>{pages}</ul><a href=/header>h</a><a href=/moved>m</a><a href=/gone>{escape(TABLE['texts'][5])}</a>")
    for number, text in enumerate(TABLE["texts"]):
        _add(site, f"/t{number}", text, f"<h1>{escape(text)}</h1><img src=/i.png alt='{escape(text)}'><p>{escape(text)} lantern</p><pre>{escape(text)}</pre>")
    sly = TABLE["texts"][1]
    headers = (("ETag", f'"{sly}"'), ("Content-Language", sly), ("X-Robots-Tag", sly), ("X-Any", sly))
    site.answer("/header", Answer(200, b"<title>Headers</title>", f"text/html; charset={sly}", headers), linked_from=None)
    site.answer("/moved", Answer(302, b"", "text/html", (("Location", "/p/<script>alarm(60)</script>?a='\"><svg onload=alarm(61)>"),)), linked_from=None)
    site.answer("/media", Answer(200, b"x", f"text/{'<img/src/onerror=alarm(62)>'}"), linked_from=None)
    return site


def _add(site: Site, path: str, title: str, body: str) -> None:
    html = (
        f"<!DOCTYPE html><html lang='{escape(title)}'><head><title>{escape(title)}</title><meta name=description content='{escape(title)}'>"
        f"<link rel=canonical href='{escape('/p/' + title)}'></head><body>{body}</body></html>"
    )
    site.add(Page(path, title, html=html))


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    with serve(hostile_site()) as server:
        _, end = crawled(folder / "x.periplus", server, HOST, delay_s=0.005)
    assert end.counts.by_reason["ok"] > len(TABLE["texts"])
    surveyed(folder / "x.periplus")
    return folder


def surveyed(folder: Path) -> None:
    """A survey of it, whose names, bundle, title and tags attack too."""
    texts = TABLE["texts"]
    with open_collection(folder) as kept:
        home = kept.runs()[0].starts[0]
    units = (unit_of(home, texts[5], texts[1][:40], bundle=texts[2]), *(unit_of(f"https://s{at}.example/", text) for at, text in enumerate(texts[6:10])))
    survey_plan.create(folder, Campaign(texts[0], units))
    mark_sites(folder, [SiteMark(home.split("/")[2], SiteStatus.IN, (texts[1], texts[7])), SiteMark("evil.example", SiteStatus.OUT, (texts[0],))], 1.0)


@pytest.fixture(scope="module")
def address(collections: Path) -> Iterator[str]:
    with served(collections, "--no-workers") as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser.started() as browser:
        yield browser


def screens(home: str) -> Iterator[str]:
    """Every kind of screen, with hostile words in the address too."""
    first, second, third = TABLE["texts"][1], TABLE["texts"][6], TABLE["hrefs"][0]
    sly = [quote(text, safe="") for text in (first, second, third)]
    yield from ("/", "/jobs", "/c/x/live", "/c/x/map?show=size&show=in&show=score&nodes=400", "/c/x/picture.svg", "/c/x/compare?before=1&after=1")
    yield from ("/c/x/graph?steps=2&most=200", "/c/x/graph?by=site")
    yield from (f"/c/x/t/{table}?per=500" for table in TABLES)
    yield from ("/notices", "/c/x/delete", f"/c/x/delete?site={quote(HOST, safe='')}&format=")
    for word in sly:
        yield from (f"/c/x/delete?site={word}", f"/c/x/delete?url={word}", f"/feeds/{word}.atom", f"/c/x/delete?all=pages&q={word}")
        yield from (f"/?url={word}&name={word}&preset=map&every={word}", f"/c/{word}/live", f"/{word}", f"/search?q={word}", f"/c/x/search?q={word}")
        yield from (f"/c/x/t/pages?q={word}&title={word}&sort={word}", f"/c/x/t/pages?q={word}", f"/c/x/t/pages?title=~{word}", f"/c/x/t/{word}")
        yield from (f"/c/x/graph?node={word}", f"/c/x/graph?by=directory&steps={word}", f"/c/x/graph.svg?node={quote(home, safe='')}")
        yield from (f"/c/x/map?find={word}&site={word}", f"/c/x/map?find={word}", f"/c/x/page?url={word}&view={word}", f"/c/x/compare?before={word}&after=1")
        yield from (f"/surveys?sites={word}&name={word}&title={word}&rule={word}", f"/c/x/survey?rule={word}&pages={word}", f"/c/x/survey/{word}")
        yield from (f"/c/x/survey/companions?class={word}&q={word}", f"/c/x/survey/sites?model={word}", f"/c/x/survey/links?kind=external&to={word}&on={word}")
    yield from (f"/c/x/survey/{view}" for view in VIEWS)
    yield from ("/surveys", "/c/x/survey", "/c/x/survey/links?kind=internal", "/c/x/survey/links?kind=bad", "/c/x/survey/companions?met_by=domain")
    yield from (f"/c/x/survey/picture/{what}.svg" for what in ("live", "network", "matrix", "fragment", "yield"))
    yield "/c/x/search?q=lantern"
    for page in ("", "t1", "t4", "t8", "t16", "t21", "header", "moved", "gone", "p/%3Cscript%3Ealarm(47)%3C/script%3E"):
        for view in ("", "blocks", "source", "xml", "visits"):
            yield f"/c/x/page?url={quote(home + page, safe='')}&view={view}"


@pytest.mark.parametrize("policy", ["kept", "left aside"])
def test_no_screen_runs_a_script_of_the_web(collections: Path, address: str, browser: Browser, policy: str) -> None:
    with open_collection(collections / "x.periplus") as kept:
        home = kept.runs()[0].starts[0]
    browser.without_policy(policy == "left aside")
    browser.alarms.clear()
    own = f"{address}/static/ui.js"
    for path in islice(screens(home), None if policy == "left aside" else 24):  # where the policy helps, one of each kind is enough
        browser.open(address + path)
        told = browser.value("[document.scripts.length, [...document.scripts].map(s => s.src).join(), document.body ? document.body.innerText.length : 1]")
        assert isinstance(told, list)
        assert told[1] in ("", own), path
        assert told[2], f"{path} is empty"
        assert path.endswith(".svg") or browser.value(f"document.querySelectorAll({json.dumps(STRAYS)}).length") == 0, path
        assert browser.value(BAD_LINKS) == 0, path
        assert browser.alarms == [], path


def test_the_alarm_would_be_heard(browser: Browser, tmp_path: Path) -> None:
    """A page that does what ours must not."""
    browser.without_policy(False)
    browser.alarms.clear()
    (tmp_path / "bad.html").write_text("<title>x</title><img src=x onerror=alarm('heard')><script>alarm('too')</script>")
    browser.open((tmp_path / "bad.html").as_uri())
    browser.until("document.readyState == 'complete'")
    assert {"a script ran: heard", "a script ran: too"} <= set(browser.alarms)
    browser.alarms.clear()


def test_hostile_words_are_there_and_only_words(collections: Path) -> None:
    """Without a browser: the title stands in the table as text, and a spreadsheet computes nothing."""
    from interface import client

    asking = client(collections)
    text = asking.get("/c/x/t/pages?per=500").text
    assert "&lt;script&gt;alarm(1)&lt;/script&gt;" in text
    assert "<script>alarm" not in text
    assert "<img" not in text
    assert "\u202e" not in text
    assert "49" not in [row[1] for row in asking.get("/c/x/t/pages?per=500&format=json").json()["rows"]]
    rows = asking.get("/c/x/t/pages.csv").text
    assert "'=cmd|" in rows
    assert not any(line.startswith("=") or ",=cmd" in line for line in rows.splitlines())
