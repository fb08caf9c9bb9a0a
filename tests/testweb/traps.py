"""Crawler traps: session ids, calendars, endless trees, facets. `truth.traps` has the prefixes of their URLs."""

from __future__ import annotations

import datetime
import hashlib
import random
from collections.abc import Iterable
from itertools import product

from testweb import content
from testweb.graphs import GraphRecipe, graph_site
from testweb.site import Page, PageLink, Site, render
from testweb.wire import Answer, Asked

COLOURS, SIZES = ("red", "green", "white", "black", "tarred"), ("6", "8", "10", "12", "16")
ORDERS, VIEWS = ("name", "price", "age", "length"), ("list", "grid", "table", "brief")
FACETS = {"colour": COLOURS, "size": SIZES, "order": ORDERS, "view": VIEWS}  # 5 * 5 * 4 * 4 = 400 URLs
PRODUCTS = 20


def _answer(site: Site, title: str, text: str, links: Iterable[tuple[str, str]]) -> Answer:
    """A page generated on demand, with the site's template."""
    page = Page("", title, (text,), [PageLink(href, anchor) for href, anchor in links])
    return Answer(body=render(page, site.host).encode())


def calendar(site: Site, path: str = "/calendar", first: str = "2026-01") -> None:
    """One page per month with links to the months before and after, endless and without events."""

    def reply(asked: Asked) -> Answer:
        parts = [int(part) for part in asked.path.removeprefix(path).split("/") if part.isdigit()] or [
            int(part) for part in first.split("-")
        ]
        months = parts[0] * 12 + parts[1] - 1
        day = datetime.date(months // 12 % 9999 or 1, months % 12 + 1, 1)
        near = [
            (f"{path}/{m // 12:04d}/{m % 12 + 1:02d}", f"{m // 12:04d}-{m % 12 + 1:02d}")
            for m in (months - 1, months + 1, months + 12)
        ]
        return _answer(site, f"Sailings in {day:%B %Y}", "No sailings are planned this month.", near)

    site.routes.prefixes[path + "/"] = reply
    site.facts.traps.add(site.url(path + "/"))
    year, month = first.split("-")
    site.link("/", f"{path}/{year}/{month}", "Calendar of sailings")


def tree(site: Site, path: str = "/tree/") -> None:
    """/tree/a/b/a/...: every page links to a/ and b/ below itself; all have the same text."""

    def reply(asked: Asked) -> Answer:
        return _answer(
            site, "A fork in the channel", "Left and right look alike here.", [("a/", "left"), ("b/", "right")]
        )

    site.routes.prefixes[path] = reply
    site.facts.traps.add(site.url(path))
    site.link("/", path, "The channels")


def facets(site: Site, path: str = "/shop") -> None:
    """400 URLs near the start with the same PRODUCTS in different orders; the products are real pages."""

    def reply(asked: Asked) -> Answer:
        chosen = {name: asked.parameters.get(name, values[0]) for name, values in FACETS.items()}
        links = [(f"{path}/{number:02d}.html", f"Rope {number}") for number in range(PRODUCTS)]
        for name, values in FACETS.items():
            links += [
                (
                    f"{path}?" + "&".join(f"{key}={item}" for key, item in (chosen | {name: value}).items()),
                    f"{name} {value}",
                )
                for value in values
            ]
        return _answer(site, "Ropes and lines", "All our ropes, in the order and look of your choice.", links)

    site.routes.exact[path] = reply
    site.facts.traps.add(site.url(path + "?"))
    site.link("/", f"{path}?" + "&".join(f"{name}={values[0]}" for name, values in FACETS.items()), "The rope shop")
    for number in range(PRODUCTS):
        text = f"Rope number {number} is laid of {number + 3} strands and carries {number * 40 + 100} kilograms."
        site.add(Page(f"{path}/{number:02d}.html", f"Rope {number}", (text,), [PageLink("/", "Home")]))


def facet_urls(path: str = "/shop") -> list[str]:
    """The 400 targets of `facets`."""
    return [
        f"{path}?" + "&".join(f"{name}={value}" for name, value in zip(FACETS, values, strict=True))
        for values in product(*FACETS.values())
    ]


def sessions(site: Site, path: str = "/session/", pages: int = 12, *, sticky: bool = False) -> None:
    """`pages` pages with ?sid=HEX in links, new in every answer (sticky: kept once given). The truth has them without sid."""  # noqa: E501

    def page(number: int) -> Page:
        text = f"Cabin {number} lies on deck {number % 4 + 1} and has {number % 3 + 1} berths."
        near = {(number + 1) % pages, (number * 3 + 1) % pages, 0} - {number}
        return Page(
            f"{path}{number}.html",
            f"Cabin {number}",
            (text,),
            [PageLink(f"{path}{other}.html", f"Cabin {other}") for other in sorted(near)],
        )

    def reply(asked: Asked, plain: Page) -> Answer:
        given = asked.parameters.get("sid", "") if sticky else ""
        sid = given or hashlib.md5(f"{site.host} {asked.serial}".encode(), usedforsecurity=False).hexdigest()
        links = [(f"{link.href}?sid={sid}", link.anchor) for link in plain.links]
        return _answer(site, plain.title, plain.paragraphs[0], links)

    for number in range(pages):
        plain = page(number)
        site.add(plain)
        site.routes.exact[plain.path] = lambda asked, plain=plain: reply(asked, plain)
        site.facts.traps.add(site.url(plain.path + "?"))
    site.link("/", f"{path}0.html", "Book a cabin")


def trap_site(pages: int = 100, seed: int = 1, host: str = "traps.test") -> Site:
    """An ordinary site of `pages` pages with every trap of this module linked from its home page. Real pages: `truth.pages`."""  # noqa: E501
    site = graph_site(GraphRecipe(seed, pages, host=host, page_bytes=4000))
    for plant in (calendar, tree, facets, sessions):
        plant(site)
    return site


def series_site(pages: int = 60, seed: int = 1, host: str = "series.test") -> Site:
    """A site with random endless parts and deterministic answers, so that two crawls can be compared."""
    rng = random.Random(seed)
    site = graph_site(GraphRecipe(seed, pages, host=host, page_bytes=1500))
    for number in range(rng.randint(1, 3)):
        calendar(
            site,
            f"/{rng.choice(('calendar', 'events', 'tides'))}{number}",
            f"20{rng.randint(10, 40)}-{rng.randint(1, 12):02d}",
        )
    for number in range(rng.randint(1, 2)):
        tree(site, f"/{'/'.join(rng.choices(('tree', 'channel', 'delta'), k=rng.randint(1, 3)))}{number}/")
    if rng.random() < 0.7:
        facets(site)
    content.head_links(site)
    return site
